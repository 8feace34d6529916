// Vectors on the host: N scalars, tight in memory (vec3 is 12 bytes).
#pragma once
#include <cstddef>

#include "functions.h"

namespace weft {

template <int N, Scalar T>
struct vec;

/// N elements, named x, y, z, w if there are at most four. Shared by vec (of scalars) and Var<vec>.
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

namespace detail {

/// The value of a literal as T, without the warnings of an implicit conversion.
template <class T, class U>
constexpr T literal_as(U value) {
  if constexpr (std::is_same_v<T, half> && std::is_integral_v<U>)
    return half(double(value));
  else if constexpr (std::is_same_v<T, float> && std::is_same_v<U, double>)
    return narrowed(value);
  else
    return static_cast<T>(value);
}

/// The components that A contributes to a vector of T: one for a number that may stand for a T, N for a vector of T.
template <class A, class T>
inline constexpr int parts_of = LiteralFor<A, T> ? 1 : 0;
template <int N, class T>
inline constexpr int parts_of<vec<N, T>, T> = N;
template <class A>
inline constexpr bool is_part = Scalar<A>;
template <int N, class T>
inline constexpr bool is_part<vec<N, T>> = true;

}  // namespace detail

/// Operators of matrices and quaternions, which work scalar by scalar. `part` follows a name to give its scalar i.
#define WEFT_LINEAR_OPERATORS(Self, T, count, part)                                \
  friend constexpr Self operator+(const Self& a, const Self& b) {                  \
    Self r;                                                                        \
    for (int i = 0; i < count; ++i) r part = T(a part + b part);                   \
    return r;                                                                      \
  }                                                                                \
  friend constexpr Self operator-(const Self& a, const Self& b) {                  \
    Self r;                                                                        \
    for (int i = 0; i < count; ++i) r part = T(a part - b part);                   \
    return r;                                                                      \
  }                                                                                \
  friend constexpr Self operator-(const Self& a) {                                 \
    Self r;                                                                        \
    for (int i = 0; i < count; ++i) r part = detail::negated(a part);              \
    return r;                                                                      \
  }                                                                                \
  template <LiteralFor<T> U>                                                       \
  friend constexpr Self operator*(const Self& a, U s) {                            \
    Self r;                                                                        \
    for (int i = 0; i < count; ++i) r part = T(a part * detail::literal_as<T>(s)); \
    return r;                                                                      \
  }                                                                                \
  template <LiteralFor<T> U>                                                       \
  friend constexpr Self operator*(U s, const Self& a) {                            \
    return a * s;                                                                  \
  }                                                                                \
  template <LiteralFor<T> U>                                                       \
  friend constexpr Self operator/(const Self& a, U s) {                            \
    Self r;                                                                        \
    for (int i = 0; i < count; ++i) r part = T(a part / detail::literal_as<T>(s)); \
    return r;                                                                      \
  }                                                                                \
  friend constexpr Self& operator+=(Self& a, const Self& b) { return a = a + b; }  \
  friend constexpr Self& operator-=(Self& a, const Self& b) { return a = a - b; }  \
  template <LiteralFor<T> U>                                                       \
  friend constexpr Self& operator*=(Self& a, U s) {                                \
    return a = a * s;                                                              \
  }                                                                                \
  template <LiteralFor<T> U>                                                       \
  friend constexpr Self& operator/=(Self& a, U s) {                                \
    return a = a / s;                                                              \
  }

/// A vector of N scalars. Operators work component by component; == and != give one bool.
template <int N, Scalar T>
struct vec : Components<N, T> {
  static_assert(N >= 1);
  using scalar = T;
  static constexpr int size = N;

