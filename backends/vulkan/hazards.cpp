// The rules of ordering between operations of one stream.
#include "hazards.h"

#include <algorithm>

namespace weft::backend::vulkan {

using ir::Access;

namespace {

bool changes(Access a) { return ir::any(a, ir::kChanges); }

}  // namespace

// Atomic operations of two launches are in order as all others are: an exchange after an addition gives another sum.
bool Hazards::independent(const Interval& a, const Interval& b) {
  return (a.access == Access::read && b.access == Access::read) || (a.appends && b.appends);
}

Barrier Hazards::check(const Interval& range) const {
  Barrier needed = Barrier::none;
  for (int i = 0; i < count_; ++i) {
    const Interval& old = intervals_[i];
    if (old.end <= range.begin || range.end <= old.begin || independent(old, range)) continue;
    if (changes(old.access)) return Barrier::memory;
    needed = Barrier::execution;
  }
  return needed;
}

void Hazards::note(const Interval& range) {
  for (int i = 0; i < count_; ++i) {
    Interval& old = intervals_[i];
    if (old.begin == range.begin && old.end == range.end) {
      old.access = old.access | range.access;
      old.appends = old.appends && range.appends;
      return;
    }
  }
  intervals_[count_++] = range;
}

Barrier Hazards::add(std::span<const MemoryRange> ranges) {
  // More ranges than can be remembered count as everything.
  if (ranges.size() > kMost) {
    Interval everything{0, ~0ull, Access::none, false};
    for (const MemoryRange& r : ranges) everything.access = everything.access | r.access;
    count_ = 0;
    if (everything.access != Access::none) note(everything);
    return Barrier::memory;
  }

  const auto interval = [](const MemoryRange& r) {
    const bool open = r.bytes == ~0ull;
    return Interval{open ? 0 : r.address, open || r.address + r.bytes < r.address ? ~0ull : r.address + r.bytes,
                    r.access, r.appends};
  };
  Barrier needed = Barrier::none;
  for (const MemoryRange& r : ranges) {
    if (r.bytes == 0 || r.access == Access::none) continue;
    needed = std::max(needed, check(interval(r)));
    if (needed == Barrier::memory) break;
  }
  if (needed != Barrier::memory && count_ + static_cast<int>(ranges.size()) > kMost) needed = Barrier::memory;
  if (needed == Barrier::memory) count_ = 0;
  if (needed == Barrier::execution) {
    int kept = 0;
    for (int i = 0; i < count_; ++i) {
      if (!changes(intervals_[i].access)) continue;
      intervals_[kept] = intervals_[i];
      // What was read besides is done; what was changed is not visible yet.
      intervals_[kept].access = Access(int(intervals_[i].access) & int(ir::kChanges));
      ++kept;
    }
    count_ = kept;
  }
  for (const MemoryRange& r : ranges)
    if (r.bytes != 0 && r.access != Access::none) note(interval(r));
  return needed;
}

}  // namespace weft::backend::vulkan
