// Vectors on the host: N scalars, tight in memory (vec3 is 12 bytes).
#pragma once
#include <cmath>
#include <cstddef>

#include "scalar.h"

namespace weft {

/// N elements, named x, y, z, w up to four of them. Shared by vec (of scalars), Var<vec> and Ref<vec>.
template <int N, class E>
struct Components {
  E c[N];
  constexpr E& operator[](int i) { return c[i]; }
  constexpr const E& operator[](int i) const { return c[i]; }
};
template <class E>
struct Components<2, E> {
  E x, y;
  constexpr E& operator[](int i) { return i == 0 ? x : y; }
  constexpr const E& operator[](int i) const { return i == 0 ? x : y; }
};
template <class E>
struct Components<3, E> {
  E x, y, z;
  constexpr E& operator[](int i) { return i == 0 ? x : i == 1 ? y : z; }
  constexpr const E& operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
};
template <class E>
struct Components<4, E> {
  E x, y, z, w;
  constexpr E& operator[](int i) { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
  constexpr const E& operator[](int i) const { return i == 0 ? x : i == 1 ? y : i == 2 ? z : w; }
};

/// A vector of N scalars. Operators work component by component.
template <int N, Scalar T>
struct vec : Components<N, T> {
  static_assert(N >= 1);
  using scalar = T;
  static constexpr int size = N;

  constexpr vec() : Components<N, T>{} {}
  /// All components equal.
  explicit constexpr vec(T all) : Components<N, T>{} {
    for (int i = 0; i < N; ++i) (*this)[i] = all;
  }
  template <class... A>
  requires(sizeof...(A) == N && N > 1 && (std::convertible_to<A, T> && ...)) constexpr vec(A... parts)
      : Components<N, T>{static_cast<T>(parts)...} {}

  friend constexpr vec operator+(vec a, const vec& b) { return a += b; }
  friend constexpr vec operator-(vec a, const vec& b) { return a -= b; }
  friend constexpr vec operator*(vec a, const vec& b) { return a *= b; }
  friend constexpr vec operator/(vec a, const vec& b) { return a /= b; }
  friend constexpr vec operator*(vec a, T s) { return a *= vec(s); }
  friend constexpr vec operator*(T s, vec a) { return a *= vec(s); }
  friend constexpr vec operator/(vec a, T s) { return a /= vec(s); }
  friend constexpr vec operator-(vec a) { return a *= vec(T(-1)); }
  friend constexpr vec& operator+=(vec& a, const vec& b) {
    for (int i = 0; i < N; ++i) a[i] = T(a[i] + b[i]);
    return a;
  }
  friend constexpr vec& operator-=(vec& a, const vec& b) {
    for (int i = 0; i < N; ++i) a[i] = T(a[i] - b[i]);
    return a;
  }
  friend constexpr vec& operator*=(vec& a, const vec& b) {
    for (int i = 0; i < N; ++i) a[i] = T(a[i] * b[i]);
    return a;
  }
  friend constexpr vec& operator*=(vec& a, T s) { return a *= vec(s); }
  friend constexpr vec& operator/=(vec& a, T s) { return a /= vec(s); }
  friend constexpr vec& operator/=(vec& a, const vec& b) {
    for (int i = 0; i < N; ++i) a[i] = T(a[i] / b[i]);
    return a;
  }
  friend constexpr bool operator==(const vec& a, const vec& b) {
    for (int i = 0; i < N; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }
};

template <int N, class T>
struct Flat<vec<N, T>> {
  using scalar = T;
  static constexpr int count = N;
};

template <int N, class T>
constexpr T dot(const vec<N, T>& a, const vec<N, T>& b) {
  T sum = T(a[0] * b[0]);
  for (int i = 1; i < N; ++i) sum = T(sum + a[i] * b[i]);
  return sum;
}
template <class T>
constexpr vec<3, T> cross(const vec<3, T>& a, const vec<3, T>& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
template <int N, RealScalar T>
T length(const vec<N, T>& a) {
  return T(std::sqrt(dot(a, a)));
}
/// a / |a|; zero for a zero vector.
template <int N, RealScalar T>
vec<N, T> normalize(const vec<N, T>& a) {
  T l = length(a);
  return l > T(0) ? a / l : vec<N, T>();
}

template <int N, class T>
constexpr vec<N, T> select(std::same_as<bool> auto c, const vec<N, T>& a, const vec<N, T>& b) {
  return c ? a : b;
}

using vec2 = vec<2, float>;
using vec3 = vec<3, float>;
using vec4 = vec<4, float>;
using vec2d = vec<2, double>;
using vec3d = vec<3, double>;
using vec4d = vec<4, double>;
using vec2h = vec<2, half>;
using vec3h = vec<3, half>;
using vec4h = vec<4, half>;
using vec2i = vec<2, int>;
using vec3i = vec<3, int>;
using vec4i = vec<4, int>;
static_assert(sizeof(vec3) == 12 && alignof(vec4) == 4 && std::is_trivially_copyable_v<vec3>);

}  // namespace weft
