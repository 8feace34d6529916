// The library's functions of matrices, quaternions, transforms and spatial vectors.
#include "../../../frontend/library/linalg.h"
#include "../../../frontend/library/matrix.h"
#include "../../../frontend/library/quaternion.h"
#include "../../../frontend/library/transform.h"
#include "library.h"

namespace weft::python {

namespace {

template <class N, int n>
void add_square() {
  using M = mat<n, n, N>;
  form<N, M>("determinant", [](const auto& a) { return determinant(a); });
  form<M, M>("inverse", [](const auto& a) { return inverse(a); });
}

template <class N>
void add_matrices() {
  using V2 = vec<2, N>;
  using V3 = vec<3, N>;
  using M2 = mat<2, 2, N>;
  using M3 = mat<3, 3, N>;
  add_square<N, 2>();
  add_square<N, 3>();
  add_square<N, 4>();
  form<std::tuple<M2, V2, M2>, M2>("svd2", [](const auto& a) {
    const auto r = svd2(a);
    return std::tuple(r.u, r.sigma, r.v);
  });
  form<std::tuple<M3, V3, M3>, M3>("svd3", [](const auto& a) {
    const auto r = svd3(a);
    return std::tuple(r.u, r.sigma, r.v);
  });
  form<std::tuple<M3, M3>, M3>("qr3", [](const auto& a) {
    const auto r = qr3(a);
    return std::tuple(r.q, r.r);
  });
  form<std::tuple<M3, V3>, M3>("eig3", [](const auto& a) {
    const auto r = eig3(a);
    return std::tuple(r.q, r.d);
  });
  form<M3, V3>("skew", [](const auto& a) { return skew(a); });
}

template <class N>
void add_cross() {
  using V = vec<3, N>;
  form<V, V, V>("cross", [](const auto& a, const auto& b) { return cross(a, b); });
}

template <class N>
void add_quaternions() {
  using V = vec<3, N>;
  using Q = quaternion<N>;
  using M = mat<3, 3, N>;
  form<Q>("quat_identity", [] { return quat_identity<Var<N>>(); });
  form<Q, Q, Q>("mul", [](const auto& a, const auto& b) { return a * b; });
  form<Q, Q>("quat_inverse", [](const auto& q) { return quat_inverse(q); });
  form<V, Q, V>("quat_rotate", [](const auto& q, const auto& v) { return quat_rotate(q, v); });
  form<V, Q, V>("quat_rotate_inv", [](const auto& q, const auto& v) { return quat_rotate_inv(q, v); });
  form<Q, V, N>("quat_from_axis_angle", [](const auto& v, const auto& a) { return quat_from_axis_angle(v, a); });
  form<std::tuple<V, N>, Q>("quat_to_axis_angle", [](const auto& q) {
    const auto r = quat_to_axis_angle(q);
    return std::tuple(r.axis, r.angle);
  });
  form<Q, M>("quat_from_matrix", [](const auto& m) { return quat_from_matrix(m); });
  form<Q, mat<4, 4, N>>("quat_from_matrix", [](const auto& m) {
    return quat_from_matrix(Var<M>(m(0, 0), m(0, 1), m(0, 2), m(1, 0), m(1, 1), m(1, 2), m(2, 0), m(2, 1), m(2, 2)));
  });
  form<M, Q>("quat_to_matrix", [](const auto& q) { return quat_to_matrix(q); });
  form<Q, N, N, N>("quat_rpy", [](const auto& r, const auto& p, const auto& y) { return quat_rpy(r, p, y); });
  form<Q, Q, Q, N>("quat_slerp", [](const auto& a, const auto& b, const auto& t) { return quat_slerp(a, b, t); });
  form<Q, V, V>("quat_between", [](const auto& a, const auto& b) { return quat_between(a, b); });
  form<Q, Q, Q, N>("lerp", [](const auto& a, const auto& b, const auto& t) { return lerp(a, b, t); });
}

template <class N>
void add_transforms() {
  using V = vec<3, N>;
  using Q = quaternion<N>;
  using T = transformation<N>;
  using M = mat<4, 4, N>;
  form<T>("transform_identity", [] { return transform_identity<Var<N>>(); });
  form<V, T>("transform_get_translation", [](const auto& t) { return transform_get_translation(t); });
  form<Q, T>("transform_get_rotation", [](const auto& t) { return transform_get_rotation(t); });
  form<T, T, T>("transform_multiply", [](const auto& a, const auto& b) { return transform_multiply(a, b); });
  form<T, T>("transform_inverse", [](const auto& t) { return transform_inverse(t); });
  form<V, T, V>("transform_point", [](const auto& t, const auto& v) { return transform_point(t, v); });
  form<V, T, V>("transform_vector", [](const auto& t, const auto& v) { return transform_vector(t, v); });
  form<V, M, V>("transform_point", [](const auto& m, const auto& v) { return transform_point(m, v); });
  form<V, M, V>("transform_vector", [](const auto& m, const auto& v) { return transform_vector(m, v); });
  form<M, V, Q, V>("transform_compose",
                   [](const auto& p, const auto& q, const auto& s) { return transform_compose(p, q, s); });
  form<std::tuple<V, Q, V>, M>("transform_decompose", [](const auto& m) {
    const auto r = transform_decompose(m);
    return std::tuple(r.translation, r.rotation, r.scale);
  });
  form<M, T>("transform_to_matrix", [](const auto& t) { return transform_to_matrix(t); });
  form<T, M>("transform_from_matrix", [](const auto& m) { return transform_from_matrix(m); });
}

template <class N>
void add_spatial() {
  using V = vec<3, N>;
  using S = vec<6, N>;
  using M = mat<3, 3, N>;
  form<V, S>("spatial_top", [](const auto& a) { return spatial_top(a); });
  form<V, S>("spatial_bottom", [](const auto& a) { return spatial_bottom(a); });
  form<N, S, S>("spatial_dot", [](const auto& a, const auto& b) { return spatial_dot(a, b); });
  form<S, S, S>("spatial_cross", [](const auto& a, const auto& b) { return spatial_cross(a, b); });
  form<S, S, S>("spatial_cross_dual", [](const auto& a, const auto& b) { return spatial_cross_dual(a, b); });
  form<mat<6, 6, N>, M, M>("spatial_adjoint", [](const auto& r, const auto& s) { return spatial_adjoint(r, s); });
}

}  // namespace

void add_matrix_functions() {
  for_reals([]<class N>() {
    add_matrices<N>();
    add_cross<N>();
  });
  for_integers([]<class N>() { add_cross<N>(); });
}

void add_rotation_functions() {
  for_reals([]<class N>() {
    add_quaternions<N>();
    add_transforms<N>();
    add_spatial<N>();
  });
}

}  // namespace weft::python
