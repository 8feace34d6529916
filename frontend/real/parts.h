// The parts of floating-point numbers, for the bodies of real functions: signs, exponents, nearest whole numbers.
#pragma once
#include <array>
#include <bit>
#include <cstdint>

#include "../language/control.h"

namespace weft::lib {

using Bool = Var<bool>;
using Int = Var<std::int32_t>;
using UInt = Var<std::uint32_t>;
using UInt64 = Var<std::uint64_t>;
using Float = Var<float>;
using Double = Var<double>;

inline UInt bits(const Float& x) { return bitcast<std::uint32_t>(x); }
inline UInt64 bits(const Double& x) { return bitcast<std::uint64_t>(x); }
inline Float from_bits(const UInt& u) { return bitcast<float>(u); }
inline Double from_bits(const UInt64& u) { return bitcast<double>(u); }

/// The sign bit of x; all others are 0.
inline UInt sign_bit(const Float& x) { return bits(x) & 0x80000000u; }
inline UInt64 sign_bit(const Double& x) { return bits(x) & 0x8000000000000000ull; }

/// x with its sign changed where the sign bit of `sign` is set.
template <class S, class U>
S flip_sign(const S& x, const U& sign) {
  return from_bits(U(bits(x) ^ sign));
}

/// a[0] + x (a[1] + x (...)).
template <class S, class T, std::size_t N>
S polynomial(const S& x, const std::array<T, N>& a) {
  S sum = a[N - 1];
  for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + a[k];
  return sum;
}

/// x limited to [low, high]; a NaN stays one. (clamp() would make it a number, at twice the cost.)
template <class S, class T>
S limited(const S& x, T low, T high) {
  S below = select(x > high, S(high), x);
  return select(below < low, S(low), below);
}

/// The whole number nearest to a number, ties to even.
///
/// From 1.5 * 2^digits on, floats are whole numbers whose low bits are their value: a sum with that number rounds, and
/// gives the whole number both as bits and, after a subtraction, as a float. That spares the conversion to an integer,
/// which must saturate (docs/semantics.md).
struct NearestFloat {
  Float value;
  Int number;
};
/// \param x  abs(x) < 2^22, or the number is any
inline NearestFloat nearest(const Float& x) {
  constexpr float shift = 0x1.8p23f;
  const Float shifted = x + shift;
  return {shifted - shift, bitcast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(shift)};
}
struct NearestDouble {
  Double value;
  UInt64 number;  ///< in the low 51 bits, in two's complement; the bits above are any
};
/// \param x  abs(x) < 2^51, or the number is any
inline NearestDouble nearest(const Double& x) {
  constexpr double shift = 0x1.8p52;
  const Double shifted = x + shift;
  return {shifted - shift, bits(shifted)};
}

/// 2^n, for -126 <= n <= 127.
inline Float power_of_two(const Int& n) { return bitcast<float>((n + 127) << 23); }
/// 2^n, for -1022 <= n <= 1023. The shift drops the bits that nearest() leaves open.
inline Double power_of_two(const UInt64& n) { return from_bits(UInt64((n + 1023) << 52)); }

/// Whether a number is odd; false for infinities. Large numbers are even.
template <class S>
Bool is_odd(const S& whole) {
  const S half = whole * 0.5f;
  return trunc(half) != half;
}

}  // namespace weft::lib
