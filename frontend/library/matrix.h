// Functions of matrices, the same on the host and in kernels.
#pragma once
#include "../language/mat_var.h"
#include "vector.h"

namespace weft {

namespace detail {
template <class A>
inline constexpr int rows_of = MatSize<HostOf<A>>::rows;
template <class A>
inline constexpr int cols_of = MatSize<HostOf<A>>::cols;
template <class A, class B>
concept SameMats = MatLike<A> && MatLike<B, rows_of<A>, cols_of<A>>;
template <class A, class B>
concept SamePacks = SameMats<A, B> ||(VecLike<A>&& VecLike<B, size_of<A>>);
/// Element k of a vector or matrix, in memory order.
template <class A>
auto& element(A& a, int k) {
  if constexpr (MatLike<A>)
    return a.m[k];
  else
    return a[k];
}
}  // namespace detail

template <MatLike A>
auto transpose(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& m = lift<S>(a, loc);
  MatOf<detail::cols_of<A>, detail::rows_of<A>, S> r;
  for (int i = 0; i < detail::rows_of<A>; ++i)
    for (int j = 0; j < detail::cols_of<A>; ++j) r(j, i) = m(i, j);
  return r;
}
/// The matrix a b^T.
template <VecLike A, VecLike B>
auto outer(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  const auto& u = lift<S>(a, loc);
  const auto& v = lift<S>(b, loc);
  MatOf<detail::size_of<A>, detail::size_of<B>, S> r;
  for (int i = 0; i < detail::size_of<A>; ++i)
    for (int j = 0; j < detail::size_of<B>; ++j) r(i, j) = S(u[i] * v[j]);
  return r;
}
/// The skew matrix of a: its product with v is cross(a, v).
template <class A>
requires VecLike<A, 3>
auto skew(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  const S none = S(0);
  return MatOf<3, 3, S>(none, S(-v.z), v.y, v.z, none, S(-v.x), S(-v.y), v.x, none);
}
/// The diagonal matrix of a vector.
template <VecLike A>
auto diag(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& v = lift<S>(a, loc);
  MatOf<detail::size_of<A>, detail::size_of<A>, S> r;
  for (int i = 0; i < detail::size_of<A>; ++i) r(i, i) = v[i];
  return r;
}
/// The diagonal of a square matrix.
template <MatLike A>
requires(detail::rows_of<A> == detail::cols_of<A>) auto get_diag(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& m = lift<S>(a, loc);
  VecOf<detail::rows_of<A>, S> r;
  for (int i = 0; i < detail::rows_of<A>; ++i) r[i] = m(i, i);
  return r;
}
/// The sum of the diagonal of a square matrix, from the first to the last element.
template <MatLike A>
requires(detail::rows_of<A> == detail::cols_of<A>) auto trace(const A& a, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A>;
  detail::CallSite<S> site(loc);
  const auto& m = lift<S>(a, loc);
  S sum = m(0, 0);
  for (int i = 1; i < detail::rows_of<A>; ++i) sum = S(sum + m(i, i));
  return sum;
}
/// The sum of products of corresponding elements: trace(transpose(a) * b).
template <class A, class B>
requires detail::SameMats<A, B>
auto ddot(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  const auto& p = lift<S>(a, loc);
  const auto& q = lift<S>(b, loc);
  return detail::sum_of_products<S>(p.m, q.m, detail::count_of<A>);
}
/// Products and quotients of vectors or matrices, element by element.
template <class A, class B>
requires detail::SamePacks<A, B>
auto cw_mul(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  FaceLike<S, HostOf<A>> r = lift<S>(a, loc);
  const auto& q = lift<S>(b, loc);
  for (int k = 0; k < detail::count_of<A>; ++k) detail::element(r, k) *= detail::element(q, k);
  return r;
}
template <class A, class B>
requires detail::SamePacks<A, B>
auto cw_div(const A& a, const B& b, Loc loc = Loc::here()) {
  using S = ScalarFaceOf<A, B>;
  detail::CallSite<S> site(loc);
  FaceLike<S, HostOf<A>> r = lift<S>(a, loc);
  const auto& q = lift<S>(b, loc);
  for (int k = 0; k < detail::count_of<A>; ++k) detail::element(r, k) /= detail::element(q, k);
  return r;
}
/// Builds a matrix from its rows, or from its columns.
template <VecLike A, VecLike... B>
requires(VecLike<B, detail::size_of<A>>&&...) auto matrix_from_rows(const A& first, const B&... more) {
  using S = ScalarFaceOf<A, B...>;
  MatOf<1 + int(sizeof...(B)), detail::size_of<A>, S> r;
  int i = 0;
  r.set_row(i++, lift<S>(first, Loc{}));
  (r.set_row(i++, lift<S>(more, Loc{})), ...);
  return r;
}
template <VecLike A, VecLike... B>
requires(VecLike<B, detail::size_of<A>>&&...) auto matrix_from_cols(const A& first, const B&... more) {
  using S = ScalarFaceOf<A, B...>;
  MatOf<detail::size_of<A>, 1 + int(sizeof...(B)), S> r;
  int j = 0;
  r.set_col(j++, lift<S>(first, Loc{}));
  (r.set_col(j++, lift<S>(more, Loc{})), ...);
  return r;
}

}  // namespace weft
