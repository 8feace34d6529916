// The ordering rules between operations of one stream.
#include "hazards.h"

namespace weft::backend::vulkan {

using ir::Access;

namespace {

bool changes(Access a) { return ir::any(a, ir::kChanges); }

bool touches(const MemoryRange& r) { return r.bytes != 0 && r.access != Access::none; }

}  // namespace

bool Hazards::Intervals::meet(const Interval& range) const {
  for (int i = 0; i < count; ++i)
    if (range.begin < all[i].end && all[i].begin < range.end && !(all[i].appends && range.appends)) return true;
  return false;
}

void Hazards::Intervals::note(const Interval& range) {
  for (int i = 0; i < count; ++i) {
    Interval& old = all[i];
    if (old.begin == range.begin && old.end == range.end) {
      old.appends = old.appends && range.appends;
      return;
    }
  }
  all[count++] = range;
}

// Atomic operations of two launches are ordered like all others: an exchange after an addition gives another sum.
Barrier Hazards::add(std::span<const MemoryRange> ranges) {
  const auto among = [&](Access access) -> Intervals& { return changes(access) ? changed_ : read_; };
  // More ranges than can be remembered count as all memory.
  if (ranges.size() > kMost) {
    Access access = Access::none;
    for (const MemoryRange& r : ranges) access = access | r.access;
    clear();
    if (access != Access::none) among(access).note({0, ~0ull, false});
    return Barrier::memory;
  }

  const auto interval = [](const MemoryRange& r) {
    const std::uint64_t end = r.address + r.bytes;
    return Interval{r.bytes == ~0ull ? 0 : r.address, end < r.address ? ~0ull : end, r.appends};
  };
  Barrier needed = Barrier::none;
  for (const MemoryRange& r : ranges) {
    if (!touches(r)) continue;
    const Interval range = interval(r);
    if (changed_.meet(range)) {
      needed = Barrier::memory;
      break;
    }
    if (changes(r.access) && read_.meet(range)) needed = Barrier::execution;
  }
  if (count() + static_cast<int>(ranges.size()) > kMost) needed = Barrier::memory;
  if (needed != Barrier::none) read_.count = 0;
  // After an execution barrier, changes are not visible yet.
  if (needed == Barrier::memory) changed_.count = 0;
  for (const MemoryRange& r : ranges)
    if (touches(r)) among(r.access).note(interval(r));
  return needed;
}

}  // namespace weft::backend::vulkan
