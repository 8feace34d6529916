// The meaning of every pure operation on scalars, used by constant folding and by the interpreter alike.
//
// evaluate(), to_double() and from_double() round to nearest and keep subnormals, whatever mode the program has set.
#pragma once
#include <cstdint>
#include <span>

#include "module.h"

namespace weft::ir {

/// The result of a pure operation (not constant, arg, thread_id, param, result) on values given by their bits. Bits
/// above the type's width are zero in operands and in the result. docs/semantics.md states the decisions made here, on
/// division, shifts, NaN, rounding and conversions.
/// \param operands  the type of the operands (for `select`, of operands 1 and 2)
/// \param result    the type of the result
std::uint64_t evaluate(Op op, Type operands, Type result, std::span<const std::uint64_t> args);

/// The function that evaluate() calls for one operation and its types. It ignores operands that the operation lacks,
/// and is to be called in the usual mode for floats (platform::FloatMode).
using Evaluator = std::uint64_t (*)(std::uint64_t, std::uint64_t, std::uint64_t);

/// Returns null if the operation is not pure arithmetic or is not defined on these types.
Evaluator evaluator(Op op, Type operands, Type result);

/// The meaning of `fma` on a device without fused operations: the product is rounded before the sum. For float32 and
/// float64; null for other types.
Evaluator split_fma(Type type);

/// The value of a number's bits as a double; exact except for 64-bit integers above 2^53.
double to_double(Type type, std::uint64_t bits);
/// The bits of the nearest value of `type`; ties go to even, integers saturate, and NaN gives the integer 0.
std::uint64_t from_double(Type type, double value);

}  // namespace weft::ir
