// Closest points: on triangles, between edges, to boxes; on the host and in kernels.
#pragma once
#include "ray.h"

namespace weft {

/// The result of closest_point_triangle.
template <class S>
struct TrianglePoint {
  VecOf<3, S> point;
  VecOf<3, S> weights;  ///< not negative, with sum 1; exactly 0 for vertices off the edge or vertex that was found
  S distance_sq;        ///< squared distance from the query
};

/// The result of closest_point_edge_edge: the points p1 + s (q1 - p1) and p2 + t (q2 - p2), and their distance.
template <class S>
struct EdgePair {
  S s, t, distance;
};

namespace lib {
// Bodies in closest.cpp.
/// The point x a + y b + z c for weights with sum 1, each in [0, 1] up to rounding. It is computed by differences from
/// the corner of the largest weight, so that far from the origin only the point itself is rounded. If a weight is 1,
/// the point is its corner, bit by bit.
template <class S>
VecOf<3, S> point_of_triangle(const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c,
                              const VecOf<3, S>& weights);
template <class S>
TrianglePoint<S> closest_point_triangle(const VecOf<3, S>& query, const VecOf<3, S>& a, const VecOf<3, S>& b,
                                        const VecOf<3, S>& c);
template <class S>
EdgePair<S> closest_point_edge_edge(const VecOf<3, S>& p1, const VecOf<3, S>& q1, const VecOf<3, S>& p2,
                                    const VecOf<3, S>& q2, const S& epsilon);
template <class S>
S distance_sq_point_box(const VecOf<3, S>& query, const VecOf<3, S>& lower, const VecOf<3, S>& upper);
template <class S>
S distance_sq_segment_box(const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& lower,
                          const VecOf<3, S>& upper);
}  // namespace lib

/// The point of the triangle a, b, c closest to `query`; one of them if two are equally close. Any triangle will do:
/// one without area is the edge or point to which it degenerates, and a sliver's answer is never further away than the
/// closest point of its edges.
///
/// Edges and distances from 1e-15 to 1e15 (float64: 1e-150 and 1e150).
/// Gradient: to the query and the vertices, as the point moves on the face, edge or vertex where it was found. That of
/// distance_sq is exact also where the point passes from one to another.
/// Cost: about 290 operations and 8 divisions, no branch.
/// Source: the regions after Ericson 2005, Real-Time Collision Detection, 5.1.5, decided by distance within the plane.
template <VecLike<3> P, VecLike<3> A, VecLike<3> B, VecLike<3> C>
auto closest_point_triangle(const P& query, const A& a, const B& b, const C& c, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<P, A, B, C>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::closest_point_triangle<S>(lift<S>(query, loc), lift<S>(a, loc), lift<S>(b, loc), lift<S>(c, loc));
}

/// The closest points of the edges p1 q1 and p2 q2. For parallel edges that pass one another: an end of one and the
/// point opposite on the other, s = 0 first.
/// \param epsilon  an edge whose squared length is at most this is its first point
/// Gradient: to the four ends, as the points move along the edges while they are between ends. None to the distance if
/// it is 0, and none to s and t that would change which ends are met.
/// Cost: about 220 operations and 6 divisions, no branch.
/// Source: Ericson 2005, Real-Time Collision Detection, 5.1.9, with all candidates compared.
template <VecLike<3> A, VecLike<3> B, VecLike<3> C, VecLike<3> D, ScalarLike E = float>
auto closest_point_edge_edge(const A& p1, const B& q1, const C& p2, const D& q2, const E& epsilon = 0,
                             Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<A, B, C, D, E>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::closest_point_edge_edge<S>(lift<S>(p1, loc), lift<S>(q1, loc), lift<S>(p2, loc), lift<S>(q2, loc),
                                         lift<S>(epsilon, loc));
}

/// The squared distance of a point from the box [lower, upper]; 0 inside.
/// Gradient: to all three; 0 inside and on the surface.
template <VecLike<3> P, VecLike<3> L, VecLike<3> U>
auto distance_sq_point_box(const P& query, const L& lower, const U& upper, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<P, L, U>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::distance_sq_point_box<S>(lift<S>(query, loc), lift<S>(lower, loc), lift<S>(upper, loc));
}

/// The squared distance of the segment from a to b from the box [lower, upper]; 0 if they touch.
/// Gradient: to all four, with the closest point of the segment held fixed along it.
/// Cost: about 200 operations and 7 divisions, no branch.
/// Source: the derivative of the distance along the segment rises and is linear between the box's planes: its root lies
/// between the last plane where it is not positive and the first where it is.
template <VecLike<3> A, VecLike<3> B, VecLike<3> L, VecLike<3> U>
auto distance_sq_segment_box(const A& a, const B& b, const L& lower, const U& upper, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<A, B, L, U>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::distance_sq_segment_box<S>(lift<S>(a, loc), lift<S>(b, loc), lift<S>(lower, loc), lift<S>(upper, loc));
}

}  // namespace weft
