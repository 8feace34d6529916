// Tracks the memory accessed since the last barrier, and whether the next operation must wait for it.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "../../backend.h"

namespace weft::backend::vulkan {

/// The barrier needed between an operation and those before it.
enum class Barrier {
  none,
  execution,  ///< the earlier ones only read what is now written: ordering them is enough
  memory      ///< the earlier ones wrote
};

/// The intervals of memory accessed since the last barrier. Not thread-safe. Cost: linear in their number, which is
/// bounded; nothing is allocated.
class Hazards {
 public:
  /// Notes an operation that accesses `ranges`; returns the barrier that must come before it.
  ///
  /// After Barrier::memory everything earlier is forgotten. After Barrier::execution earlier writes are still
  /// remembered, because they have not been made visible. Ranges that several operations only read, or only append to,
  /// need no barrier between them.
  Barrier add(std::span<const MemoryRange> ranges);

  /// Call after a memory barrier that was recorded for another reason.
  void clear() { read_.count = changed_.count = 0; }
  int count() const { return read_.count + changed_.count; }

  static constexpr int kMost = 64;

 private:
  struct Interval {
    std::uint64_t begin, end;
    bool appends;
  };
  struct Intervals {
    /// Whether an interval overlaps the range, unless both append.
    bool meet(const Interval& range) const;
    void note(const Interval& range);

    std::array<Interval, kMost> all;
    int count = 0;
  };

  // Reads are kept apart: most ranges are only read, and need not be compared with each other.
  Intervals read_, changed_;
};

}  // namespace weft::backend::vulkan
