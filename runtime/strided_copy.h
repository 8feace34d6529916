// Copies between views: a kernel like any other.
#pragma once
#include "array.h"

namespace weft::detail {

/// Copies all elements of `from` to `to`, which has the same shape and device; either may be a strided view. The two
/// must not overlap.
/// Cost: one launch (one a row of the first dimension for arrays of four).
void strided_copy(const ArrayBase& to, const ArrayBase& from);

}  // namespace weft::detail
