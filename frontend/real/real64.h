// The float64 functions that SPIR-V and processors lack, written in the kernel language.
#pragma once
#include "parts.h"

namespace weft::lib {

/// exp, exp2, log, ... of a float64, by additions, multiplications, divisions, square roots and bit operations.
/// Accuracy: docs/semantics.md.
/// \param op  an operation of one operand; errors: internal_error() for any other operation
Double real64(ir::Op op, const Double& x);
/// pow and atan2.
Double real64(ir::Op op, const Double& x, const Double& y);

}  // namespace weft::lib
