// The rules by which the values of operations differ among threads: arithmetic of affine values.
#pragma once
#include <optional>
#include <span>

#include "shapes.h"

namespace weft::ir {

/// A value's shape with what is known of it as a number.
struct LaneValue {
  struct Range {
    std::int64_t low, high;
    bool operator==(const Range&) const = default;
  };
  Shape shape;
  /// Of an integer that is not varying: bounds of the base (see Shapes) and of every thread's value. They are known
  /// only if nothing on the way to it can wrap, so that an affine value with bounds is exact.
  std::optional<Range> range;
  /// Of an integer that is not varying: a power of two by which the base can be divided.
  std::uint64_t multiple = 1;
};

/// The value of either of two places, as the lanes of a vector come from one of them together.
LaneValue join(const LaneValue& a, const LaneValue& b);

/// The value of a constant.
LaneValue constant_lanes(const Inst& constant);

/// An affine value, one more in each lane, of which lane 0 has a multiple of `multiple`, and threads have 0 to `high`.
LaneValue counting_lanes(std::int64_t high, std::uint64_t multiple);

/// The value of a pure operation (Spread::operands).
/// \param args   of which none is varying; if one is, so is every result
/// \param lanes  of a vector
LaneValue pure_lanes(const Module& module, const Inst& inst, std::span<const LaneValue> args, std::uint32_t lanes);

}  // namespace weft::ir
