// Matrices on the host: R rows by C columns, row-major and tight in memory.
#pragma once
#include "vec.h"

namespace weft {

/// A matrix. `m(i, j)` is row i, column j.
template <int R, int C, Scalar T>
struct mat {
  static_assert(R >= 1 && C >= 1);
  using scalar = T;
  static constexpr int rows = R, cols = C;
  T m[R * C];

  constexpr mat() : m{} {}
  /// All R * C elements, row by row.
  template <class... A>
  requires(sizeof...(A) == R * C && R * C > 1 && (std::convertible_to<A, T> && ...)) constexpr mat(A... parts)
      : m{static_cast<T>(parts)...} {}

  static constexpr mat identity() requires(R == C) {
    mat a;
    for (int i = 0; i < R; ++i) a(i, i) = T(1);
    return a;
  }

  constexpr T& operator()(int i, int j) { return m[i * C + j]; }
  constexpr const T& operator()(int i, int j) const { return m[i * C + j]; }

  friend constexpr mat operator+(mat a, const mat& b) {
    for (int i = 0; i < R * C; ++i) a.m[i] = T(a.m[i] + b.m[i]);
    return a;
  }
  friend constexpr mat operator-(mat a, const mat& b) {
    for (int i = 0; i < R * C; ++i) a.m[i] = T(a.m[i] - b.m[i]);
    return a;
  }
  friend constexpr mat operator*(mat a, T s) {
    for (int i = 0; i < R * C; ++i) a.m[i] = T(a.m[i] * s);
    return a;
  }
  friend constexpr mat operator*(T s, mat a) { return a * s; }
  friend constexpr vec<R, T> operator*(const mat& a, const vec<C, T>& v) {
    vec<R, T> r;
    for (int i = 0; i < R; ++i) {
      T sum = T(a(i, 0) * v[0]);
      for (int j = 1; j < C; ++j) sum = T(sum + a(i, j) * v[j]);
      r[i] = sum;
    }
    return r;
  }
  friend constexpr bool operator==(const mat& a, const mat& b) {
    for (int i = 0; i < R * C; ++i)
      if (!(a.m[i] == b.m[i])) return false;
    return true;
  }
};

template <int R, int K, int C, class T>
constexpr mat<R, C, T> operator*(const mat<R, K, T>& a, const mat<K, C, T>& b) {
  mat<R, C, T> r;
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < C; ++j) {
      T sum = T(a(i, 0) * b(0, j));
      for (int k = 1; k < K; ++k) sum = T(sum + a(i, k) * b(k, j));
      r(i, j) = sum;
    }
  return r;
}

template <int R, int C, class T>
constexpr mat<C, R, T> transpose(const mat<R, C, T>& a) {
  mat<C, R, T> r;
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < C; ++j) r(j, i) = a(i, j);
  return r;
}

template <int R, int C, class T>
struct Flat<mat<R, C, T>> {
  using scalar = T;
  static constexpr int count = R * C;
};

using mat22 = mat<2, 2, float>;
using mat33 = mat<3, 3, float>;
using mat44 = mat<4, 4, float>;
using mat22d = mat<2, 2, double>;
using mat33d = mat<3, 3, double>;
using mat44d = mat<4, 4, double>;
static_assert(sizeof(mat33) == 36 && std::is_trivially_copyable_v<mat44>);

}  // namespace weft
