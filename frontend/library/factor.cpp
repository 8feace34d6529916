// Bodies of SVD, QR and the eigenvalue decomposition, once for both faces: rotations, without branches.
#include "factor_gradient.h"
#include "linalg.h"
#include "matrix_tools.h"

namespace weft::lib {

namespace {

/// Small relative to the rounding errors of a scaled matrix; its square is a normal number.
template <class S>
constexpr HostOf<S> kTiny = sizeof(HostOf<S>) == 4 ? HostOf<S>(1e-18) : HostOf<S>(1e-150);

/// Rotates columns p, q in a product: p c + q s, q c - p s.
template <class S>
struct Rotation {
  S c, s;
};
template <int N, class S>
void rotate(VecOf<N, S>& p, VecOf<N, S>& q, const Rotation<S>& r) {
  const VecOf<N, S> old = p;
  p = old * r.c + q * r.s;
  q = q * r.c - old * r.s;
}

/// Jacobi's rotation, which makes the symmetric matrix (x, o; o, y) diagonal with the larger value first; d = x - y. It
/// comes from the double angle: cos = |d| / h, sin = 2 |o| / h, where h is the difference of the eigenvalues. For d < 0
/// the columns change places as well, so that rotating also sorts.
template <class S>
struct Jacobi {
  Rotation<S> rotation;
  S h;
};
template <class S>
Jacobi<S> jacobi(const S& d, const S& o) {
  using T = HostOf<S>;
  const S e = abs(d) + kTiny<S>, o2 = o + o;
  const S h2 = e * e + o2 * o2, ih = rsqrt(h2);
  const S c2 = T(0.5) + T(0.5) * (e * ih), ic = rsqrt(c2);
  const S large = c2 * ic, small = o * ih * ic;
  const auto swap = d < T(0);
  return {{select(swap, small, large), select(swap, large, small)}, h2 * ih};
}

/// A symmetric matrix: its diagonal, and the other elements, each indexed by the row that it is not in.
template <class S>
struct Symmetric {
  S d[3], o[3];
  int zero = -1;  ///< index in o of the element that the last rotation has made zero; products with it cost nothing

  /// Makes the element (p, q) zero.
  Rotation<S> annihilate(int p, int q) {
    using T = HostOf<S>;
    const int r = 3 - p - q;
    const Jacobi<S> j = jacobi<S>(d[p] - d[q], o[r]);
    const auto& [c, s] = j.rotation;
    const S mean = T(0.5) * (d[p] + d[q]), half_h = T(0.5) * j.h;
    d[p] = mean + half_h;
    d[q] = mean - half_h;
    const S pr = o[q], qr = o[p];
    if (zero == q) {
      o[q] = s * qr;
      o[p] = c * qr;
    } else if (zero == p) {
      o[q] = c * pr;
      o[p] = -(s * pr);
    } else {
      o[q] = c * pr + s * qr;
      o[p] = c * qr - s * pr;
    }
    zero = r;
    return j.rotation;
  }
};

/// A matrix of three orthonormal columns.
template <class S>
struct Frame {
  using V = VecOf<3, S>;
  V c[3];

