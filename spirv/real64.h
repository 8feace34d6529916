// The float64 functions that SPIR-V lacks, written in the kernel language.
#pragma once
#include "../frontend/kernels/names.h"

namespace weft::spirv {

/// exp, exp2, log, ... of a float64, by additions, multiplications, divisions, square roots and bit operations.
/// \param op  an operation of one operand; errors: internal_error() for one that SPIR-V has itself
Double real64(ir::Op op, const Double& x);
/// pow and atan2.
Double real64(ir::Op op, const Double& x, const Double& y);

}  // namespace weft::spirv
