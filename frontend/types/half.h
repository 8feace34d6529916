// The 16-bit IEEE float on the host: storage, exact conversion, and arithmetic that rounds each operation.
#pragma once
#include <cstdint>
#include <type_traits>

namespace weft {

namespace detail {
/// The bits of the nearest half (ties to even; overflow gives infinity; NaN stays NaN).
std::uint16_t half_bits(float value);
/// The value of a half, which is exact.
float half_value(std::uint16_t bits);
/// Rounds once from double (a conversion through float would round twice).
std::uint16_t half_bits_from_double(double value);
}  // namespace detail

/// IEEE binary16 in two bytes; converts implicitly to float, explicitly from it. Each of + - * / is rounded to half, as
/// in kernels; a number of another type adapts to the half operand (`2 * h` is a half).
struct half {
  std::uint16_t bits = 0;

  half() = default;
  explicit half(float value) : bits(detail::half_bits(value)) {}
  explicit half(double value) : bits(detail::half_bits_from_double(value)) {}
  template <class U>
  requires std::is_integral_v<U>
  explicit half(U value) : bits(detail::half_bits_from_double(double(value))) {}
  operator float() const { return detail::half_value(bits); }
  static half from_bits(std::uint16_t bits) {
    half h;
    h.bits = bits;
    return h;
  }

  friend half operator-(half a) { return from_bits(a.bits ^ 0x8000); }
#define WEFT_HALF_ARITHMETIC(symbol)                                                        \
  friend half operator symbol(half a, half b) { return half(float(a) symbol float(b)); }    \
  template <class U>                                                                        \
  requires std::is_arithmetic_v<U>                                                          \
  friend half operator symbol(half a, U b) { return half(float(a) symbol float(half(b))); } \
  template <class U>                                                                        \
  requires std::is_arithmetic_v<U>                                                          \
  friend half operator symbol(U a, half b) { return half(float(half(a)) symbol float(b)); } \
  half& operator symbol##=(half b) { return *this = *this symbol b; }
  WEFT_HALF_ARITHMETIC(+)
  WEFT_HALF_ARITHMETIC(-)
  WEFT_HALF_ARITHMETIC(*)
  WEFT_HALF_ARITHMETIC(/)
#undef WEFT_HALF_ARITHMETIC
};
static_assert(sizeof(half) == 2);

}  // namespace weft
