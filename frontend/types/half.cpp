// Converts between binary16 and the wider floats by integer arithmetic alone, so that it is the same on every host.
#include "half.h"

#include <bit>

namespace weft::detail {

namespace {

/// Rounds the float with the given sign (0 or 1), biased exponent and fraction to half, once.
template <int kFractionBits, int kBias>
std::uint16_t encode(std::uint32_t sign, int biased, std::uint64_t fraction) {
  constexpr int kSpecial = 2 * kBias + 1;
  const std::uint16_t sign_bit = static_cast<std::uint16_t>(sign << 15);
  if (biased == kSpecial) {
    if (fraction == 0) return sign_bit | 0x7c00;
    return static_cast<std::uint16_t>(sign_bit | 0x7e00 | (fraction >> (kFractionBits - 10)));  // quiet, payload kept
  }
  // The wider formats' subnormals are far below half of the smallest half.
  if (biased == 0) return sign_bit;

  const int exponent = biased - kBias;
  if (exponent > 15) return sign_bit | 0x7c00;
  if (exponent < -25) return sign_bit;

  // The significand, including the implicit one, is cut to 11 bits, or to fewer for a subnormal result.
  const std::uint64_t significand = fraction | (1ull << kFractionBits);
  const bool normal = exponent >= -14;
  const int shift = kFractionBits - 10 + (normal ? 0 : -14 - exponent);
  const std::uint64_t kept = significand >> shift;
  const std::uint64_t rest = significand & ((1ull << shift) - 1);
  const std::uint64_t tie = 1ull << (shift - 1);
  const std::uint64_t up = rest > tie || (rest == tie && (kept & 1));
  // The implicit one of `kept` adds itself to the exponent, and so does a carry out of the fraction, up to infinity.
  const std::uint64_t base = normal ? static_cast<std::uint64_t>(exponent + 14) << 10 : 0;
  return static_cast<std::uint16_t>(sign_bit | (base + kept + up));
}

}  // namespace

std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return encode<23, 127>(bits >> 31, static_cast<int>(bits >> 23 & 0xff), bits & 0x7fffff);
}

std::uint16_t half_bits_from_double(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return encode<52, 1023>(static_cast<std::uint32_t>(bits >> 63), static_cast<int>(bits >> 52 & 0x7ff),
                          bits & 0xfffffffffffffull);
}

float half_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  std::uint32_t fraction = bits & 0x3ff;
  std::uint32_t result;
  if (exponent == 31) {
    result = 0x7f800000 | (fraction << 13);
  } else if (exponent != 0) {
    result = ((exponent + 112) << 23) | (fraction << 13);
  } else if (fraction == 0) {
    result = 0;
  } else {
    // A subnormal half is a normal float: its leading one becomes the implicit one.
    const int lead = 31 - std::countl_zero(fraction);
    result = (static_cast<std::uint32_t>(lead + 103) << 23) | ((fraction << (23 - lead)) & 0x7fffff);
  }
  return std::bit_cast<float>(sign | result);
}

}  // namespace weft::detail
