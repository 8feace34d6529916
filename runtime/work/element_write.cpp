// Keeps the references of memory up to date before and after a write of its elements.
#include "element_write.h"

#include <algorithm>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../array.h"
#include "capture.h"

namespace weft::detail {

HeldMemory ElementWrite::brought() const {
  HeldMemory all{list};
  if (from) {
    const ReferenceList held = from->references();
    all = held ? *held : HeldMemory();
  }
  // Views of the source's own memory: in the source and in copies that will be put back they are views of themselves.
  if (all.itself && from != to && !to->is_copy && !from->is_copy) {
    all.itself = false;
    all.others.push_back(from);
  }
  if (std::erase(all.others, to) > 0) all.itself = true;
  make_unique(all.others);
  return all;
}

void ElementWrite::refuse_circle() const {
  References looked_at;
  if (to->may_hold_arrays) to->refuse_circle(brought().others, looked_at);
}

void ElementWrite::run(const std::function<void()>& write) const {
  // A copy that the runtime makes has no element type of its own, so it takes after its source.
  if (from && from->may_hold_arrays && !to->may_hold_arrays) to->may_hold_arrays = true;
  // Elements from another device hold no arrays, else their copy is refused.
  if (!to->may_hold_arrays || (from && from->device != to->device)) return write();
  // These are destroyed after the lock is released.
  HeldMemory all;
  ReferenceList before;
  References looked_at;
  const auto lock = to->device->lock_elements();
  all = brought();
  to->refuse_circle(all.others, looked_at);
  Capture* const capture = Capture::current();
  if (capture) {
    before = to->references();
    HeldMemory after = before ? *before : HeldMemory();
    capture->writes_elements(*this, after.add(all));
  }
  to->add_references(all);
  try {
    write();
  } catch (...) {
    if (capture) to->set_references(before ? *before : HeldMemory());  // nothing was captured
    throw;
  }
  if (whole && !capture) before = to->set_references(all);
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
