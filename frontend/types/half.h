// The 16-bit IEEE float on the host: storage and exact conversion; arithmetic goes through float.
#pragma once
#include <cstdint>

namespace weft {

/// Bits of the nearest half (ties to even; overflow gives infinity; NaN stays NaN).
std::uint16_t half_bits(float value);
/// Exact.
float half_value(std::uint16_t bits);
/// Rounds once from double (going through float first would round twice).
std::uint16_t half_bits_from_double(double value);

/// IEEE binary16. Two bytes; converts implicitly to float, explicitly from it.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  explicit half(float value) : bits(half_bits(value)) {}
  explicit half(double value) : bits(half_bits_from_double(value)) {}
  explicit half(int value) : bits(half_bits_from_double(value)) {}
  operator float() const { return half_value(bits); }
  static half from_bits(std::uint16_t bits) {
    half h;
    h.bits = bits;
    return h;
  }
};
static_assert(sizeof(half) == 2);

}  // namespace weft
