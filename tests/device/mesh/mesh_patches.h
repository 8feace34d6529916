// Where a surface has no gap: around its edges and points with triangles on all sides.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <utility>
#include <vector>

namespace weft::test {

/// The triangles around an edge or around a point.
struct Patch {
  vec3 middle;             ///< of the edge, or the point
  std::vector<int> faces;  ///< with `middle` between them
  /// Edges around all of them: points of the mesh.
  std::vector<std::pair<int, int>> rim;

  /// Does a ray from `origin` towards `middle` pass through the patch from one side to the other, further from its rim
  /// than rounding reaches? Told in float64.
  bool is_passed(const MeshData& data, const vec3& origin) const;
};

/// What the triangles of a mesh have in common. Points in the same place are one point: files give a point with two
/// normals or texture coordinates twice.
struct Surface {
  explicit Surface(const MeshData& data);
  /// Is each edge one of two triangles, which run along it in opposite directions?
  bool closed = true;
  /// Around every edge of two triangles and every point with one ring of them, opposite at each edge.
  std::vector<Patch> edges, points;
};

}  // namespace weft::test
