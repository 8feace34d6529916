// Computes the cell of a hash grid to which a position belongs. Internal to the runtime.
//
// Rounding must not lose neighbours: a point in a box must lie in one of the cells between those of the box's corners.
// It does, because a coordinate is only multiplied by a positive number, rounded down and clamped on its way to a cell,
// and each of these steps keeps the order of two numbers. (A division might not: devices round it as they like.)
//
// All arithmetic is in floats. Whole numbers up to 2^24 are exact there, and floats become integers only once they are
// known to be small; lavapipe has no integer division of vectors either.
#pragma once
#include "../../../frontend/kernels/names.h"

namespace weft::detail {

/// Cells further from the origin count as this one: at 2^23 widths, neighbouring floats are a cell apart.
inline constexpr float kFarthestCell = 0x1p23f;
inline constexpr int kMostGridCells = 1 << 30, kMostGridDim = 1 << 22;

/// The cell along an axis before it is wrapped: a whole number. A NaN gives any cell.
inline Float cell_along(const Float& x, const Float& per_width) {
  return clamp(floor(x * per_width), -kFarthestCell, kFarthestCell);
}

/// The place of a cell in its period: 0 to dim - 1.
inline Float wrapped(const Float& cell, const Float& dim, const Float& per_dim) {
  // The quotient is off by at most one.
  const Float rest = cell - floor(cell * per_dim) * dim;
  return select(rest < 0.f, rest + dim, select(rest >= dim, rest - dim, rest));
}

}  // namespace weft::detail
