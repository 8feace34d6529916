// The rules by which the values of operations differ among threads: a table of all operations, and arithmetic.
#pragma once
#include <optional>
#include <span>

#include "shapes.h"

namespace weft::ir {

/// What decides how the values of an operation differ among threads.
enum class Spread : std::uint8_t {
  none,       ///< it has no value
  launch,     ///< nothing: all threads of a launch have the same
  workgroup,  ///< the workgroup
  subgroup,   ///< the subgroup
  number,     ///< the thread's number: the next thread has one more
  operands,   ///< its operands alone: threads that agree on them agree on it (arithmetic)
  pooled,     ///< all lanes of the subgroup get the same; if threads agree on the operands, they agree on it
  exchanged,  ///< each lane gets something else, unless all give the same
  memory,     ///< its address and what is there
  thread,     ///< it differs whatever its operands
  control     ///< the control flow that it belongs to
};
Spread spread(Op op);

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
