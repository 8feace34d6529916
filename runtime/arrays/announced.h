// The first steps of operations on elements: checks, and telling the recorder and the watchers. Internal to the
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

/// Checks that an array has memory. Called before anything of an operation is noted.
/// Errors: Error(invalid_argument) for a null array, with that message, and for one that was freed.
void require_memory(const ArrayBase& array, const char* null_message);

/// The shape in a message: "(2, 3)"
std::string shape_text(const std::array<std::int64_t, 4>& shape, int ndim);

/// Tells the recorder and the watchers of an operation that replaces all elements of an array. While the object lives,
/// they do not hear of the parts of the operation.
class AnnouncedWrite : HeardBy {
 public:
  /// \param by  the operation in watchers' messages
  AnnouncedWrite(const char* by, const HeardOperation& operation);

 private:
  const detail::Within<bool> part_{&Context::part_of_change, true};
};

/// The operation that replaces all elements by values of the host.
inline HeardOperation overwrite(const ArrayBase& to, const HostValues& values) {
  return {.kind = OperationKind::overwrite, .to = &to, .values = &values};
}

/// Tells the recorder that the host reads elements. While the object lives, the recorder does not hear of the parts.
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
