// Rays against boxes and triangles, on the host and in kernels. Shared edges and vertices neither leak nor count twice.
#pragma once
#include <limits>

#include "../../../frontend/library/vector.h"

namespace weft {

/// A ray `origin + t * direction`, prepared by ray_data() for tests against many boxes and triangles. The members
/// besides the ray serve the tests.
template <class S>
struct RayData {
  VecOf<3, S> origin, direction;
  VecOf<3, S> inverse;  ///< 1 / direction; a large number of the same sign for a component that is (nearly) 0
  VecOf<3, S> slack;    ///< the amount of t by which each pair of a box's planes is moved apart
  VecOf<3, S> shear;    ///< turns the ray onto the axis along which it goes furthest, and scales that axis
  FaceLike<S, bool> along_x, along_y;  ///< that axis; z if neither
  FaceLike<S, bool> valid;             ///< no component is NaN or infinite, and the direction is not zero
};

/// The result of intersect_ray_box. The ray is inside for enter <= t <= leave; both are meaningless if it misses.
template <class S>
struct RayBox {
  FaceLike<S, bool> hit;
  S enter, leave;
};

/// The result of intersect_ray_triangle; all numbers are 0 if the ray misses.
template <class S>
struct RayTriangle {
  FaceLike<S, bool> hit;
  S t;     ///< in multiples of the direction's length
  S u, v;  ///< the point is u a + v b + (1 - u - v) c
  S sign;  ///< 1: the side from which a, b, c run counter-clockwise, -1: the other
};

namespace lib {
// Bodies in ray.cpp; S is float, double or the traced face of one.
template <class S>
RayData<S> ray_data(const VecOf<3, S>& origin, const VecOf<3, S>& direction);
template <class S>
RayData<S> ray_data(const VecOf<3, S>& origin, const VecOf<3, S>& direction, const VecOf<3, S>& lower,
                    const VecOf<3, S>& upper);
template <class S>
RayBox<S> ray_box(const RayData<S>& ray, const VecOf<3, S>& lower, const VecOf<3, S>& upper, const S& max_t);
/// Whether a ray that meets a box enters it before max_t, or begins in it. This is decided without rounding, while
/// ray_box, whose planes are moved apart, enters early.
template <class S>
FaceLike<S, bool> enters_before(const RayData<S>& ray, const VecOf<3, S>& lower, const VecOf<3, S>& upper,
                                const S& max_t);
template <class S>
RayTriangle<S> ray_triangle(const RayData<S>& ray, const VecOf<3, S>& a, const VecOf<3, S>& b, const VecOf<3, S>& c,
                            const S& max_t);

/// The type of scalar in which a function of geometry computes.
template <class... A>
struct GeometryFace {
  using type = ScalarFaceOf<A...>;
  using T = HostOf<type>;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "weft: functions of geometry take float32 or float64");
};
template <class... A>
using GeometryFaceOf = typename GeometryFace<A...>::type;

inline constexpr float kNoLimit = std::numeric_limits<float>::infinity();
}  // namespace lib

/// Prepares a ray for tests with triangles, and with boxes whose planes rounding may make it miss.
/// \param origin     with an infinite or NaN component: the ray hits nothing
/// \param direction  of any length from 1e-18 to 1e18; zero, or with an infinite or NaN component: the ray hits nothing
template <VecLike<3> O, VecLike<3> D>
auto ray_data(const O& origin, const D& direction, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<O, D>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::ray_data<S>(lift<S>(origin, loc), lift<S>(direction, loc));
}
/// Prepares a ray for boxes inside [lower, upper]: whatever is rounded, intersect_ray_box then finds every box that
/// holds a triangle which intersect_ray_triangle finds with the same ray. (With a limit on t both must be below it; t
/// is exact to a few ulp, except for triangles seen nearly edge-on.) Planes are moved apart by 20 ulp of the largest
/// distance, along an axis, of the ray's origin from a corner of [lower, upper].
/// Source: after Ize 2013, Robust BVH Ray Traversal, and section 3.3 of Woop, Benthin, Wald 2013.
template <VecLike<3> O, VecLike<3> D, VecLike<3> L, VecLike<3> U>
auto ray_data(const O& origin, const D& direction, const L& lower, const U& upper, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<O, D, L, U>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::ray_data<S>(lift<S>(origin, loc), lift<S>(direction, loc), lift<S>(lower, loc), lift<S>(upper, loc));
}

