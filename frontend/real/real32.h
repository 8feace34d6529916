// The float32 functions that a processor lacks, written in the kernel language.
#pragma once
#include "parts.h"

namespace weft::lib {

/// exp, exp2, log, log2, sin, cos, tan, asin, acos, atan, sinh, cosh or tanh of a float32.
/// Accuracy: below 1.7 ulp for all arguments.
/// \param op  errors: internal_error() for any other operation
Float real32(ir::Op op, const Float& x);
/// pow and atan2.
Float real32(ir::Op op, const Float& x, const Float& y);

}  // namespace weft::lib
