// Overlap queries on meshes, and values on their faces.
#include "../mesh_query.h"

#include "../../../frontend/language/detach.h"
#include "../../../frontend/library/vector.h"
#include "../bvh/bvh_build.h"
#include "../bvh/query_walk.h"
#include "../shapes/closest.h"
#include "../shapes/overlap.h"
#include "mesh_walks.h"

namespace weft {

namespace detail {

Corners::Corners(const Var<MeshArrays>& mesh, const Int& place) {
  const Int at = place * 3;
  const Vec4 first = read_row(mesh.corners.layout(), at, 0);
  a = xyz(first);
  b = xyz(read_row(mesh.corners.layout(), at, 1));
  c = xyz(read_row(mesh.corners.layout(), at, 2));
  face = bitcast<int>(first.w);
}

std::array<Vec3, 3> points_of(const MeshInKernel& mesh, const Int& face) {
  std::array<Vec3, 3> points;
  for (int k = 0; k < 3; ++k) {
    const Vec3 p = mesh.arrays.points[mesh.arrays.indices[face * 3 + k]];
    points[std::size_t(k)] = mesh.held ? detach(p) : p;
  }
  return points;
}

void depend_on_points(const MeshInKernel& mesh, const Int& face, std::initializer_list<Float*> numbers) {
  if (mesh.held) return;
  // No face has this number, so that no thread takes the branch.
  If (face < -1) {
    const Float some = mesh.arrays.points[0].x;
    for (Float* x : numbers) *x = some;
  }
}

namespace {

Float largest_of(const Vec3& v) { return max(max(abs(v.x), abs(v.y)), abs(v.z)); }

/// Bound of the excess of a distance by closest_point_triangle: measured, 2.4 ulp of the largest difference between
/// coordinates, and 93 if the triangle is narrower than a thousandth of its length.
Float distance_doubt(const Vec3& center, const Corners& t) {
  constexpr float ulp = std::numeric_limits<float>::epsilon();
  const Float reach = max(max(largest_of(t.a - center), largest_of(t.b - center)), largest_of(t.c - center));
  const Vec3 ab = t.b - t.a, ac = t.c - t.a;
  const Float longest = max(max(largest_of(ab), largest_of(ac)), largest_of(t.c - t.b));
  // Components replace lengths, so that no product has more than two of them.
  const Bool wide = largest_of(cross(ab, ac)) > longest * longest * 3e-3f;
  return reach * select(wide, Float(4 * ulp), Float(128 * ulp));
}

}  // namespace
}  // namespace detail

using detail::value;

MeshInKernel::MeshInKernel(const Var<MeshArrays>& arrays) : arrays(arrays) {
  const ir::Module& m = tracing::Trace::current().module();
  const ir::Op base = m[arrays.points.layout().base].op;
  // In a func(), an array of the caller is an input, about which its trace knows no more. An array from a handle comes
  // out of a variable: see read_at().
  held = base == ir::Op::local_get;
  if (!held && base != ir::Op::arg && base != ir::Op::param)
    ir::fail(m, m.loc, "a query is given a mesh that an element of an array holds: keep the mesh's id() there instead");
}

TreeQuery mesh_query_aabb(const MeshInKernel& mesh, In<vec3> lower, In<vec3> upper, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const auto wants = [from = detail::asked_lower(value(lower), value(upper)), to = value(upper)](
                         const Vec3& lower, const Vec3& upper) { return detail::boxes_touch(lower, upper, from, to); };
  // Reads corners, which lie together; the boxes are in triangle order and do not.
  const auto takes = [=, arrays = mesh.arrays](const Int& place, const Int&, const Bool& several) {
    Bool taken = true;
    If (several) {
      const detail::Corners t(arrays, place);
      taken = wants(lesser(lesser(t.a, t.b), t.c), greater_of(greater_of(t.a, t.b), t.c));
    }
    return taken;
  };
  return TreeQuery(std::make_unique<detail::QueryWalk>(mesh.arrays.tree, loc, BvhRoot(), wants, takes));
}

TreeQuery mesh_query_sphere(const MeshInKernel& mesh, In<vec3> center, In<float> radius, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Float r = value(radius);
  detail::check_limit("mesh_query_sphere", "radius", r, loc);
  const Vec3 c = value(center);
  // The squared distance of a box is exact to 2.5 ulp.
  const auto wants = [=](const Vec3& lower, const Vec3& upper) {
    return intersect_sphere_box(c, r * (1 + 4 * std::numeric_limits<float>::epsilon()), lower, upper);
  };
  const auto takes = [=, arrays = mesh.arrays](const Int& place, const Int&, const Bool&) {
    const detail::Corners t(arrays, place);
    const Float reach = r + detail::distance_doubt(c, t);
    return closest_point_triangle(c, t.a, t.b, t.c).distance_sq <= reach * reach;
  };
  return TreeQuery(std::make_unique<detail::QueryWalk>(mesh.arrays.tree, loc, BvhRoot(), wants, takes));
}

Vec3 mesh_eval_position(const MeshInKernel& mesh, In<int> face, In<float> u, In<float> v, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const auto [a, b, c] = detail::points_of(mesh, value(face));
  const Float wu = value(u), wv = value(v);
  return lib::point_of_triangle<Float>(a, b, c, Vec3(wu, wv, 1 - wu - wv));
}

Vec3 mesh_eval_velocity(const MeshInKernel& mesh, In<int> face, In<float> u, In<float> v, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Int f = value(face);
  const Float wu = value(u), wv = value(v);
  return lib::point_of_triangle<Float>(mesh_get_velocity(mesh, f * 3, loc), mesh_get_velocity(mesh, f * 3 + 1, loc),
                                       mesh_get_velocity(mesh, f * 3 + 2, loc), Vec3(wu, wv, 1 - wu - wv));
}

Vec3 mesh_eval_face_normal(const MeshInKernel& mesh, In<int> face, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const auto [a, b, c] = detail::points_of(mesh, value(face));
  return normalize(cross(b - a, c - a));
}

Int mesh_face_count(const MeshInKernel& mesh, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return mesh.arrays.indices.shape(0) / 3;
}

Int mesh_get_index(const MeshInKernel& mesh, In<int> k, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  return mesh.arrays.indices[value(k)];
}

Vec3 mesh_get_point(const MeshInKernel& mesh, In<int> k, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Vec3 p = mesh.arrays.points[mesh.arrays.indices[value(k)]];
  return mesh.held ? detach(p) : p;
}

Vec3 mesh_get_velocity(const MeshInKernel& mesh, In<int> k, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  Vec3 v;
  If (mesh.arrays.has_velocities != 0) {
    const Vec3 w = mesh.arrays.velocities[mesh.arrays.indices[value(k)]];
    v = mesh.held ? detach(w) : w;
  }
  return v;
}

}  // namespace weft
