// The shortest texts of numbers.
#include "number.h"

#include <fast_float/fast_float.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "../types/half.h"

namespace weft::ir {

namespace {

template <class T>
std::string shortest(T value) {
  char text[64];
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(value)) return "nan";  // a NaN's sign means nothing
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string shortest_half(std::uint16_t bits) {
  const double value = detail::half_value(bits);
  // Whole numbers are written in full, like those of the wider formats: 65504, although 65500 would do.
  if (!std::isfinite(value) || value == std::trunc(value)) return shortest(value);
  // Five significant digits tell every half from its neighbours.
  char text[64];
  double back = 0;
  for (int digits = 1; digits <= 5; ++digits) {
    char* end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
    fast_float::from_chars(text, end, back);
    if (detail::half_bits_from_double(back) == bits) break;
  }
  return shortest(back);
}

}  // namespace

std::string number_text(Type type, std::uint64_t bits) {
  switch (type) {
    case Type::b1: return bits != 0 ? "true" : "false";
    case Type::f16: return shortest_half(static_cast<std::uint16_t>(bits));
    case Type::f32: return shortest(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Type::f64: return shortest(std::bit_cast<double>(bits));
    default: break;
  }
  if (!is_signed(type)) return shortest(bits & mask(type));
  const int shift = 64 - ir::bits(type);
  return shortest(static_cast<std::int64_t>(bits << shift) >> shift);
}

}  // namespace weft::ir
