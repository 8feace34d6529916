// Keeps the references of memory up to date before and after a write of its elements.
#include "element_write.h"

#include <algorithm>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "capture.h"

namespace weft::detail {

References ElementWrite::brought(const References& held) const {
  References all = from ? held : list;
  if (from && from->holds_itself() && !to->is_copy && !from->is_copy) all.push_back(from);
  if (std::erase(all, to) > 0) to->hold_itself();
  return all;
}

References ElementWrite::brought() const {
  const ReferenceList held = from ? from->references() : nullptr;
  return brought(held ? *held : References());
}

void ElementWrite::refuse_circle() const {
  if (to->may_hold_arrays) to->refuse_circle(brought());
}

void ElementWrite::run(const std::function<void()>& write) const {
  // A copy that the runtime makes has no element type of its own, so it takes after its source.
  if (from && from->may_hold_arrays && !to->may_hold_arrays) to->may_hold_arrays = true;
  // Elements from another device hold no arrays, else their copy is refused.
  if (!to->may_hold_arrays || (from && from->device != to->device)) return write();
  if (Capture* const capture = Capture::current()) return capture->write_elements(*this, write);
  ReferenceList before;  // destroyed after the lock is released
  const auto lock = to->device->lock_elements();
  before = to->references();
  const References all = brought();
  to->refuse_circle(all);
  to->add_references(all);
  write();
  if (whole) to->set_references(all);
}

void refuse_freed(Storage& to, const References& brought) {
  const auto leads_to_freed = [](const auto& s) { return s->is_freed() || s->leads_to_freed(); };
  if (to.leads_to_freed() || std::ranges::any_of(brought, leads_to_freed))
    invalid("elements that are copied or written may hold an array that was freed: assign all of them anew");
}

bool is_whole(const ArrayBase& a) {
  return a.is_contiguous() && a.size() * a.element_bytes() == std::int64_t(a.storage()->bytes);
}

}  // namespace weft::detail
