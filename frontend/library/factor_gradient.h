// Gradients of the factorisations: how the factors rotate when the matrix changes.
//
// A factor is a rotation q; it changes by q w for a skew matrix w, whose elements are those of the matrix's change in
// the factors' bases, divided by differences of singular values or eigenvalues. The rotation of vectors with equal
// values is undefined, and 0 is chosen there. The rotation u v^T of a polar decomposition does not depend on this
// choice and keeps its gradient: sums and differences of the rotations of u and v are kept apart, and only the former
// are divided by differences of values. A function q f(d) q^T does not keep it: it loses a term 0 / 0, the vectors'
// gradient over the difference of values.
#pragma once
#include <limits>

#include "../language/own_gradient.h"
#include "linalg.h"
#include "matrix_tools.h"

namespace weft::lib {

/// 1 / x, or 0 if x is negligible relative to `size`. Differences of nearly equal values are mostly rounding error,
/// which would multiply an invariant function's gradient, a difference of equal numbers: the limit at the root of the
/// precision makes both errors as small as they get.
template <class S>
S reciprocal_of_gap(const S& x, const S& size) {
  using T = HostOf<S>;
  constexpr T nothing = sizeof(T) == 4 ? T(0x1p-12) : T(0x1p-26);
  const auto equal = abs(x) <= size * nothing;
  return select(equal, S(T(0)), S(T(1) / select(equal, S(T(1)), x)));
}

/// The change of a matrix: zero, with the gradient of the matrix, scaled as the matrix would be.
template <int N, class S>
struct Change {
  MatOf<N, N, S> of;
  S factor, inverse;

  explicit Change(const MatOf<N, N, S>& a) {
    using T = HostOf<S>;
    const Scaled<N, S> s = scaled<N, S>(detach(a));
    factor = s.factor, inverse = s.inverse;
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < N; ++j) {
        const S x = select(isfinite(a(i, j)), a(i, j), S(T(0)));
        of(i, j) = (x - detach(x)) * factor;
      }
  }
};

/// Rotates columns i and j of q by w, and adds the result to `change`.
template <int N, class S>
void turn(MatOf<N, N, S>& change, const MatOf<N, N, S>& q, int i, int j, const S& w) {
  for (int k = 0; k < N; ++k) {
    change(k, j) += q(k, i) * w;
    change(k, i) -= q(k, j) * w;
  }
}

template <int R, int C, class S>
MatOf<R, C, S> with_gradient_of(const MatOf<R, C, S>& value, const MatOf<R, C, S>& like) {
  MatOf<R, C, S> r;
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < C; ++j) r(i, j) = with_gradient_of<S>(value(i, j), like(i, j));
  return r;
}

/// \param r  the decomposition of a, without a gradient
template <int N, class S>
Svd<N, S> with_gradient(const Svd<N, S>& r, const MatOf<N, N, S>& a) {
  using T = HostOf<S>;
  const Change<N, S> change(a);
  // For fixed u and v, s changes by the diagonal of p; the rest is w_u s - s w_v.
  const MatOf<N, N, S> p = transpose(r.u) * change.of * r.v;
  MatOf<N, N, S> du, dv;
  Svd<N, S> out;
  const S size = r.sigma[0] * change.factor;
  for (int i = 0; i < N; ++i) {
    out.sigma[i] = with_gradient_of<S>(r.sigma[i], p(i, i) * change.inverse);
    for (int j = i + 1; j < N; ++j) {
      const S si = r.sigma[i] * change.factor, sj = r.sigma[j] * change.factor;
      const S both = (p(i, j) + p(j, i)) * reciprocal_of_gap<S>(sj - si, size);
      const S apart = (p(i, j) - p(j, i)) * reciprocal_of_gap<S>(sj + si, size);
      turn<N, S>(du, r.u, i, j, (both + apart) * T(0.5));
      turn<N, S>(dv, r.v, i, j, (both - apart) * T(0.5));
    }
  }
  out.u = with_gradient_of<N, N, S>(r.u, du);
  out.v = with_gradient_of<N, N, S>(r.v, dv);
  return out;
}

/// \param r  eigenvalues and eigenvectors of a, without a gradient
template <class S>
Eig<3, S> with_gradient(const Eig<3, S>& r, const MatOf<3, 3, S>& a) {
  using T = HostOf<S>;
  const Change<3, S> change(a);
  const MatOf<3, 3, S> p = transpose(r.q) * change.of * r.q;
  MatOf<3, 3, S> dq;
  Eig<3, S> out;
  const S size = max(S(abs(r.d[0])), S(abs(r.d[2]))) * change.factor;
  for (int i = 0; i < 3; ++i) {
    out.d[i] = with_gradient_of<S>(r.d[i], p(i, i) * change.inverse);
    for (int j = i + 1; j < 3; ++j) {
      const S gap = r.d[j] * change.factor - r.d[i] * change.factor;
      turn<3, S>(dq, r.q, i, j, (p(i, j) + p(j, i)) * T(0.5) * reciprocal_of_gap<S>(gap, size));
    }
  }
  out.q = with_gradient_of<3, 3, S>(r.q, dq);
  return out;
}

/// Evaluates f(a), a factorisation, with the gradient above.
template <int N, class S, class F>
auto factorised(const MatOf<N, N, S>& a, F f) {
  if constexpr (any_traced<S>) {
    const OwnPiece piece;
    return tracing_adjoint() ? with_gradient(f(detach(a)), a) : f(a);
  } else {
    return f(a);
  }
}

}  // namespace weft::lib
