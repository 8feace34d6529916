// Bodies of determinant and inverse, once for both faces.
#include "linalg.h"

#include "matrix_tools.h"

namespace weft::lib {

namespace {

/// Determinants of the 2x2 blocks of two rows: columns 01, 02, 03, 12, 13, 23.
template <class S>
struct Minors {
  S d[6];
  Minors(const MatOf<4, 4, S>& a, int p, int q) {
    int k = 0;
    for (int i = 0; i < 4; ++i)
      for (int j = i + 1; j < 4; ++j) d[k++] = a(p, i) * a(q, j) - a(p, j) * a(q, i);
  }
};
/// Expands along the upper two rows (Laplace).
template <class S>
S determinant_of(const Minors<S>& u, const Minors<S>& l) {
  return u.d[0] * l.d[5] - u.d[1] * l.d[4] + u.d[2] * l.d[3] + u.d[3] * l.d[2] - u.d[4] * l.d[1] + u.d[5] * l.d[0];
}

template <int N, class S>
VecOf<N, S> row(const MatOf<N, N, S>& a, int i) {
  VecOf<N, S> r;
  for (int j = 0; j < N; ++j) r[j] = a(i, j);
  return r;
}

template <int N, class S>
S determinant_wide(const MatOf<N, N, S>& a) {
  if constexpr (N == 2)
    return a(0, 0) * a(1, 1) - a(0, 1) * a(1, 0);
  else if constexpr (N == 3)
    return dot(row<3, S>(a, 0), cross(row<3, S>(a, 1), row<3, S>(a, 2)));
  else
    return determinant_of<S>(Minors<S>(a, 0, 1), Minors<S>(a, 2, 3));
}

/// The transposed matrix of cofactors, and the determinant.
template <int N, class S>
struct Adjugate {
  MatOf<N, N, S> a;
  S determinant;
};
template <class S>
Adjugate<2, S> adjugate(const MatOf<2, 2, S>& a) {
  return {MatOf<2, 2, S>(a(1, 1), S(-a(0, 1)), S(-a(1, 0)), a(0, 0)), determinant_wide<2, S>(a)};
}
template <class S>
Adjugate<3, S> adjugate(const MatOf<3, 3, S>& a) {
  const VecOf<3, S> r[] = {row<3, S>(a, 0), row<3, S>(a, 1), row<3, S>(a, 2)};
  const VecOf<3, S> c[] = {cross(r[1], r[2]), cross(r[2], r[0]), cross(r[0], r[1])};
  Adjugate<3, S> out{{}, dot(r[0], c[0])};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) out.a(i, j) = c[j][i];
  return out;
}
template <class S>
Adjugate<4, S> adjugate(const MatOf<4, 4, S>& a) {
  const Minors<S> upper(a, 0, 1), lower(a, 2, 3);
  // The element at (i, j) is the cofactor of (j, i): row `other` shares a pair with row j, the minors are those of the
  // other pair, and the columns are those other than i.
  static constexpr int columns[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
  static constexpr int minor_of[4][4] = {{-1, 0, 1, 2}, {0, -1, 3, 4}, {1, 3, -1, 5}, {2, 4, 5, -1}};
  Adjugate<4, S> out{{}, determinant_of<S>(upper, lower)};
  for (int j = 0; j < 4; ++j) {
    const int other = j ^ 1;
    const Minors<S>& m = j < 2 ? lower : upper;
    for (int i = 0; i < 4; ++i) {
      const int p = columns[i][0], q = columns[i][1], r = columns[i][2];
      const S cofactor =
          a(other, p) * m.d[minor_of[q][r]] - a(other, q) * m.d[minor_of[p][r]] + a(other, r) * m.d[minor_of[p][q]];
      out.a(i, j) = (i + j) % 2 == 0 ? cofactor : S(-cofactor);
    }
  }
  return out;
}

template <int N, class S>
MatOf<N, N, S> inverse_wide(const MatOf<N, N, S>& any) {
  using T = HostOf<S>;
  const Scaled<N, S> s = scaled<N, S>(any);
  const Adjugate<N, S> adj = adjugate<S>(s.a);
  const auto singular = adj.determinant == T(0);
  const S factor = select(singular, S(T(0)), S(s.factor / select(singular, S(T(1)), adj.determinant)));
  MatOf<N, N, S> out;
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) out(i, j) = adj.a(i, j) * factor;
  return out;
}

}  // namespace

template <int N, class S>
S determinant(const MatOf<N, N, S>& a) {
  using W = Wide<S>;
  return S(determinant_wide<N, W>(to_precision<W, N, N, S>(a)));
}
template <int N, class S>
MatOf<N, N, S> inverse(const MatOf<N, N, S>& a) {
  using W = Wide<S>;
  return to_precision<S, N, N, W>(inverse_wide<N, W>(to_precision<W, N, N, S>(a)));
}

#define WEFT_SIZES(S)                                           \
  template S determinant<2, S>(const MatOf<2, 2, S>&);          \
  template S determinant<3, S>(const MatOf<3, 3, S>&);          \
  template S determinant<4, S>(const MatOf<4, 4, S>&);          \
  template MatOf<2, 2, S> inverse<2, S>(const MatOf<2, 2, S>&); \
  template MatOf<3, 3, S> inverse<3, S>(const MatOf<3, 3, S>&); \
  template MatOf<4, 4, S> inverse<4, S>(const MatOf<4, 4, S>&);
WEFT_SIZES(half)
WEFT_SIZES(float)
WEFT_SIZES(double)
WEFT_SIZES(Var<half>)
WEFT_SIZES(Var<float>)
WEFT_SIZES(Var<double>)
#undef WEFT_SIZES

}  // namespace weft::lib
