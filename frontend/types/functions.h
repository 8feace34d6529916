// The scalar functions of the kernel language on the host: same names, same meaning (docs/semantics.md).
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "scalar.h"

namespace weft {

// All are templates: where <cmath> declares the same function of the same type, a call means that one, and none is
// ambiguous.

namespace detail {
// None where numbers do not meet, without an error: compilers may ask before they look whether a function is meant.
template <class... T>
struct CommonScalar {};
template <class T>
struct CommonScalar<T> {
  using type = T;
};
template <class A, class B, class C, class... D>
requires requires { typename CommonScalar<A, B>::type; }
struct CommonScalar<A, B, C, D...> : CommonScalar<typename CommonScalar<A, B>::type, C, D...> {};
template <class A, class B>
requires(!std::is_same_v<A, half> && !std::is_same_v<B, half>) struct CommonScalar<A, B> : std::common_type<A, B> {
};
template <class B>
struct CommonScalar<half, B> {
  using type = half;
};
template <class A>
requires(!std::is_same_v<A, half>) struct CommonScalar<A, half> {
  using type = half;
};

/// The type in which host numbers of several types meet: as in C++, but a half keeps other numbers from widening it.
template <class... T>
using HostCommon = typename CommonScalar<T...>::type;

/// The type in which the host computes a function of T.
template <RealScalar T>
using HostReal = std::conditional_t<std::is_same_v<T, half>, float, T>;
}  // namespace detail

#define WEFT_STANDARD_1(name, R)                 \
  template <RealScalar T>                        \
  R name(T x) {                                  \
    return R(std::name(detail::HostReal<T>(x))); \
  }
#define WEFT_STANDARD_2(name, R)                                         \
  template <RealScalar T>                                                \
  R name(T x, T y) {                                                     \
    return R(std::name(detail::HostReal<T>(x), detail::HostReal<T>(y))); \
  }
#define WEFT_HOST_standard(name, arity, R) WEFT_STANDARD_##arity(name, R)
#define WEFT_HOST_own(name, arity, R)
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors) WEFT_HOST_##host(name, arity, result)
#include "functions.def"
#undef WEFT_FUNCTION
#undef WEFT_HOST_own
#undef WEFT_HOST_standard
#undef WEFT_STANDARD_2
#undef WEFT_STANDARD_1

/// Rounds to the nearest whole number, halves to the even one.
template <RealScalar T>
T rint(T x) {
  const detail::HostReal<T> v = x, whole = std::trunc(v), part = std::abs(v - whole);
  const bool up = part > detail::HostReal<T>(0.5) ||
                  (part == detail::HostReal<T>(0.5) && std::fmod(whole, detail::HostReal<T>(2)) != 0);
  return T(std::copysign(up ? whole + std::copysign(detail::HostReal<T>(1), v) : whole, v));
}
template <RealScalar T>
T rsqrt(T x) {
  return T(1 / std::sqrt(double(x)));
}
/// The value a * b + c, rounded once.
template <RealScalar T>
T fma(T a, T b, T c) {
  if constexpr (std::is_same_v<T, half>)
    return T(std::fma(double(a), double(b), double(c)));
  else
    return std::fma(a, b, c);
}

namespace detail {
// Wraps where the arithmetic of a signed type would overflow.
template <class T>
constexpr T negated(T x) {
  if constexpr (IntegerScalar<T>)
    return T(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(x));
  else
    return -x;
}

// Unsigned, and never promoted to a signed type: arithmetic in it wraps.
template <IntegerScalar T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

// The operators of kernels, where C++ leaves those of integers undefined.
template <NumericScalar T>
constexpr T sum(T a, T b) {
  if constexpr (IntegerScalar<T>)
    return T(Wrapping<T>(a) + Wrapping<T>(b));
  else
    return T(a + b);
}
template <NumericScalar T>
constexpr T difference(T a, T b) {
  if constexpr (IntegerScalar<T>)
    return T(Wrapping<T>(a) - Wrapping<T>(b));
  else
    return T(a - b);
}
template <NumericScalar T>
constexpr T product(T a, T b) {
  if constexpr (IntegerScalar<T>)
    return T(Wrapping<T>(a) * Wrapping<T>(b));
  else
    return T(a * b);
}
template <NumericScalar T>
constexpr T quotient(T a, T b) {
  if constexpr (IntegerScalar<T>) {
    if (b == T(0)) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return negated(a);
  }
  return T(a / b);
}
template <IntegerScalar T>
constexpr T remainder(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1)) return T(0);
  return b == T(0) ? T(0) : T(a % b);
}
template <IntegerScalar T>
constexpr T shifted_left(T a, T by) {
  return T(Wrapping<T>(a) << (Wrapping<T>(by) % (8 * sizeof(T))));
}
template <IntegerScalar T>
constexpr T shifted_right(T a, T by) {
  return T(a >> (Wrapping<T>(by) % (8 * sizeof(T))));
}
template <Scalar T>
constexpr T bits_of_both(T a, T b) {
  return T(a & b);
}
template <Scalar T>
constexpr T bits_of_either(T a, T b) {
  return T(a | b);
}
template <Scalar T>
constexpr T bits_of_one(T a, T b) {
  return T(a ^ b);
}
}  // namespace detail

