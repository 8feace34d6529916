// Triangles sorted into the cells of a uniform grid, and rays through it: kernels cast them with cast().
#pragma once
#include <weft/weft.h>

/// A grid over the triangles of a moving mesh. Built anew for each set of positions.
struct TriangleGrid {
  weft::vec3 origin;  ///< corner with the least coordinates
  float cell = 1;     ///< length of a cell's side
  weft::vec3i cells;  ///< number along each axis
  /// Cell (x, y, z) has number (z * cells.y + y) * cells.x + x; its triangles are list[first[c]] up to
  /// list[first[c + 1]].
  weft::Array<int> first, list;
};

/// Sorts triangles into a grid on the arrays' device.
/// Errors: std::runtime_error if a position is not finite.
/// Cost: two passes over the triangles on the device; bounds and a prefix sum on the host.
TriangleGrid build_grid(const weft::Array<weft::vec3>& positions, const weft::Array<weft::vec3i>& triangles);

/// The traced face of a grid and its mesh, put together inside a kernel from the kernel's parameters.
struct GridView {
  weft::Arr<const weft::vec3> positions;
  weft::Arr<const weft::vec3i> triangles;
  weft::Arr<const int> first, list;
  weft::Vec3 origin;
  weft::Float cell;
  weft::Vec3i cells;
};

/// Where a ray meets a triangle: at (1 - u - v) a + u b + v c of its corners.
struct Hit {
  weft::Float t;       ///< distance, in lengths of the direction
  weft::Int triangle;  ///< -1: the ray met nothing
  weft::Float u, v;
};

enum class Find { nearest, any };

/// The nearest triangle (or any one, which is quicker: for shadows) that a ray meets between 0 and t_max.
Hit cast(const GridView& grid, const weft::Vec3& origin, const weft::Vec3& direction, const weft::Float& t_max,
         Find find);
