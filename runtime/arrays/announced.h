// Beginnings of operations on the elements of arrays: what they require, and who is told of them. Internal to the
// runtime.
#pragma once
#include <span>
#include <string>

#include "../array.h"
#include "../work/capture.h"
#include "../work/observe.h"
#include "../work/work.h"

namespace weft::detail {

/// The stream on which this thread's operations work on the memory.
inline StreamState& stream_of(Storage& storage) { return current_stream(*storage.device); }

/// Called before anything is noted of an operation.
/// Errors: Error(invalid_argument) for a null array, with that message, and for one that was freed.
void require_memory(const ArrayBase& array, const char* null_message);

/// "(2, 3)"
std::string shape_text(const std::array<std::int64_t, 4>& shape, int ndim);

/// Tells of an operation that replaces all elements of an array. While it lives, neither the recorder nor the watchers
/// of the array hear of what the operation is made of.
class AnnouncedWrite : HeardBy {
 public:
  /// The host gives the elements.
  AnnouncedWrite(const char* by, const ArrayBase& to, const HostValues& values);
  /// They are copied from another array. \param leaves  scalars of an element
  AnnouncedWrite(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves);

 private:
  const detail::Within<bool> part_{&Context::part_of_change, true};
};

/// Tells that the host reads elements, and in the same way not of how.
class AnnouncedRead : HeardBy {
 public:
  explicit AnnouncedRead(const ArrayBase& from);
};

/// Issues work on Device::stream() that writes an array.
template <class F>
void write_to(Storage& storage, const F& record) {
  const Access access[] = {{&storage, true}};
  submit(stream_of(storage), {.name = "a write", .accesses = access}, record);
}

}  // namespace weft::detail