template <NumericScalar T>
T abs(T x) {
  if constexpr (RealScalar<T>)
    return T(std::abs(detail::HostReal<T>(x)));
  else
    return x < T(0) ? detail::negated(x) : x;
}
/// The sign of a number: -1, 0 or 1; 0 for both zeros and for NaN.
template <NumericScalar T>
T sign(T x) {
  return x < T(0) ? T(detail::negated(T(1))) : x > T(0) ? T(1) : T(0);
}

/// The smaller one; a number is preferred to a NaN. In parentheses: windows.h may define min and max.
template <NumericScalar A, NumericScalar B>
detail::HostCommon<A, B>(min)(const A& a, const B& b) {
  const detail::HostCommon<A, B> x(a), y(b);
  return x < y || y != y ? x : y;
}
template <NumericScalar A, NumericScalar B>
detail::HostCommon<A, B>(max)(const A& a, const B& b) {
  const detail::HostCommon<A, B> x(a), y(b);
  return y < x || y != y ? x : y;
}
template <NumericScalar T, NumericScalar L, NumericScalar H>
detail::HostCommon<T, L, H> clamp(const T& x, const L& lo, const H& hi) {
  return (min)((max)(x, lo), hi);
}
template <Scalar A, Scalar B>
detail::HostCommon<A, B> select(std::same_as<bool> auto c, const A& a, const B& b) {
  return c ? detail::HostCommon<A, B>(a) : detail::HostCommon<A, B>(b);
}

/// The quotient rounded down. Integers: x / 0 is x, and MIN / -1 is MIN, as in kernels.
template <NumericScalar T>
T floor_div(T a, T b) {
  if constexpr (RealScalar<T>) {
    return T(std::floor(detail::HostReal<T>(T(detail::HostReal<T>(a) / detail::HostReal<T>(b)))));
  } else {
    if (b == T(0)) return a;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return detail::negated(a);
    const T q = T(a / b), r = T(a % b);
    return r != T(0) && (r < T(0)) != (b < T(0)) ? T(q - T(1)) : q;
  }
}
/// The upper half of the full product.
template <IntegerScalar T>
requires(sizeof(T) == 4) T mul_hi(T a, T b) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  return T(Wide(a) * Wide(b) >> 32);
}
/// The number of bits that are set.
template <IntegerScalar T>
T popcount(T x) {
  return T(std::popcount(std::make_unsigned_t<T>(x)));
}

/// Reads the bits of a value as another type of the same width.
template <NumericScalar T, NumericScalar U>
requires(sizeof(T) == sizeof(U)) T bitcast(U x) { return std::bit_cast<T>(x); }

namespace detail {
/// A double rounded to float, for good: GCC 12 takes neighbours that are converted to float and back for what they were
/// before (its vectoriser does, from -O2 on). The empty statement says that the float may be another, and is no code.
constexpr float narrowed(double x) {
  float f = static_cast<float>(x);
#if defined(__GNUC__) && !defined(__clang__)
  if (!std::is_constant_evaluated()) {
#if defined(__SSE2__)
    asm("" : "+x"(f));
#elif defined(__aarch64__)
    asm("" : "+w"(f));
#else
    asm("" : "+m"(f));
#endif
  }
#endif
  return f;
}
}  // namespace detail

/// Converts by value, as `Float(i)` does in kernels: a real number is truncated toward zero to an integer, saturating,
/// NaN gives 0; an integer keeps its low bits.
template <Scalar T, Scalar U>
T cast(U x) {
  if constexpr (IntegerScalar<T> && RealScalar<U>) {
    const double v = double(detail::HostReal<U>(x)), end = std::ldexp(1., std::numeric_limits<T>::digits);
    if (v != v) return T(0);
    if (v >= end) return (std::numeric_limits<T>::max)();
    if (v <= double((std::numeric_limits<T>::min)())) return (std::numeric_limits<T>::min)();
    return T(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != U(0);
  } else if constexpr (std::is_same_v<T, float> && std::is_same_v<U, double>) {
    return detail::narrowed(x);
  } else if constexpr (RealScalar<T> && RealScalar<U>) {
    return T(detail::HostReal<U>(x));
  } else {
    return T(x);
  }
}

}  // namespace weft
