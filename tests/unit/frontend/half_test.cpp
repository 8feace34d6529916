// The host's half: every value and back, and rounding against arithmetic in double.
#include "../../../frontend/types/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace weft {
namespace {

/// Value of a half's bits from the definition of the format.
double defined_value(unsigned bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = (bits & 1023) / 1024.0;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  return sign * std::ldexp(1 + fraction, exponent - 15);
}

/// Rounds by scaling to whole units and letting nearbyint break the ties.
double rounded(double value) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), -14);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, 10 - exponent)), exponent - 10);
  return std::abs(result) > 65504 ? std::copysign(std::numeric_limits<double>::infinity(), value) : result;
}

void expect_rounds(double value) {
  const std::uint16_t bits = detail::half_bits_from_double(value);
  const double expected = rounded(value);
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(detail::half_value(bits)));
    return;
  }
  EXPECT_EQ(defined_value(bits), expected) << std::hexfloat << value;
  EXPECT_EQ(std::signbit(detail::half_value(bits)), std::signbit(value)) << std::hexfloat << value;
}

TEST(Half, EveryValueIsExactAsFloat) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = detail::half_value(static_cast<std::uint16_t>(bits));
    const double expected = defined_value(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
    }
    ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
  }
}

TEST(Half, EveryValueComesBack) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto original = static_cast<std::uint16_t>(bits);
    const float value = detail::half_value(original);
    const bool nan = (original & 0x7fff) > 0x7c00;
    const std::uint16_t expected = nan ? original | 0x0200 : original;  // a NaN comes back quiet
    ASSERT_EQ(detail::half_bits(value), expected) << bits;
    ASSERT_EQ(detail::half_bits_from_double(value), expected) << bits;
    ASSERT_EQ(half::from_bits(original).bits, original);
  }
}

TEST(Half, TiesGoToTheEvenNeighbour) {
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const double low = defined_value(bits);
    const double high = bits + 1 == 0x7c00 ? 65536.0 : defined_value(bits + 1);
    const double middle = (low + high) / 2;
    const unsigned even = bits & 1 ? bits + 1 : bits;
    for (const int sign : {0, 0x8000}) {
      const double s = sign ? -1 : 1;
      ASSERT_EQ(detail::half_bits_from_double(s * middle), even | sign) << bits;
      ASSERT_EQ(detail::half_bits_from_double(s * std::nextafter(middle, 0.0)), bits | sign) << bits;
      ASSERT_EQ(detail::half_bits_from_double(s * std::nextafter(middle, 1e9)), (bits + 1) | sign) << bits;
      ASSERT_EQ(detail::half_bits(static_cast<float>(s * middle)), even | sign) << bits;
      ASSERT_EQ(detail::half_bits(std::nextafter(static_cast<float>(s * middle), 0.0f)), bits | sign) << bits;
    }
  }
}

TEST(Half, RandomDoublesAndFloatsRoundToNearest) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-30, 20), sign(-1, 1);
  for (int i = 0; i < 300000; ++i) {
    const double value = std::copysign(std::exp2(exponent(random)), sign(random));
    expect_rounds(value);
    const auto single = static_cast<float>(value);
    ASSERT_EQ(detail::half_bits(single), detail::half_bits_from_double(single)) << std::hexfloat << single;
    expect_rounds(std::bit_cast<double>(random()));
    const float any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    ASSERT_EQ(detail::half_bits(any), detail::half_bits_from_double(any));
  }
}

TEST(Half, Edges) {
  const double infinity = std::numeric_limits<double>::infinity();
  const struct {
    double value;
    std::uint16_t bits;
  } cases[] = {
      {0.0, 0x0000},
      {-0.0, 0x8000},
      {1.0, 0x3c00},
      {-2.0, 0xc000},
      {65504.0, 0x7bff},
      {65519.999, 0x7bff},
      {65520.0, 0x7c00},
      {-65520.0, 0xfc00},
      {1e300, 0x7c00},
      {infinity, 0x7c00},
      {-infinity, 0xfc00},
      {std::ldexp(1.0, -24), 0x0001},
      {std::ldexp(1.0, -25), 0x0000},
      {std::nextafter(std::ldexp(1.0, -25), 1.0), 0x0001},
      {std::ldexp(3.0, -26), 0x0001},
      {-std::ldexp(1.0, -26), 0x8000},
      {std::ldexp(1023.5, -24), 0x0400},
      {std::numeric_limits<double>::denorm_min(), 0x0000},
      {-std::numeric_limits<double>::denorm_min(), 0x8000},
  };
  for (const auto& c : cases) EXPECT_EQ(detail::half_bits_from_double(c.value), c.bits) << c.value;
  EXPECT_EQ(detail::half_bits(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(detail::half_bits(std::numeric_limits<float>::max()), 0x7c00);
}

TEST(Half, RoundsOnceFromDouble) {
  // The value is a little above a tie: a float in between would fall on the tie and go down to even.
  const double value = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -30);
  EXPECT_EQ(detail::half_bits_from_double(value), 0x3c01);
  EXPECT_EQ(detail::half_bits(static_cast<float>(value)), 0x3c00);
  EXPECT_EQ(half(value).bits, 0x3c01);
  EXPECT_EQ(static_cast<float>(half(3)), 3.0f);
  EXPECT_EQ(half(100000).bits, 0x7c00);
}

}  // namespace
}  // namespace weft
