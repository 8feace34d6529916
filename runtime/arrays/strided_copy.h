// Copies between strided views, by a kernel.
#pragma once
#include "../array.h"

namespace weft::detail {

/// Copies all elements of `from` to `to`, which has the same shape and device; either may be a strided view. The two
/// must not overlap.
/// Cost: one launch with a thread for each word; for arrays of four dimensions, a launch for each word of an element.
void strided_copy(const ArrayBase& to, const ArrayBase& from);

}  // namespace weft::detail
