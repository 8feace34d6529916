// Matrices on the host: R rows by C columns, row-major and tight in memory.
#pragma once
#include "vec.h"

namespace weft {

/// An R by C matrix. `m(i, j)` is row i, column j. Products are those of matrices; + and - work element by element.
template <int R, int C, Scalar T>
struct mat {
  static_assert(R >= 1 && C >= 1);
  using scalar = T;
  static constexpr int rows = R, cols = C;
  T m[R * C];

  constexpr mat() : m{} {}
  /// Sets all elements to one number.
  template <LiteralFor<T> U>
  explicit constexpr mat(U all) : m{} {
    for (int i = 0; i < R * C; ++i) m[i] = detail::literal_as<T>(all);
  }
  /// Takes all R * C elements, row by row.
  template <class... A>
  requires(sizeof...(A) == R * C && R * C > 1 && (LiteralFor<A, T> && ...)) constexpr mat(const A&... parts)
      : m{detail::literal_as<T>(parts)...} {}
  /// Converts each element by value (cast).
  template <class U>
  requires(!std::is_same_v<U, T>) explicit constexpr mat(const mat<R, C, U>& a) : m{} {
    for (int i = 0; i < R * C; ++i) m[i] = cast<T>(a.m[i]);
  }

  static constexpr mat identity() requires(R == C) {
    mat a;
    for (int i = 0; i < R; ++i) a(i, i) = T(1);
    return a;
  }

  constexpr T& operator()(int i, int j) { return m[i * C + j]; }
  constexpr const T& operator()(int i, int j) const { return m[i * C + j]; }

  /// Rows and columns are copies, and const, because an assignment to them would be lost.
  constexpr const vec<C, T> row(int i) const {
    vec<C, T> r;
    for (int j = 0; j < C; ++j) r[j] = (*this)(i, j);
    return r;
  }
  constexpr const vec<R, T> col(int j) const {
    vec<R, T> r;
    for (int i = 0; i < R; ++i) r[i] = (*this)(i, j);
    return r;
  }
  constexpr void set_row(int i, const vec<C, T>& v) {
    for (int j = 0; j < C; ++j) (*this)(i, j) = v[j];
  }
  constexpr void set_col(int j, const vec<R, T>& v) {
    for (int i = 0; i < R; ++i) (*this)(i, j) = v[i];
  }

  WEFT_LINEAR_OPERATORS(mat, T, (R * C), .m[i])
  friend constexpr vec<R, T> operator*(const mat& a, const vec<C, T>& v) {
    vec<R, T> r;
    for (int i = 0; i < R; ++i) {
      T sum = T(a(i, 0) * v[0]);
      for (int j = 1; j < C; ++j) sum = T(sum + a(i, j) * v[j]);
      r[i] = sum;
    }
    return r;
  }
  /// Multiplies by the vector as a row.
  friend constexpr vec<C, T> operator*(const vec<R, T>& v, const mat& a) {
    vec<C, T> r;
    for (int j = 0; j < C; ++j) {
      T sum = T(v[0] * a(0, j));
      for (int i = 1; i < R; ++i) sum = T(sum + v[i] * a(i, j));
      r[j] = sum;
    }
    return r;
  }
  friend constexpr mat& operator*=(mat& a, const mat& b) requires(R == C) { return a = a * b; }
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
struct Flat<mat<R, C, T>> {
  using scalar = T;
  static constexpr int count = R * C;
};

template <int R, int C, class T>
constexpr mat<R, C, T> select(std::same_as<bool> auto c, const mat<R, C, T>& a, const mat<R, C, T>& b) {
  return c ? a : b;
}

}  // namespace weft
