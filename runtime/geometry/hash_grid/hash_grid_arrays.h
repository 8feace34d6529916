// The data of a hash grid in a kernel.
#pragma once
#include "../../array.h"
#include "../../detail/given_structures.h"

namespace weft::stored {

/// The parameter type of a grid: `kernel("k", [](Var<HashGridArrays> grid, ...) {...})` is launched with a HashGrid.
///
/// Places number the points in the order of their cells: cell c has places begins[c] up to begins[c + 1]. Cells are
/// counted along x first, then y, then z. After the last cell come the points that no query finds, see HashGrid.
struct HashGridArrays {
  /// detail::kHashGridTag while the grid lives, from the first build on, else 0; see BvhData::tag.
  unsigned tag = 0;
  /// The number of points.
  int count = 0;
  /// First places of the cells; the last element but one is the number of points in cells, the last the number of
  /// points.
  Array<int> begins;
  /// The number of the point, by place. Empty grids have one element here, and so have grids without groups in
  /// `groups`.
  Array<int> points;
  /// The position, by place (HashGridOptions::keep_positions). Without that it is empty, and launches of kernels that
  /// read it refuse it.
  Array<vec3> positions;
  /// The group, by place. Ascending within a cell.
  Array<int> groups;
  /// The number of cells along each axis.
  vec3i dims{};
  vec3 per_dim{};        ///< 1 / dims
  float per_width = 0;   ///< 1 / cell_width
  float cell_width = 0;  ///< side of a cell
  int has_groups = 0;
};
WEFT_STRUCT(HashGridArrays, tag, count, begins, points, positions, groups, dims, per_dim, per_width, cell_width,
            has_groups);
/// What a launch that is given the grid by value checks: that the device holds it. Internal.
detail::StructureUse weft_structure_of(const HashGridArrays& grid);

}  // namespace weft::stored

namespace weft {

using stored::HashGridArrays;

namespace detail {
/// The first word of a structure of this kind in memory.
inline constexpr unsigned kHashGridTag = 0x44495247u;
}  // namespace detail

}  // namespace weft
