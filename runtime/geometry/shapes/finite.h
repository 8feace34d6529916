// Whether a point has only finite coordinates. Internal to the runtime's structures.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/library/vector.h"

namespace weft::detail {

inline Bool is_finite(const Vec3& p) { return isfinite(p.x) & isfinite(p.y) & isfinite(p.z); }

}  // namespace weft::detail