  constexpr vec() : Components<N, T>{} {}
  /// Sets all components to one number.
  template <LiteralFor<T> U>
  explicit constexpr vec(U all) : Components<N, T>{} {
    for (int i = 0; i < N; ++i) (*this)[i] = detail::literal_as<T>(all);
  }
  /// Joins numbers and shorter vectors that together fill it: vec4{v, 1} for a vec3 v.
  template <class... A>
  requires(sizeof...(A) > 1 && (detail::is_part<A> && ...)) constexpr vec(const A&... parts) : Components<N, T>{} {
    constexpr bool right_types = ((detail::parts_of < A, T >> 0) && ...);
    static_assert(right_types, "weft: a part of a vector is of another element type; convert it");
    if constexpr (right_types) {
      static_assert((detail::parts_of<A, T> + ...) == N,
                    "weft: the parts of a vector do not add up to its number of components");
      int at = 0;
      (put(at, parts), ...);
    }
  }
  /// Converts each component by value (cast).
  template <class U>
  requires(!std::is_same_v<U, T>) explicit constexpr vec(const vec<N, U>& v) : Components<N, T>{} {
    for (int i = 0; i < N; ++i) (*this)[i] = cast<T>(v[i]);
  }

#define WEFT_VEC_OPERATOR(symbol, combine, constraint)                                    \
  friend constexpr vec operator symbol(const vec& a, const vec& b) requires(constraint) { \
    vec r;                                                                                \
    for (int i = 0; i < N; ++i) r[i] = detail::combine(a[i], b[i]);                       \
    return r;                                                                             \
  }                                                                                       \
  friend constexpr vec& operator symbol##=(vec& a, const vec& b) requires(constraint) { return a = a symbol b; }
#define WEFT_VEC_BY_SCALAR(symbol, constraint)                                                             \
  template <LiteralFor<T> U>                                                                               \
  requires(constraint) friend constexpr vec operator symbol(const vec& a, U s) { return a symbol vec(s); } \
  template <LiteralFor<T> U>                                                                               \
  requires(constraint) friend constexpr vec& operator symbol##=(vec& a, U s) { return a = a symbol vec(s); }
#define WEFT_SCALAR_BY_VEC(symbol, constraint) \
  template <LiteralFor<T> U>                   \
  requires(constraint) friend constexpr vec operator symbol(U s, const vec& a) { return vec(s) symbol a; }
  WEFT_VEC_OPERATOR(+, sum, NumericScalar<T>)
  WEFT_VEC_OPERATOR(-, difference, NumericScalar<T>)
  WEFT_VEC_OPERATOR(*, product, NumericScalar<T>)
  WEFT_VEC_OPERATOR(/, quotient, NumericScalar<T>)
  WEFT_VEC_OPERATOR(%, remainder, IntegerScalar<T>)
  WEFT_VEC_OPERATOR(&, bits_of_both, !RealScalar<T>)
  WEFT_VEC_OPERATOR(|, bits_of_either, !RealScalar<T>)
  WEFT_VEC_OPERATOR(^, bits_of_one, !RealScalar<T>)
  WEFT_VEC_OPERATOR(<<, shifted_left, IntegerScalar<T>)
  WEFT_VEC_OPERATOR(>>, shifted_right, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(*, NumericScalar<T>)
  WEFT_VEC_BY_SCALAR(/, NumericScalar<T>)
  WEFT_VEC_BY_SCALAR(%, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(&, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(|, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(^, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(<<, IntegerScalar<T>)
  WEFT_VEC_BY_SCALAR(>>, IntegerScalar<T>)
  WEFT_SCALAR_BY_VEC(*, NumericScalar<T>)
  WEFT_SCALAR_BY_VEC(/, NumericScalar<T>)
#undef WEFT_VEC_OPERATOR
#undef WEFT_VEC_BY_SCALAR
#undef WEFT_SCALAR_BY_VEC
  friend constexpr vec operator-(const vec& a) requires NumericScalar<T> {
    vec r;
    for (int i = 0; i < N; ++i) r[i] = detail::negated(a[i]);
    return r;
  }
  friend constexpr vec operator~(const vec& a) requires IntegerScalar<T> {
    vec r;
    for (int i = 0; i < N; ++i) r[i] = T(~a[i]);
    return r;
  }
  friend constexpr vec operator!(const vec& a) requires std::is_same_v<T, bool> {
    vec r;
    for (int i = 0; i < N; ++i) r[i] = !a[i];
    return r;
  }
  friend constexpr bool operator==(const vec& a, const vec& b) {
    for (int i = 0; i < N; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  template <class A>
  constexpr void put(int& at, const A& part) {
    if constexpr (Scalar<A>)
      (*this)[at++] = detail::literal_as<T>(part);
    else
      for (int i = 0; i < A::size; ++i) (*this)[at++] = part[i];
  }
};

template <int N, class T>
struct Flat<vec<N, T>> {
  using scalar = T;
  static constexpr int count = N;
};

template <int N, class T>
constexpr vec<N, T> select(std::same_as<bool> auto c, const vec<N, T>& a, const vec<N, T>& b) {
  return c ? a : b;
}
/// Selects component by component.
template <int N, class T>
constexpr vec<N, T> select(const vec<N, bool>& c, const vec<N, T>& a, const vec<N, T>& b) {
  vec<N, T> r;
  for (int i = 0; i < N; ++i) r[i] = c[i] ? a[i] : b[i];
  return r;
}

}  // namespace weft