/// The part of a ray inside a box [lower, upper], for 0 <= t; a hit enters with t < max_t. Nothing hits a box with
/// lower > upper along an axis.
/// Gradient: enter and leave have that of the plane.
/// Cost: about 30 operations.
template <class S, VecLike<3> L, VecLike<3> U, ScalarLike T = float>
RayBox<S> intersect_ray_box(const RayData<S>& ray, const L& lower, const U& upper, const T& max_t = lib::kNoLimit,
                            Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::ray_box<S>(ray, lift<S>(lower, loc), lift<S>(upper, loc), lift<S>(max_t, loc));
}
/// Intersects one ray with one box. A ray that touches the box hits it; rounding never loses a hit, but may find one
/// that passes by at 2.5e-6 of the distance (float64: 5e-15). Whether the ray enters before max_t is decided exactly;
/// `enter` and `leave` are as far apart as the planes.
template <VecLike<3> O, VecLike<3> D, VecLike<3> L, VecLike<3> U, ScalarLike T = float>
auto intersect_ray_box(const O& origin, const D& direction, const L& lower, const U& upper,
                       const T& max_t = lib::kNoLimit, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<O, D, L, U, T>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  const auto &lo = lift<S>(lower, loc), &hi = lift<S>(upper, loc);
  const auto& limit = lift<S>(max_t, loc);
  const RayData<S> ray = lib::ray_data<S>(lift<S>(origin, loc), lift<S>(direction, loc), lo, hi);
  RayBox<S> found = lib::ray_box<S>(ray, lo, hi, limit);
  found.hit = found.hit & lib::enters_before<S>(ray, lo, hi, limit);
  return found;
}

/// The point where a ray meets a triangle, from either side, with 0 <= t < max_t. Watertight: a ray through an edge or
/// a vertex that triangles share meets exactly one of those that continue one another there. On a closed mesh the
/// number of triangles hit is therefore even for a ray from outside and odd for one from inside, and the signs
/// alternate in sum, unless the origin lies within rounding of the surface. A triangle seen exactly edge-on is missed.
///
/// Triangles and rays with NaNs or infinities: missed. Lengths, as seen along the ray, between 1e-18 and 1e18 (float64:
/// 1e-150 and 1e150): beyond, products underflow or overflow and vertices may leak.
/// Gradient: of t, u and v, to the ray and the vertices, as the hit moves on the triangle's plane; 0 if missed. It
/// ignores that the ray may leave the triangle (visibility).
/// Cost: about 70 operations and a division. Rays through an edge, by rounding or truly, take a branch of 90 more.
/// Source: Woop, Benthin, Wald 2013, Watertight Ray/Triangle Intersection, JCGT 2(1); edges decided exactly after
/// Dekker 1971, ties as if the ray were moved by (e, e^2) across its direction for an infinitely small e.
template <class S, VecLike<3> A, VecLike<3> B, VecLike<3> C, ScalarLike T = float>
RayTriangle<S> intersect_ray_triangle(const RayData<S>& ray, const A& a, const B& b, const C& c,
                                      const T& max_t = lib::kNoLimit, Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::ray_triangle<S>(ray, lift<S>(a, loc), lift<S>(b, loc), lift<S>(c, loc), lift<S>(max_t, loc));
}
template <VecLike<3> O, VecLike<3> D, VecLike<3> A, VecLike<3> B, VecLike<3> C, ScalarLike T = float>
auto intersect_ray_triangle(const O& origin, const D& direction, const A& a, const B& b, const C& c,
                            const T& max_t = lib::kNoLimit, Loc loc = Loc::here()) {
  using S = lib::GeometryFaceOf<O, D, A, B, C, T>;
  [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
  return lib::ray_triangle<S>(lib::ray_data<S>(lift<S>(origin, loc), lift<S>(direction, loc)), lift<S>(a, loc),
                              lift<S>(b, loc), lift<S>(c, loc), lift<S>(max_t, loc));
}

}  // namespace weft
