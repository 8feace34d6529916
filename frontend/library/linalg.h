// Small dense linear algebra on both faces: determinant, inverse, SVD, QR and eigenvalues.
#pragma once
#include "../language/face.h"
#include "../language/mat_var.h"

namespace weft {

/// The result of svd2 and svd3: a = u diag(sigma) v^T.
template <int N, class S>
struct Svd {
  MatOf<N, N, S> u;
  VecOf<N, S> sigma;
  MatOf<N, N, S> v;
};
/// The result of qr3: a = q r.
template <int N, class S>
struct Qr {
  MatOf<N, N, S> q, r;
};
/// The result of eig3: a = q diag(d) q^T.
template <int N, class S>
struct Eig {
  MatOf<N, N, S> q;
  VecOf<N, S> d;
};

namespace lib {
// Bodies in linalg.cpp and factor.cpp; S is float, half, double or the traced face of one.
template <int N, class S>
S determinant(const MatOf<N, N, S>& a);
template <int N, class S>
MatOf<N, N, S> inverse(const MatOf<N, N, S>& a);
template <class S>
Svd<2, S> svd2(const MatOf<2, 2, S>& a);
template <class S>
Svd<3, S> svd3(const MatOf<3, 3, S>& a);
template <class S>
Qr<3, S> qr3(const MatOf<3, 3, S>& a);
template <class S>
Eig<3, S> eig3(const MatOf<3, 3, S>& a);

/// The N of an N by N matrix of real numbers; 0 for anything else.
template <class A>
inline constexpr int square_size =
    RealScalar<ElementOf<A>>&& detail::MatSize<HostOf<A>>::rows == detail::MatSize<HostOf<A>>::cols
        ? detail::MatSize<HostOf<A>>::rows
        : 0;

/// Assigns to a variable or an element of an array.
template <class To, class From>
void assign(To&& to, const From& from) {
  constexpr bool same = std::is_same_v<HostOf<To>, HostOf<From>>;
  static_assert(same, "weft: a result of a factorisation is assigned to a variable of another type");
  if constexpr (same) static_cast<To&&>(to) = from;
}
}  // namespace lib

// These functions have no branches and are the same arithmetic on every device and on the host, but that kernels may
// contract products and sums of factorisations; float16 is computed in float32 and rounded once. A NaN in a matrix
// makes NaNs of results. Accuracy: docs/semantics.md.

/// Determinant of a 2x2, 3x3 or 4x4 matrix.
template <MatLike A>
auto determinant(const A& a, Loc loc = Loc::here()) {
  constexpr int N = lib::square_size<A>;
  static_assert(N >= 2 && N <= 4, "weft: determinant() takes 2x2, 3x3 and 4x4 matrices of real numbers");
  if constexpr (N >= 2 && N <= 4) {
    using S = ScalarFaceOf<A>;
    [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
    return lib::determinant<N, S>(lift<S>(a, loc));
  }
}

/// Inverse of a 2x2, 3x3 or 4x4 matrix; the zero matrix if the computed determinant is 0. Elements may have any size:
/// the matrix is scaled to about 1 before it is inverted, so that its determinant neither overflows nor vanishes.
/// Gradient: that of the inverse; zero for the zero matrix.
template <MatLike A>
auto inverse(const A& a, Loc loc = Loc::here()) {
  constexpr int N = lib::square_size<A>;
  static_assert(N >= 2 && N <= 4, "weft: inverse() takes 2x2, 3x3 and 4x4 matrices of real numbers");
  if constexpr (N >= 2 && N <= 4) {
    using S = ScalarFaceOf<A>;
    [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);
    return lib::inverse<N, S>(lift<S>(a, loc));
  }
}

/// Singular value decomposition a = u diag(sigma) v^T of a 2x2 or 3x3 matrix: `auto [u, sigma, v] = svd3(a);`. u and v
/// are rotations (determinant 1), sigma[0] >= sigma[1] >= |sigma[2]|: the last value has the sign of a's determinant.
/// Every matrix has one, the zero matrix included.
/// Gradient: by formula. The rotation of columns of u and v that belong to equal values is undefined, and they stay
/// fixed (equal: up to 2^-12 of the largest value in float32, 2^-26 in float64). This makes no difference to u v^T and
/// to functions of the values alone that treat them alike; u f(sigma) v^T loses a part of its gradient there: write the
/// stretch v diag(sigma) v^T as transpose(u v^T) a.
/// Cost of svd3: about 800 operations in float32, 950 in float64.
/// Source: Jacobi's method on a^T a with exact angles, then one sweep of one-sided rotations (Hestenes 1958) on a v,
/// which makes small singular values as exact as large ones; the conventions are those of McAdams et al. 2011.
template <MatLike A>
auto svd3(const A& a, Loc loc = Loc::here()) {
  static_assert(lib::square_size<A> == 3, "weft: svd3() takes 3x3 matrices of real numbers");
  using S = ScalarFaceOf<A>;
  [[maybe_unused]] detail::CallSite<S> site(loc);
  return lib::svd3<S>(lift<S>(a, loc));
}
template <MatLike A>
auto svd2(const A& a, Loc loc = Loc::here()) {
  static_assert(lib::square_size<A> == 2, "weft: svd2() takes 2x2 matrices of real numbers");
  using S = ScalarFaceOf<A>;
  [[maybe_unused]] detail::CallSite<S> site(loc);
  return lib::svd2<S>(lift<S>(a, loc));
}

/// QR decomposition a = q r of a 3x3 matrix: q a rotation, r upper triangular with r(0,0) >= 0 and r(1,1) >= 0; r(2,2)
/// has the sign of a's determinant.
/// Gradient: a rotation of two zeros stays fixed. Source: rotations of Givens 1958.
template <MatLike A>
auto qr3(const A& a, Loc loc = Loc::here()) {
  static_assert(lib::square_size<A> == 3, "weft: qr3() takes 3x3 matrices of real numbers");
  using S = ScalarFaceOf<A>;
  [[maybe_unused]] detail::CallSite<S> site(loc);
  return lib::qr3<S>(lift<S>(a, loc));
}

/// Eigenvalues and eigenvectors of a symmetric 3x3 matrix: a = q diag(d) q^T, q a rotation whose columns are the
/// vectors, d[0] >= d[1] >= d[2]. Any other matrix is replaced by its symmetric part (a + a^T) / 2.
/// Gradient: as that of svd3; vectors of equal values stay fixed.
/// Source: Jacobi's method with exact angles.
template <MatLike A>
auto eig3(const A& a, Loc loc = Loc::here()) {
  static_assert(lib::square_size<A> == 3, "weft: eig3() takes 3x3 matrices of real numbers");
  using S = ScalarFaceOf<A>;
  [[maybe_unused]] detail::CallSite<S> site(loc);
  return lib::eig3<S>(lift<S>(a, loc));
}

// These forms assign the results to variables or elements of arrays: `svd3(a, u, sigma, v);`, `eig3(a[i], q[i],
// d[i]);`.
template <MatLike A, class U, class Sigma, class V>
void svd3(const A& a, U&& u, Sigma&& sigma, V&& v, Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<ScalarFaceOf<A>> site(loc);
  const auto r = svd3(a, loc);
  lib::assign(u, r.u), lib::assign(sigma, r.sigma), lib::assign(v, r.v);
}
template <MatLike A, class U, class Sigma, class V>
void svd2(const A& a, U&& u, Sigma&& sigma, V&& v, Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<ScalarFaceOf<A>> site(loc);
  const auto r = svd2(a, loc);
  lib::assign(u, r.u), lib::assign(sigma, r.sigma), lib::assign(v, r.v);
}
template <MatLike A, class Q, class R>
void qr3(const A& a, Q&& q, R&& r, Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<ScalarFaceOf<A>> site(loc);
  const auto f = qr3(a, loc);
  lib::assign(q, f.q), lib::assign(r, f.r);
}
template <MatLike A, class Q, class D>
void eig3(const A& a, Q&& q, D&& d, Loc loc = Loc::here()) {
  [[maybe_unused]] detail::CallSite<ScalarFaceOf<A>> site(loc);
  const auto f = eig3(a, loc);
  lib::assign(q, f.q), lib::assign(d, f.d);
}

}  // namespace weft