  /// The product of rotations of the columns 0 1, 0 2 and 1 2.
  static Frame of(const Rotation<S>& a, const Rotation<S>& b, const Rotation<S>& c) {
    const S x = a.c * b.s, y = a.s * b.s;  // the third column, after two rotations, is (-x, -y, b.c)
    return {{V(a.c * b.c, a.s * b.c, b.s), V(-(a.s * c.c + x * c.s), a.c * c.c - y * c.s, b.c * c.s),
             V(a.s * c.s - x * c.c, -(a.c * c.s + y * c.c), b.c * c.c)}};
  }
  void rotate(int p, int q, const Rotation<S>& r) { lib::rotate<3, S>(c[p], c[q], r); }
  /// Removes the rounding errors that rotations have left.
  void orthonormalise() {
    c[0] = c[0] * S(rsqrt(dot(c[0], c[0])));
    const V w = c[1] - c[0] * dot(c[0], c[1]);
    c[1] = w * S(rsqrt(dot(w, w)));
    c[2] = cross(c[0], c[1]);
  }
  MatOf<3, 3, S> matrix() const {
    MatOf<3, 3, S> m;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) m(i, j) = c[j][i];
    return m;
  }
};

/// Returns the eigenvectors in descending order of their values, which a.d then holds. Each sweep triples the number of
/// correct digits.
template <class S>
Frame<S> diagonalise(Symmetric<S>& a, int sweeps) {
  const Rotation<S> r01 = a.annihilate(0, 1), r02 = a.annihilate(0, 2), r12 = a.annihilate(1, 2);
  Frame<S> v = Frame<S>::of(r01, r02, r12);
  for (int k = 1; k < sweeps; ++k) {
    v.rotate(0, 1, a.annihilate(0, 1));
    v.rotate(0, 2, a.annihilate(0, 2));
    v.rotate(1, 2, a.annihilate(1, 2));
  }
  v.orthonormalise();
  return v;
}

// Fewest sweeps after which no matrix of the tests has an error above the rounding errors.
template <class S>
constexpr int kSvdSweeps = sizeof(HostOf<S>) == 4 ? 3 : 4;
template <class S>
constexpr int kEigSweeps = sizeof(HostOf<S>) == 4 ? 4 : 5;

template <int N, class S>
VecOf<N, S> column(const MatOf<N, N, S>& a, int j) {
  VecOf<N, S> c;
  for (int i = 0; i < N; ++i) c[i] = a(i, j);
  return c;
}

/// A unit vector along b; the first axis for zero. b is zero or not small: the first column of a scaled matrix.
template <int N, class S>
VecOf<N, S> direction(const VecOf<N, S>& b) {
  VecOf<N, S> w = b;
  w[0] = w[0] + kTiny<S>;
  return w * S(rsqrt(dot(w, w)));
}

template <class S>
Svd<3, S> svd3_wide(const MatOf<3, 3, S>& any) {
  using T = HostOf<S>;
  using V = VecOf<3, S>;
  const Scaled<3, S> s = scaled<3, S>(any);
  const V a[] = {column<3, S>(s.a, 0), column<3, S>(s.a, 1), column<3, S>(s.a, 2)};

  // Diagonalises a^T a, which loses what is small relative to the square of the norm.
  Symmetric<S> square{{dot(a[0], a[0]), dot(a[1], a[1]), dot(a[2], a[2])},
                      {dot(a[1], a[2]), dot(a[0], a[2]), dot(a[0], a[1])}};
  Frame<S> v = diagonalise<S>(square, kSvdSweeps<S>);

  // Makes the columns of b = a v orthogonal relative to their own lengths, however different those are.
  Frame<S> b;
  for (int k = 0; k < 3; ++k) b.c[k] = a[0] * v.c[k][0] + a[1] * v.c[k][1] + a[2] * v.c[k][2];
  for (const auto& [p, q] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    const V& x = b.c[p];
    const V& y = b.c[q];
    const Rotation<S> r = jacobi<S>(dot(x, x) - dot(y, y), dot(x, y)).rotation;
    b.rotate(p, q, r);
    v.rotate(p, q, r);
  }

  // Splits b = u diag(sigma). A column that is only rounding error may have any direction, and gets one across the
  // first.
  Frame<S> u;
  u.c[0] = direction<3, S>(b.c[0]);
  const V& u0 = u.c[0];
  const V across = b.c[1] - u0 * dot(u0, b.c[1]);
  const auto distinct = dot(across, across) > max(S(T(0.25) * dot(b.c[1], b.c[1])), S(kTiny<S> * kTiny<S>));
  const auto beside_x = abs(u0.x) < T(0.6);
  const S zero = S(T(0));
  const V w(select(distinct, across.x, select(beside_x, zero, S(-u0.y))),
            select(distinct, across.y, select(beside_x, S(-u0.z), u0.x)),
            select(distinct, across.z, select(beside_x, u0.y, zero)));
  u.c[1] = w * S(rsqrt(dot(w, w)));
  u.c[2] = cross(u.c[0], u.c[1]);

  const S s0 = dot(u.c[0], b.c[0]), s1 = min(S(abs(dot(u.c[1], b.c[1]))), s0);
  const S s2 = clamp(S(dot(u.c[2], b.c[2])), S(-s1), s1);
  return {u.matrix(), V(s0 * s.inverse, s1 * s.inverse, s2 * s.inverse), v.matrix()};
}

template <class S>
Svd<2, S> svd2_wide(const MatOf<2, 2, S>& any) {
  using V = VecOf<2, S>;
  const Scaled<2, S> s = scaled<2, S>(any);
  V b0 = column<2, S>(s.a, 0), b1 = column<2, S>(s.a, 1);
  const Rotation<S> r = jacobi<S>(dot(b0, b0) - dot(b1, b1), dot(b0, b1)).rotation;
  rotate<2, S>(b0, b1, r);
  const V u0 = direction<2, S>(b0), u1(-u0.y, u0.x);
  const S s0 = dot(u0, b0), s1 = clamp(S(dot(u1, b1)), S(-s0), s0);
  return {MatOf<2, 2, S>(u0.x, u1.x, u0.y, u1.y), V(s0 * s.inverse, s1 * s.inverse),
          MatOf<2, 2, S>(r.c, S(-r.s), r.s, r.c)};
}

/// The rotation that takes (x, y) to (|.|, 0).
template <class S>
Rotation<S> givens(const S& x, const S& y) {
  using T = HostOf<S>;
  const S r2 = x * x + y * y;
  const auto none = r2 <= kTiny<S> * kTiny<S>;  // false for a NaN, which stays one
  const S ir = rsqrt(S(select(none, S(T(1)), r2)));
  return {select(none, S(T(1)), S(x * ir)), select(none, S(T(0)), S(y * ir))};
}

template <class S>
Qr<3, S> qr3_wide(const MatOf<3, 3, S>& any) {
  using V = VecOf<3, S>;
  const Scaled<3, S> s = scaled<3, S>(any);
  V r[3];
  for (int i = 0; i < 3; ++i) r[i] = V(s.a(i, 0), s.a(i, 1), s.a(i, 2));
  auto eliminate = [&](int p, int q) {
    const Rotation<S> g = givens<S>(r[p][p], r[q][p]);
    rotate<3, S>(r[p], r[q], g);
    return g;
  };
  const Rotation<S> g01 = eliminate(0, 1), g02 = eliminate(0, 2), g12 = eliminate(1, 2);
  const S zero = S(HostOf<S>(0));
  MatOf<3, 3, S> upper;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) upper(i, j) = j < i ? zero : S(r[i][j] * s.inverse);
  return {Frame<S>::of(g01, g02, g12).matrix(), upper};
}

