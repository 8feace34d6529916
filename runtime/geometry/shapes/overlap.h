// Tests whether boxes, spheres, capsules or triangles touch, and how large a triangle looks from a point.
#pragma once
#include "closest.h"

namespace weft {

namespace lib {
// Bodies in overlap.cpp.
template <class S>
FaceLike<S, bool> box_box(const VecOf<3, S>& lower1, const VecOf<3, S>& upper1, const VecOf<3, S>& lower2,
                          const VecOf<3, S>& upper2);
template <class S>
FaceLike<S, bool> tri_tri(const VecOf<3, S>& v0, const VecOf<3, S>& v1, const VecOf<3, S>& v2, const VecOf<3, S>& u0,
                          const VecOf<3, S>& u1, const VecOf<3, S>& u2);
template <class S>
S solid_angle(const VecOf<3, S>& query, const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c);
}  // namespace lib

/// Whether two boxes share a point. A box with lower > upper along an axis shares none.
template <VecLike<3> A, VecLike<3> B, VecLike<3> C, VecLike<3> D>
auto intersect_box_box(const A& lower1, const B& upper1, const C& lower2, const D& upper2, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<A, B, C, D>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::box_box<S>(lift<S>(lower1, loc), lift<S>(upper1, loc), lift<S>(lower2, loc), lift<S>(upper2, loc));
}

/// Whether a solid sphere and a solid box share a point: distance <= radius, compared by squares. A negative radius
/// touches nothing.
template <VecLike<3> P, ScalarLike R, VecLike<3> L, VecLike<3> U>
auto intersect_sphere_box(const P& center, const R& radius, const L& lower, const U& upper, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<P, R, L, U>;
  using T = HostOf<S>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  const S& r = lift<S>(radius, loc);
  return FaceLike<S, bool>((r >= T(0)) & (distance_sq_point_box(center, lower, upper, loc) <= r * r));
}

/// Whether a solid capsule, all points within `radius` of the segment from a to b, and a solid box share a point,
/// compared as by intersect_sphere_box; a == b is a sphere.
template <VecLike<3> A, VecLike<3> B, ScalarLike R, VecLike<3> L, VecLike<3> U>
auto intersect_capsule_box(const A& a, const B& b, const R& radius, const L& lower, const U& upper,
                           Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<A, B, R, L, U>;
  using T = HostOf<S>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  const S& r = lift<S>(radius, loc);
  return FaceLike<S, bool>((r >= T(0)) & (distance_sq_segment_box(a, b, lower, upper, loc) <= r * r));
}

/// Whether the triangles v0, v1, v2 and u0, u1, u2 share a point. Touching counts. They may lie in one plane, and
/// without area they are edges or points. Triangles that share a vertex, bit by bit, always touch; others that pass
/// each other at a few ulp of their size and distance may be rounded either way.
///
/// Edges from 1e-9 to 1e9 long (float64: 1e-75 and 1e75).
/// Cost: about 1000 operations, no branch.
/// Source: separating axes: the normals, the products of edges, the normals of edges in the planes.
template <VecLike<3> A, VecLike<3> B, VecLike<3> C, VecLike<3> D, VecLike<3> E, VecLike<3> F>
auto intersect_tri_tri(const A& v0, const B& v1, const C& v2, const D& u0, const E& u1, const F& u2,
                       Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<A, B, C, D, E, F>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::tri_tri<S>(lift<S>(v0, loc), lift<S>(v1, loc), lift<S>(v2, loc), lift<S>(u0, loc), lift<S>(u1, loc),
                         lift<S>(u2, loc));
}

/// The solid angle of a triangle seen from `query`, from -2 pi to 2 pi: positive if a, b, c run clockwise, as they do
/// when seen from inside a closed mesh. The sum over a closed mesh is 4 pi times its winding number. On the triangle
/// itself the angle is 2 pi with either sign, on its edges and vertices anything in between.
/// Gradient: to all four; 0 if the triangle has no area and the query lies on its line.
/// Cost: about 60 operations and an atan2, whose accuracy is the device's (docs/semantics.md).
/// Source: van Oosterom & Strackee 1983, The solid angle of a plane triangle.
template <VecLike<3> P, VecLike<3> A, VecLike<3> B, VecLike<3> C>
auto solid_angle(const P& query, const A& a, const B& b, const C& c, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<P, A, B, C>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::solid_angle<S>(lift<S>(query, loc), lift<S>(a, loc), lift<S>(b, loc), lift<S>(c, loc));
}

}  // namespace weft
