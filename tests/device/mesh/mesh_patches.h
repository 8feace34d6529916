// Places where a surface has no gap: its edges and points with triangles on all sides.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <utility>
#include <vector>

namespace weft::test {

/// The triangles around an edge or around a point.
struct Patch {
  vec3 middle;             ///< the middle of the edge, or the point
  std::vector<int> faces;  ///< the triangles that share it
  /// The edges around the whole patch, as points of the mesh.
  std::vector<std::pair<int, int>> rim;

  /// Whether a ray from `origin` towards `middle` passes through the patch from one side to the other, at a distance
  /// from its rim beyond rounding. Decided in float64.
  bool is_passed(const MeshData& data, const vec3& origin) const;
};

/// The edges and points at which the triangles of a mesh meet. Points in the same place are one point, because files
/// repeat a point that has two normals or texture coordinates.
struct Surface {
  explicit Surface(const MeshData& data);
  /// Whether each edge is shared by two triangles, which run along it in opposite directions.
  bool closed = true;
  /// Around every edge of two triangles, and every point with one ring of triangles, which are opposite at edges.
  std::vector<Patch> edges, points;
};

}  // namespace weft::test
