// Forgets waits for others when they are over.
#include "waits.h"

#include <algorithm>

#include "../device.h"

namespace weft::backend::vulkan {

// The queue reaches them in their order.
void Waits::forget() {
  while (!waits_.empty() && device_.retirement().reached(waits_.front().timeline, waits_.front().ticket))
    waits_.pop_front();
}

void Waits::add(std::shared_ptr<Timeline> timeline, Ticket ticket, std::uint64_t after) {
  std::lock_guard lock(mutex_);
  forget();
  waits_.push_back({std::move(timeline), ticket, after, device_.retirement().submitted()});
}

bool Waits::any_before(std::uint64_t place) {
  std::lock_guard lock(mutex_);
  forget();
  return !waits_.empty() && waits_.front().after < place;
}

bool Waits::hold_up(std::span<const Need> work) {
  std::lock_guard lock(mutex_);
  forget();
  if (waits_.empty()) return false;
  const std::vector<Need>& before = waits_.front().before;
  return std::ranges::any_of(work, [&](const Need& need) {
    if (need.first->completed.load(std::memory_order_acquire) >= need.second) return false;
    const auto known = std::ranges::find(before, need.first, &Need::first);
    return known == before.end() || known->second < need.second;
  });
}

}  // namespace weft::backend::vulkan
