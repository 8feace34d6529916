// Waits for other interfaces before their memory is freed.
#include "parked.h"

#include <algorithm>
#include <map>

namespace weft::detail {

void Parked::add(const backend::Allocation& allocation, OutsideUser user) {
  std::lock_guard lock(mutex_);
  places_.push_back({allocation, std::move(user)});
  bytes_ += allocation.bytes;
}

void Parked::free_finished(backend::Device& device) {
  if (bytes() == 0) return;
  std::lock_guard one_by_one(finishing_);  // a second caller finds freed what the first has waited for
  std::vector<Place> places;
  {
    std::lock_guard lock(mutex_);
    places.swap(places_);
  }
  std::map<const void*, bool> finished;  // each user is waited for once
  const auto busy = std::partition(places.begin(), places.end(), [&](const Place& p) {
    const auto [at, first] = finished.try_emplace(p.user.who.get(), false);
    if (first) at->second = p.user.finish(p.user.who.get());
    return at->second;
  });
  std::uint64_t freed = 0;
  for (auto p = places.begin(); p != busy; ++p) {
    device.free(p->allocation);
    freed += p->allocation.bytes;
  }
  std::lock_guard lock(mutex_);
  bytes_ -= freed;
  places_.insert(places_.end(), busy, places.end());
}

}  // namespace weft::detail
