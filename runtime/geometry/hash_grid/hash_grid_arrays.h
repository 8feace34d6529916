// What a kernel is given of a hash grid.
#pragma once
#include "../../array.h"

namespace weft::stored {

/// A grid as a kernel takes it: `kernel("k", [](Var<HashGridArrays> grid, ...) {...})`, launched with a HashGrid for
/// it.
///
/// Places are numbers of points in the order of their cells: cell c has places begins[c] up to begins[c + 1]. Cells
/// count along x first, then y, then z. Behind the last cell come the points that no query finds, see HashGrid.
struct HashGridArrays {
  /// detail::kHashGridTag from the first build on while the grid lives, else 0; see BvhData::tag.
  unsigned tag = 0;
  /// Of points.
  int count = 0;
  /// Of cells; the last but one is how many points are in cells, the last how many there are.
  Array<int> begins;
  /// By place: the number of the point. Empty grids have one element here, as of groups that there are none of.
  Array<int> points;
  /// By place: where it is (HashGridOptions::keep_positions). None without: launches of kernels that read it refuse it.
  Array<vec3> positions;
  /// By place: its group. Ascending within a cell.
  Array<int> groups;
  /// Cells along each axis.
  vec3i dims{};
  vec3 per_dim{};        ///< 1 / dims
  float per_width = 0;   ///< 1 / cell_width
  float cell_width = 0;  ///< of the sides of a cell
  int has_groups = 0;
};
WEFT_STRUCT(HashGridArrays, tag, count, begins, points, positions, groups, dims, per_dim, per_width, cell_width,
            has_groups);
/// A launch is given the grid by value. Internal. Errors: Error(invalid_argument) where the device holds another one.
void weft_is_given(const HashGridArrays& grid);

}  // namespace weft::stored

namespace weft {

using stored::HashGridArrays;

namespace detail {
/// What begins a structure of this kind in memory.
inline constexpr unsigned kHashGridTag = 0x44495247u;
}  // namespace detail

}  // namespace weft
