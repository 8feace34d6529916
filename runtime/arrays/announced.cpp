// The first steps of operations on elements.
#include "announced.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../../frontend/support/invalid.h"

namespace weft::detail {

namespace {
// The recorder is told first, because watchers ask it whether it has heard of a change. The result is the recorder of
// the operation's parts: none.
Recorder* tell_of(const HeardOperation& o, const char* by) {
  tell_recorder(o);
  if (by) before_write(*o.to, stream_of(*o.to->storage()), {.by = by, .replaces_all = true});
  return nullptr;
}
}  // namespace

AnnouncedWrite::AnnouncedWrite(const char* by, const HeardOperation& operation) : HeardBy(tell_of(operation, by)) {}
AnnouncedRead::AnnouncedRead(const ArrayBase& from)
    : HeardBy(tell_of({.kind = OperationKind::read, .from = &from}, nullptr)) {}

void require_memory(const ArrayBase& array, const char* null_message) {
  if (array.is_null()) invalid(null_message);
  array.storage()->check_present();
}

std::string shape_text(const std::array<std::int64_t, 4>& shape, int ndim) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.begin() + ndim, ", "));
}

}  // namespace weft::detail
