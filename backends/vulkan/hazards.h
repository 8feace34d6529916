// Which memory was touched since the last barrier, and whether the next operation must wait for it.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "../backend.h"

namespace weft::backend::vulkan {

/// What must stand between an operation and those before it.
enum class Barrier {
  none,
  execution,  ///< the earlier ones only read what is now written: order alone is enough
  memory      ///< the earlier ones wrote
};

/// The intervals of memory touched since the last barrier. Not thread-safe. Cost: linear in their number, which is
/// bounded; nothing is allocated.
class Hazards {
 public:
  /// Notes an operation that touches `ranges`; returns the barrier that must come before it.
  ///
  /// After Barrier::memory everything earlier is forgotten. After Barrier::execution earlier writes are still
  /// remembered: they have not been made visible. Ranges that several operations only read, or only append to, need
  /// nothing between them.
  Barrier add(std::span<const MemoryRange> ranges);

  /// A memory barrier was recorded for another reason.
  void clear() { count_ = 0; }
  int count() const { return count_; }

  static constexpr int kMost = 64;

 private:
  struct Interval {
    std::uint64_t begin, end;
    ir::Access access;
    bool appends;
  };

  static bool independent(const Interval& a, const Interval& b);
  Barrier check(const Interval& range) const;
  void note(const Interval& range);

  std::array<Interval, kMost> intervals_;
  int count_ = 0;
};

}  // namespace weft::backend::vulkan
