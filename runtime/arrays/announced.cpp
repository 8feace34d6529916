// The first steps of operations on elements.
#include "announced.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../frontend/support/invalid.h"

namespace weft::detail {

namespace {
// The recorder is told first, because watchers ask it whether it has heard of a change. The result is the recorder of
// the operation's parts: none.
Recorder* tell_of(const char* by, const ArrayBase& to, const HostValues& values) {
  if (Recorder* r = recorder()) r->overwriting(to, values);
  before_write(to, stream_of(*to.storage()), {.by = by, .replaces_all = true});
  return nullptr;
}
Recorder* tell_of(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) {
  if (Recorder* r = recorder()) r->copying(to, from, leaves);
  before_write(to, stream_of(*to.storage()), {.by = "copy_from()", .replaces_all = true});
  return nullptr;
}
Recorder* tell_of(const ArrayBase& from) {
  if (Recorder* r = recorder()) r->reading(from);
  return nullptr;
}
}  // namespace

AnnouncedWrite::AnnouncedWrite(const char* by, const ArrayBase& to, const HostValues& values)
    : HeardBy(tell_of(by, to, values)) {}
AnnouncedWrite::AnnouncedWrite(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves)
    : HeardBy(tell_of(to, from, leaves)) {}
AnnouncedRead::AnnouncedRead(const ArrayBase& from) : HeardBy(tell_of(from)) {}

void require_memory(const ArrayBase& array, const char* null_message) {
  if (array.is_null()) invalid(null_message);
  array.storage()->check_present();
}

std::string shape_text(const std::array<std::int64_t, 4>& shape, int ndim) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.begin() + ndim, ", "));
}

}  // namespace weft::detail
