// The meaning of every pure operation on scalars: used by constant folding and by the interpreter alike.
#pragma once
#include <cstdint>
#include <span>

#include "module.h"

namespace weft::ir {

/// The result of a pure operation (not constant, arg, thread_id, param, result) on values given by their bits.
/// Bits above the type's width are zero in operands and in the result.
/// `operands` is the type of the operands (of operands 1 and 2 for `select`), `result` the result's type.
/// docs/semantics.md states what is decided here: division, shifts, NaN, rounding, conversions.
std::uint64_t evaluate(Op op, Type operands, Type result, std::span<const std::uint64_t> args);

/// The function behind evaluate() for one operation and its types; operands that the operation lacks are ignored.
using Evaluator = std::uint64_t (*)(std::uint64_t, std::uint64_t, std::uint64_t);

/// Null when the operation is not pure arithmetic or is not defined on these types.
Evaluator evaluator(Op op, Type operands, Type result);

/// Value of a number's bits as a double (exact but for 64-bit integers above 2^53).
double to_double(Type type, std::uint64_t bits);
/// Bits of the nearest value of `type` (ties to even; integers saturate, NaN gives 0).
std::uint64_t from_double(Type type, double value);

}  // namespace weft::ir