template <class S>
Eig<3, S> eig3_wide(const MatOf<3, 3, S>& any) {
  using T = HostOf<S>;
  using V = VecOf<3, S>;
  const Scaled<3, S> s = scaled<3, S>(any);
  auto mean = [&](int i, int j) { return S(T(0.5) * (s.a(i, j) + s.a(j, i))); };
  const Symmetric<S> a{{s.a(0, 0), s.a(1, 1), s.a(2, 2)}, {mean(1, 2), mean(0, 2), mean(0, 1)}};
  Symmetric<S> rest = a;
  const Frame<S> q = diagonalise<S>(rest, kEigSweeps<S>);
  // Rayleigh quotients are free of the rounding errors of the sweeps.
  S d[3];
  for (int k = 0; k < 3; ++k) {
    const V& x = q.c[k];
    const V ax(a.d[0] * x.x + a.o[2] * x.y + a.o[1] * x.z, a.o[2] * x.x + a.d[1] * x.y + a.o[0] * x.z,
               a.o[1] * x.x + a.o[0] * x.y + a.d[2] * x.z);
    d[k] = dot(x, ax) * s.inverse;
  }
  const S d1 = min(d[1], d[0]);
  return {q.matrix(), V(d[0], d1, min(d[2], d1))};
}

}  // namespace

template <class S>
Svd<3, S> svd3(const MatOf<3, 3, S>& a) {
  using W = Wide<S>;
  const Svd<3, W> r = factorised<3, W>(to_precision<W, 3, 3, S>(a), svd3_wide<W>);
  return {to_precision<S, 3, 3, W>(r.u), to_precision<S, 3, W>(r.sigma), to_precision<S, 3, 3, W>(r.v)};
}
template <class S>
Svd<2, S> svd2(const MatOf<2, 2, S>& a) {
  using W = Wide<S>;
  const Svd<2, W> r = factorised<2, W>(to_precision<W, 2, 2, S>(a), svd2_wide<W>);
  return {to_precision<S, 2, 2, W>(r.u), to_precision<S, 2, W>(r.sigma), to_precision<S, 2, 2, W>(r.v)};
}
template <class S>
Qr<3, S> qr3(const MatOf<3, 3, S>& a) {
  using W = Wide<S>;
  const Qr<3, W> r = qr3_wide<W>(to_precision<W, 3, 3, S>(a));
  return {to_precision<S, 3, 3, W>(r.q), to_precision<S, 3, 3, W>(r.r)};
}
template <class S>
Eig<3, S> eig3(const MatOf<3, 3, S>& a) {
  using W = Wide<S>;
  const Eig<3, W> r = factorised<3, W>(to_precision<W, 3, 3, S>(a), eig3_wide<W>);
  return {to_precision<S, 3, 3, W>(r.q), to_precision<S, 3, W>(r.d)};
}

#define WEFT_FACTORISATIONS(S)                       \
  template Svd<2, S> svd2<S>(const MatOf<2, 2, S>&); \
  template Svd<3, S> svd3<S>(const MatOf<3, 3, S>&); \
  template Qr<3, S> qr3<S>(const MatOf<3, 3, S>&);   \
  template Eig<3, S> eig3<S>(const MatOf<3, 3, S>&);
WEFT_FACTORISATIONS(half)
WEFT_FACTORISATIONS(float)
WEFT_FACTORISATIONS(double)
WEFT_FACTORISATIONS(Var<half>)
WEFT_FACTORISATIONS(Var<float>)
WEFT_FACTORISATIONS(Var<double>)
#undef WEFT_FACTORISATIONS

}  // namespace weft::lib
