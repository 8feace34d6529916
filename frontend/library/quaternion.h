// Rotations as quaternions, the same on the host and in kernels. Real part last: (x, y, z, w).
#pragma once
#include "../language/quaternion_var.h"
#include "matrix.h"

namespace weft {

template <class S>
struct AxisAngle {
  VecOf<3, S> axis;
  S angle;
};

/// The bodies, over the scalar face S: half, float, double and their traced faces.
namespace lib {
template <class S>
QuatOf<S> quat_from_axis_angle(const VecOf<3, S>& axis, const S& angle);
template <class S>
AxisAngle<S> quat_to_axis_angle(const QuatOf<S>& q);
template <class S>
QuatOf<S> quat_from_matrix(const MatOf<3, 3, S>& m);
template <class S>
MatOf<3, 3, S> quat_to_matrix(const QuatOf<S>& q);
template <class S>
QuatOf<S> quat_rpy(const S& roll, const S& pitch, const S& yaw);
template <class S>
QuatOf<S> quat_slerp(const QuatOf<S>& a, const QuatOf<S>& b, const S& t);
template <class S>
QuatOf<S> quat_between(const VecOf<3, S>& a, const VecOf<3, S>& b);
}  // namespace lib

/// The identity rotation: quat_identity(), quat_identity<double>(), quat_identity<Double>().
template <class S = float>
QuatOf<S> quat_identity(Loc loc = Loc::here()) {
  return lift<S>(quaternion<HostOf<S>>(0, 0, 0, 1), loc);
}
/// The conjugate, which is the inverse rotation of a unit quaternion.
template <QuatLike Q>
auto quat_inverse(const Q& q, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<Q>;
  detail::CallSite<S> site(loc);
  const auto& a = lift<S>(q, loc);
  return QuatOf<S>(S(-a.x), S(-a.y), S(-a.z), a.w);
}
/// v rotated by the unit quaternion q, and by its inverse.
template <class Q, class V>
requires(QuatLike<Q>&& VecLike<V, 3>) auto quat_rotate(const Q& q, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<Q, V>;
  detail::CallSite<S> site(loc);
  return detail::rotated<QuatOf<S>, VecOf<3, S>>(lift<S>(q, loc), lift<S>(v, loc));
}
template <class Q, class V>
requires(QuatLike<Q>&& VecLike<V, 3>) auto quat_rotate_inv(const Q& q, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<Q, V>;
  detail::CallSite<S> site(loc);
  return detail::rotated<QuatOf<S>, VecOf<3, S>>(quat_inverse(lift<S>(q, loc)), lift<S>(v, loc));
}
/// The rotation by `angle` radians about `axis`, which need not be a unit vector but must not be zero.
template <class V, class A>
requires(VecLike<V, 3>&& ScalarLike<A>) auto quat_from_axis_angle(const V& axis, const A& angle,
                                                                  Loc loc = Loc::here()) {
  using S = ScalarFaceOf<V, A>;
  detail::CallSite<S> site(loc);
  return lib::quat_from_axis_angle<S>(lift<S>(axis, loc), lift<S>(angle, loc));
}
/// Axis (unit) and angle in [0, pi] of a unit quaternion: `auto [axis, angle] = quat_to_axis_angle(q)`. The identity
/// has a zero axis.
template <QuatLike Q>
auto quat_to_axis_angle(const Q& q, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<Q>;
  detail::CallSite<S> site(loc);
  return lib::quat_to_axis_angle<S>(lift<S>(q, loc));
}
/// The unit quaternion of a rotation matrix (orthogonal, determinant 1); of the two, the one whose largest part (the
/// first of equal ones) is positive.
/// Source: Day, Converting a Rotation Matrix to a Quaternion (Insomniac Games).
template <class M>
requires MatLike<M, 3, 3>
auto quat_from_matrix(const M& m, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<M>;
  detail::CallSite<S> site(loc);
  return lib::quat_from_matrix<S>(lift<S>(m, loc));
}
/// The rotation matrix of q: its product with v is quat_rotate(q, v).
template <QuatLike Q>
auto quat_to_matrix(const Q& q, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<Q>;
  detail::CallSite<S> site(loc);
  return lib::quat_to_matrix<S>(lift<S>(q, loc));
}
/// The rotation by roll about x, then by pitch about y, then by yaw about z (radians; fixed axes).
template <ScalarLike R, ScalarLike P, ScalarLike Y>
auto quat_rpy(const R& roll, const P& pitch, const Y& yaw, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<R, P, Y>;
  detail::CallSite<S> site(loc);
  return lib::quat_rpy<S>(lift<S>(roll, loc), lift<S>(pitch, loc), lift<S>(yaw, loc));
}
/// Interpolates from a (t = 0) to b (t = 1) at constant speed, the shorter way.
template <QuatLike A, QuatLike B, ScalarLike T>
auto quat_slerp(const A& a, const B& b, const T& t, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B, T>;
  detail::CallSite<S> site(loc);
  return lib::quat_slerp<S>(lift<S>(a, loc), lift<S>(b, loc), lift<S>(t, loc));
}
/// The shortest rotation that turns the direction of a into that of b; about any axis across a if they are opposite. It
/// takes one to the other within 4 ulp of 1 (docs/semantics.md), however close to opposite they are.
template <class A, class B>
requires(VecLike<A, 3>&& VecLike<B, 3>) auto quat_between(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  return lib::quat_between<S>(lift<S>(a, loc), lift<S>(b, loc));
}

}  // namespace weft
