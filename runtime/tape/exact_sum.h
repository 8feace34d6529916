// Adds exact sums to gradients. Internal to the runtime.
#pragma once
#include "../../frontend/adjoint/adjoint.h"
#include "../core/view.h"

namespace weft::detail {

/// \param sums      ir::ExactSum::words(type) for each scalar, a contiguous array of u64
/// \param gradient  the scalars, as elements in a row
void add_exact_sums(const View& sums, const View& gradient, ir::Type type);

}  // namespace weft::detail
