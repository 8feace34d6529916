// Numbers as text: the fewest digits that give the same value back.
#include "../../../frontend/ir/number.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "../../../frontend/types/half.h"

namespace weft::ir {
namespace {

std::string text(float x) { return number_text(Type::f32, std::bit_cast<std::uint32_t>(x)); }
std::string text(double x) { return number_text(Type::f64, std::bit_cast<std::uint64_t>(x)); }

TEST(Numbers, are_written_with_the_fewest_digits) {
  EXPECT_EQ(text(0.1f), "0.1");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(double(0.1f)), "0.10000000149011612");
  EXPECT_EQ(text(-0.f), "-0");
  EXPECT_EQ(text(3.f), "3");
  EXPECT_EQ(text(1e30f), "1e+30");
  EXPECT_EQ(text(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(text(std::numeric_limits<float>::quiet_NaN()), "nan");
  EXPECT_EQ(text(-std::numeric_limits<float>::quiet_NaN()), "nan");
  EXPECT_EQ(number_text(Type::b1, 1), "true");
  EXPECT_EQ(number_text(Type::i8, 0xff), "-1");
  EXPECT_EQ(number_text(Type::u8, 0xff), "255");
  EXPECT_EQ(number_text(Type::i32, 0x80000000u), "-2147483648");
  EXPECT_EQ(number_text(Type::u64, ~0ull), "18446744073709551615");
  EXPECT_EQ(number_text(Type::i64, ~0ull), "-1");
}

TEST(Numbers, of_every_half_lead_back_to_it) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = detail::half_value(static_cast<std::uint16_t>(bits));
    const std::string written = number_text(Type::f16, bits);
    if (std::isnan(value)) {
      ASSERT_EQ(written, "nan");
      continue;
    }
    ASSERT_EQ(detail::half_bits_from_double(std::strtod(written.c_str(), nullptr)), bits) << written;
    ASSERT_LE(written.size(), 11u) << written;
  }
  EXPECT_EQ(number_text(Type::f16, detail::half_bits(0.1f)), "0.1");
  EXPECT_EQ(number_text(Type::f16, detail::half_bits(65504.f)), "65504");
}

}  // namespace
}  // namespace weft::ir
