// Kernels that prepare a mesh for queries.
#include "mesh_passes.h"

#include "../../../frontend/kernels/kernel.h"
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/any_floats.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/vector.h"
#include "../shapes/finite.h"

namespace weft::detail {

namespace {

// Indices that device work has written are checked nowhere else: an index that names no point gives NaN and reads
// nothing.
Vec3 corner(const Arr<const vec3>& points, const Arr<const int>& indices, const Int& triangle, int k) {
  const Int i = indices[triangle * 3 + k];
  const Bool is_point = UInt(i) < UInt(points.shape(0));
  const Vec3 p = points[select(is_point, i, 0)];
  return select(is_point, p, Vec3(vec3(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace

void triangle_boxes(const MeshArrays& mesh, const Array<vec3>& lowers, const Array<vec3>& uppers) {
  static const auto boxes =
      kernel("triangle boxes", [](Arr<const vec3> points, Arr<const int> indices, Arr<vec3> lowers, Arr<vec3> uppers) {
        const tracing::AnyFloats any;
        Int i = tid();
        const Vec3 a = corner(points, indices, i, 0), b = corner(points, indices, i, 1),
                   c = corner(points, indices, i, 2);
        // min and max ignore NaN, so a triangle with one is marked by a box that is none.
        const Bool whole = is_finite(a) & is_finite(b) & is_finite(c);
        const Float nan = std::numeric_limits<float>::quiet_NaN();
        for (int d = 0; d < 3; ++d) {
          lowers[i][d] = select(whole, min(min(a[d], b[d]), c[d]), nan);
          uppers[i][d] = select(whole, max(max(a[d], b[d]), c[d]), nan);
        }
        if (!tracing::Trace::current().debug().checks) return;
        for (int k = 0; k < 3; ++k) {
          const Int at = indices[i * 3 + k];
          assert_(UInt(at) < UInt(points.shape(0)), "triangle", i, "of a mesh names point", at, "of", points.shape(0));
        }
        assert_(whole, "triangle", i, "of a mesh has a point that is NaN or infinite");
      });
  launch(boxes, lowers.size(), mesh.points, mesh.indices, lowers, uppers);
}

void gather_corners(const MeshArrays& mesh) {
  static const auto k = kernel("gather corners", [](Arr<const vec3> points, Arr<const int> indices,
                                                    Arr<const int> primitives, Arr<vec4> corners) {
    const tracing::AnyFloats any;
    Int i = tid();
    const Int triangle = primitives[i];
    const Vec3 a = corner(points, indices, triangle, 0), b = corner(points, indices, triangle, 1),
               c = corner(points, indices, triangle, 2);
    // A triangle that no query may find is all NaN: no test holds for it.
    const Bool whole = is_finite(a) & is_finite(b) & is_finite(c);
    const Vec3 nan = vec3(std::numeric_limits<float>::quiet_NaN());
    corners[i * 3] = Vec4(select(whole, a, nan), bitcast<float>(triangle));
    corners[i * 3 + 1] = Vec4(select(whole, b, nan), Float(0));
    corners[i * 3 + 2] = Vec4(select(whole, c, nan), Float(0));
  });
  launch(k, mesh.tree.count, mesh.points, mesh.indices, mesh.tree.primitives, mesh.corners);
}

}  // namespace weft::detail
