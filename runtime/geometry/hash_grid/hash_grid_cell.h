// Which cell of a hash grid a place belongs to. Internal to the runtime.
//
// Rounding must not lose neighbours: a point in a box must lie in one of the cells between those of the box's corners.
// It does because the way from a coordinate to a cell only multiplies by a positive number, rounds down and clamps:
// each of them never turns two numbers around. (A division might: devices round it as they like.)
//
// All of it is in floats. Whole numbers up to 2^24 are exact there, and floats turn into integers only once they are
// known to be small; lavapipe has no integer division of vectors either.
#pragma once
#include "../../../frontend/kernels/names.h"

namespace weft::detail {

/// Cells further from the origin count as this one: 2^23 widths away, neighbouring floats are a cell apart.
inline constexpr float kFarthestCell = 0x1p23f;
inline constexpr int kMostGridCells = 1 << 30, kMostGridDim = 1 << 22;

/// The cell along an axis, before it is wrapped: a whole number. Of a NaN any.
inline Float cell_along(const Float& x, const Float& per_width) {
  return clamp(floor(x * per_width), -kFarthestCell, kFarthestCell);
}

/// Its place in the period: 0 to dim - 1.
inline Float wrapped(const Float& cell, const Float& dim, const Float& per_dim) {
  // The quotient is off by one at most.
  const Float rest = cell - floor(cell * per_dim) * dim;
  return select(rest < 0.f, rest + dim, select(rest >= dim, rest - dim, rest));
}

}  // namespace weft::detail
