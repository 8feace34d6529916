// Rigid transforms, 4x4 matrices as transforms, and spatial algebra; the same on the host and in kernels.
#pragma once
#include "quaternion.h"

namespace weft {

/// Translation, rotation and scale of a 4x4 matrix.
template <class S>
struct Decomposed {
  VecOf<3, S> translation;
  QuatOf<S> rotation;
  VecOf<3, S> scale;
};

/// The bodies, over the scalar face S.
namespace lib {
template <class S>
MatOf<4, 4, S> transform_compose(const VecOf<3, S>& p, const QuatOf<S>& q, const VecOf<3, S>& scale);
template <class S>
Decomposed<S> transform_decompose(const MatOf<4, 4, S>& m);
template <class S>
VecOf<3, S> transform_by_matrix(const MatOf<4, 4, S>& m, const VecOf<3, S>& v, bool is_point);
template <class S>
MatOf<6, 6, S> spatial_adjoint(const MatOf<3, 3, S>& r, const MatOf<3, 3, S>& s);
}  // namespace lib

/// The identity transform: transform_identity(), transform_identity<double>(), <Double>().
template <class S = float>
TransformOf<S> transform_identity(Loc loc = Loc::here()) {
  using T = HostOf<S>;
  return lift<S>(transformation<T>(vec<3, T>(), quaternion<T>(0, 0, 0, 1)), loc);
}
template <TransformLike A>
auto transform_get_translation(const A& t, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  return VecOf<3, S>(lift<S>(t, loc).p);
}
template <TransformLike A>
auto transform_get_rotation(const A& t, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  return QuatOf<S>(lift<S>(t, loc).q);
}
/// The product a * b: first b, then a.
template <TransformLike A, TransformLike B>
auto transform_multiply(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  return detail::composed<TransformOf<S>>(lift<S>(a, loc), lift<S>(b, loc));
}
template <TransformLike A>
auto transform_inverse(const A& t, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& a = lift<S>(t, loc);
  const QuatOf<S> q = quat_inverse(a.q);
  return TransformOf<S>(VecOf<3, S>(-detail::rotated(q, a.p)), q);
}
/// Transforms a point, which is rotated and moved, or a vector, which is only rotated.
template <TransformLike A, class V>
requires VecLike<V, 3>
auto transform_point(const A& t, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, V>;
  detail::CallSite<S> site(loc);
  const auto& a = lift<S>(t, loc);
  return VecOf<3, S>(a.p + detail::rotated<QuatOf<S>, VecOf<3, S>>(a.q, lift<S>(v, loc)));
}
template <TransformLike A, class V>
requires VecLike<V, 3>
auto transform_vector(const A& t, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, V>;
  detail::CallSite<S> site(loc);
  return VecOf<3, S>(detail::rotated<QuatOf<S>, VecOf<3, S>>(lift<S>(t, loc).q, lift<S>(v, loc)));
}
/// Transforms by a 4x4 matrix, without a division by the fourth coordinate: the upper three rows times (v, 1) or (v,
/// 0).
template <class M, class V>
requires(MatLike<M, 4, 4>&& VecLike<V, 3>) auto transform_point(const M& m, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<M, V>;
  detail::CallSite<S> site(loc);
  return lib::transform_by_matrix<S>(lift<S>(m, loc), lift<S>(v, loc), true);
}
template <class M, class V>
requires(MatLike<M, 4, 4>&& VecLike<V, 3>) auto transform_vector(const M& m, const V& v, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<M, V>;
  detail::CallSite<S> site(loc);
  return lib::transform_by_matrix<S>(lift<S>(m, loc), lift<S>(v, loc), false);
}
/// The 4x4 matrix that scales along the axes, then rotates, then moves.
template <class P, QuatLike Q, class V>
requires(VecLike<P, 3>&& VecLike<V, 3>) auto transform_compose(const P& translation, const Q& rotation, const V& scale,
                                                               Loc loc = Loc::here()) {
  using S = ScalarFaceOf<P, Q, V>;
  detail::CallSite<S> site(loc);
  return lib::transform_compose<S>(lift<S>(translation, loc), lift<S>(rotation, loc), lift<S>(scale, loc));
}
/// The parts of a matrix that transform_compose made with positive scales: `auto [p, q, s] = transform_decompose(m)`.
template <class M>
requires MatLike<M, 4, 4>
auto transform_decompose(const M& m, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<M>;
  detail::CallSite<S> site(loc);
  return lib::transform_decompose<S>(lift<S>(m, loc));
}
/// The 4x4 matrix of a transform, and the transform of a matrix that only moves and rotates.
template <TransformLike A>
auto transform_to_matrix(const A& t, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& a = lift<S>(t, loc);
  return lib::transform_compose<S>(a.p, a.q, VecOf<3, S>(S(1)));
}
template <class M>
requires MatLike<M, 4, 4>
auto transform_from_matrix(const M& m, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<M>;
  detail::CallSite<S> site(loc);
  const auto& a = lift<S>(m, loc);
  return TransformOf<S>(VecOf<3, S>(a(0, 3), a(1, 3), a(2, 3)),
                        lib::quat_from_matrix<S>(MatOf<3, 3, S>(a(0, 0), a(0, 1), a(0, 2), a(1, 0), a(1, 1), a(1, 2),
                                                                a(2, 0), a(2, 1), a(2, 2))));
}

// Spatial vectors hold an angular part w (or a torque) first, then a linear part v (or a force):
// spatial_vector{w, v}. Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 2.

template <class A>
requires VecLike<A, 6>
auto spatial_top(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& s = lift<S>(a, loc);
  return VecOf<3, S>(s[0], s[1], s[2]);
}
template <class A>
requires VecLike<A, 6>
auto spatial_bottom(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& s = lift<S>(a, loc);
  return VecOf<3, S>(s[3], s[4], s[5]);
}
/// The power of a wrench and a twist, component by component.
template <class A, class B>
requires(VecLike<A, 6>&& VecLike<B, 6>) auto spatial_dot(const A& a, const B& b, Loc loc = Loc::here()) {
  return dot(a, b, loc);
}
/// The product of two twists: (wa x wb, va x wb + wa x vb).
template <class A, class B>
requires(VecLike<A, 6>&& VecLike<B, 6>) auto spatial_cross(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  const VecOf<3, S> wa = spatial_top(lift<S>(a, loc)), va = spatial_bottom(lift<S>(a, loc));
  const VecOf<3, S> wb = spatial_top(lift<S>(b, loc)), vb = spatial_bottom(lift<S>(b, loc));
  return VecOf<6, S>(cross(wa, wb), VecOf<3, S>(cross(va, wb) + cross(wa, vb)));
}
/// The product of a twist and a wrench: (wa x wb + va x vb, wa x vb).
template <class A, class B>
requires(VecLike<A, 6>&& VecLike<B, 6>) auto spatial_cross_dual(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  const VecOf<3, S> wa = spatial_top(lift<S>(a, loc)), va = spatial_bottom(lift<S>(a, loc));
  const VecOf<3, S> wb = spatial_top(lift<S>(b, loc)), vb = spatial_bottom(lift<S>(b, loc));
  return VecOf<6, S>(VecOf<3, S>(cross(wa, wb) + cross(va, vb)), cross(wa, vb));
}
/// The 6x6 matrix [r 0; s r]. With r a rotation and s = skew(p) r it transforms twists by the transform of r and p.
template <class R, class M>
requires(MatLike<R, 3, 3>&& MatLike<M, 3, 3>) auto spatial_adjoint(const R& r, const M& s, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<R, M>;
  detail::CallSite<S> site(loc);
  return lib::spatial_adjoint<S>(lift<S>(r, loc), lift<S>(s, loc));
}

}  // namespace weft
