// The host's scalar functions against the interpreter's evaluation of the same operations.
#include "../../../frontend/types/functions.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "../../../frontend/ir/evaluate.h"
#include "../../../frontend/types/vec.h"

namespace weft {
namespace {

using ir::Op;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
std::uint64_t bits(T x) {
  return std::bit_cast<BitsOf<T>>(x);
}
template <class T>
T value(std::uint64_t b) {
  return std::bit_cast<T>(BitsOf<T>(b));
}

template <class R, class T, class... A>
R interpreted(Op op, T a, A... more) {
  const std::uint64_t args[] = {bits(a), bits(more)...};
  return value<R>(ir::evaluate(op, scalar_type<T>(), scalar_type<R>(), args));
}

template <class T>
std::vector<T> samples() {
  using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, half>, float, T>>;
  if constexpr (IntegerScalar<T>) {
    return {Limits::min(), T(Limits::min() + 1), T(-7), T(-3), T(-1), T(0), T(1), T(2), T(3), T(7),
            T(100),        Limits::max()};
  } else {
    std::vector<T> s;
    for (double x : {0.0, 0.25, 0.49999997, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.25, 7.0, 100.75, 1000.5, 60000.0})
      for (double sign : {1.0, -1.0}) s.push_back(T(sign * x));
    for (T x : {T(Limits::infinity()), T(-Limits::infinity()), T(Limits::quiet_NaN())}) s.push_back(x);
    return s;
  }
}

// Whether two values are equal as numbers: any NaN equals another, and so do zeros of both signs.
template <class T>
void expect_same(T got, T expected, const std::string& what) {
  const bool both_nan = got != got && expected != expected;
  EXPECT_TRUE(both_nan || got == expected) << what << ": " << double(got) << ", expected " << double(expected);
}
template <class T>
void expect_near(T got, T expected, const std::string& what) {
  const double g = double(got), e = double(expected);
  if (g != g && e != e) return;
  const double digits = std::is_same_v<T, half> ? 10 : std::numeric_limits<T>::digits - 1;
  const double ulp = std::ldexp(1., std::max(std::ilogb(e == 0 || !std::isfinite(e) ? 1 : e), -14) - int(digits));
  EXPECT_TRUE(g == e || std::abs(g - e) <= 2 * ulp) << what << ": " << g << ", expected " << e;
}

template <class T>
std::string at(const char* name, T a) {
  return std::string(name) + "(" + std::to_string(double(a)) + ") of " + ir::user_name(scalar_type<T>());
}
template <class T>
std::string at(const char* name, T a, T b) {
  return std::string(name) + "(" + std::to_string(double(a)) + ", " + std::to_string(double(b)) + ") of " +
         ir::user_name(scalar_type<T>());
}

template <class T>
class HostFunctions : public testing::Test {};
using Reals = testing::Types<half, float, double>;
TYPED_TEST_SUITE(HostFunctions, Reals);

TYPED_TEST(HostFunctions, exact_functions_equal_the_interpreter) {
  using T = TypeParam;
  for (T x : samples<T>()) {
    expect_same(abs(x), interpreted<T>(Op::abs, x), at("abs", x));
    expect_same(floor(x), interpreted<T>(Op::floor, x), at("floor", x));
    expect_same(ceil(x), interpreted<T>(Op::ceil, x), at("ceil", x));
    expect_same(trunc(x), interpreted<T>(Op::trunc, x), at("trunc", x));
    expect_same(rint(x), interpreted<T>(Op::round_even, x), at("rint", x));
    expect_same(T(-x), interpreted<T>(Op::neg, x), at("-", x));
    EXPECT_EQ(isnan(x), x != x);
    EXPECT_EQ(isinf(x), abs(x) == T(std::numeric_limits<float>::infinity()));
    EXPECT_EQ(isfinite(x), T(x - x) == T(0));
    for (T y : samples<T>()) {
      expect_same<T>((min)(x, y), interpreted<T>(Op::min, x, y), at("min", x, y));
      expect_same<T>((max)(x, y), interpreted<T>(Op::max, x, y), at("max", x, y));
      expect_same<T>(x + y, interpreted<T>(Op::add, x, y), at("+", x, y));
      expect_same<T>(x - y, interpreted<T>(Op::sub, x, y), at("-", x, y));
      expect_same<T>(x * y, interpreted<T>(Op::mul, x, y), at("*", x, y));
      expect_same<T>(x / y, interpreted<T>(Op::div, x, y), at("/", x, y));
      expect_same<T>(floor_div(x, y), interpreted<T>(Op::floor, interpreted<T>(Op::div, x, y)), at("floor_div", x, y));
      expect_same<T>(fma(x, y, T(0.375)), interpreted<T>(Op::fma, x, y, T(0.375)), at("fma", x, y));
    }
  }
}

TYPED_TEST(HostFunctions, other_functions_are_close_to_the_interpreter) {
  using T = TypeParam;
  for (T x : samples<T>()) {
    expect_near(sqrt(x), interpreted<T>(Op::sqrt, x), at("sqrt", x));
    if (x != T(0)) expect_near(rsqrt(x), interpreted<T>(Op::rsqrt, x), at("rsqrt", x));
    expect_near(exp(x), interpreted<T>(Op::exp, x), at("exp", x));
    expect_near(exp2(x), interpreted<T>(Op::exp2, x), at("exp2", x));
    expect_near(log(x), interpreted<T>(Op::log, x), at("log", x));
    expect_near(log2(x), interpreted<T>(Op::log2, x), at("log2", x));
    expect_near(sin(x), interpreted<T>(Op::sin, x), at("sin", x));
    expect_near(cos(x), interpreted<T>(Op::cos, x), at("cos", x));
    expect_near(tan(x), interpreted<T>(Op::tan, x), at("tan", x));
    expect_near(asin(x), interpreted<T>(Op::asin, x), at("asin", x));
    expect_near(acos(x), interpreted<T>(Op::acos, x), at("acos", x));
    expect_near(atan(x), interpreted<T>(Op::atan, x), at("atan", x));
    expect_near(sinh(x), interpreted<T>(Op::sinh, x), at("sinh", x));
    expect_near(cosh(x), interpreted<T>(Op::cosh, x), at("cosh", x));
    expect_near(tanh(x), interpreted<T>(Op::tanh, x), at("tanh", x));
    for (T y : {T(0.5), T(-2), T(3)}) {
      expect_near(pow(x, y), interpreted<T>(Op::pow, x, y), at("pow", x, y));
      expect_near(atan2(x, y), interpreted<T>(Op::atan2, x, y), at("atan2", x, y));
    }
  }
}

TYPED_TEST(HostFunctions, rounding_and_sign_have_closed_forms) {
  using T = TypeParam;
  for (auto [x, away, even] : {std::array{0.5, 1., 0.},
                               {1.5, 2., 2.},
                               {2.5, 3., 2.},
                               {-2.5, -3., -2.},
                               {0.25, 0., 0.},
                               {-0.75, -1., -1.},
                               {3.5, 4., 4.}}) {
    EXPECT_EQ(round(T(x)), T(away)) << x;
    EXPECT_EQ(rint(T(x)), T(even)) << x;
  }
  EXPECT_EQ(sign(T(-2)), T(-1));
  EXPECT_EQ(sign(T(0)), T(0));
  EXPECT_EQ(sign(T(0.5)), T(1));
  EXPECT_EQ(clamp(T(5), 0, 2), T(2));
  EXPECT_EQ(clamp(T(-5), 0, 2), T(0));
  EXPECT_EQ(select(true, T(1), T(2)), T(1));
  EXPECT_EQ(select(false, T(1), T(2)), T(2));
}

TEST(HostFunctions, integer_functions_follow_the_semantics_of_kernels) {
  auto check = [&]<class T>(T) {
    for (T x : samples<T>()) {
      expect_same(abs(x), interpreted<T>(Op::abs, x), at("abs", x));
      expect_same(popcount(x), interpreted<T>(Op::popcount, x), at("popcount", x));
      for (T y : samples<T>()) {
        expect_same<T>((min)(x, y), interpreted<T>(Op::min, x, y), at("min", x, y));
        expect_same<T>((max)(x, y), interpreted<T>(Op::max, x, y), at("max", x, y));
        T q = interpreted<T>(Op::div, x, y), r = interpreted<T>(Op::rem, x, y);
        if (r != T(0) && (r < T(0)) != (y < T(0))) q = T(q - 1);
        expect_same<T>(floor_div(x, y), q, at("floor_div", x, y));
        if constexpr (sizeof(T) == 4) expect_same(mul_hi(x, y), interpreted<T>(Op::mul_hi, x, y), at("mul_hi", x, y));
      }
    }
  };
  check(std::int8_t()), check(std::int16_t()), check(int()), check(std::int64_t());
  check(std::uint8_t()), check(std::uint16_t()), check(unsigned()), check(std::uint64_t());
}

TEST(HostFunctions, operators_of_integer_vectors_follow_the_semantics_of_kernels) {
  auto check = [&]<class T>(T) {
    for (T x : samples<T>())
      for (T y : samples<T>()) {
        const vec<2, T> a{T(1), x}, b{T(1), y};
        expect_same((a + b).y, interpreted<T>(Op::add, x, y), at("+", x, y));
        expect_same((a - b).y, interpreted<T>(Op::sub, x, y), at("-", x, y));
        expect_same((a * b).y, interpreted<T>(Op::mul, x, y), at("*", x, y));
        expect_same((a / b).y, interpreted<T>(Op::div, x, y), at("/", x, y));
        expect_same((a % b).y, interpreted<T>(Op::rem, x, y), at("%", x, y));
        expect_same((a << b).y, interpreted<T>(Op::shl, x, y), at("<<", x, y));
        expect_same((a >> b).y, interpreted<T>(Op::shr, x, y), at(">>", x, y));
        expect_same((a & b).y, interpreted<T>(Op::bit_and, x, y), at("&", x, y));
        expect_same((a | b).y, interpreted<T>(Op::bit_or, x, y), at("|", x, y));
        expect_same((a ^ b).y, interpreted<T>(Op::bit_xor, x, y), at("^", x, y));
      }
  };
  check(std::int8_t()), check(std::int16_t()), check(int()), check(std::int64_t());
  check(std::uint8_t()), check(std::uint16_t()), check(unsigned()), check(std::uint64_t());
  static_assert(vec<2, int>{1, 2} / vec<2, int>{0, 2} == vec<2, int>{1, 1});
}

TEST(HostFunctions, casts_follow_the_semantics_of_kernels) {
  auto to = [&]<class T, class U>(T, U) {
    for (U x : samples<U>())
      expect_same(cast<T>(x), interpreted<T>(Op::convert, x), at("cast", x) + " to " + ir::user_name(scalar_type<T>()));
  };
  auto from = [&]<class U>(U u) {
    to(std::int8_t(), u), to(std::int16_t(), u), to(int(), u), to(std::int64_t(), u);
    to(std::uint8_t(), u), to(std::uint16_t(), u), to(unsigned(), u), to(std::uint64_t(), u);
    to(half(), u), to(float(), u), to(double(), u);
  };
  from(std::int8_t()), from(std::int16_t()), from(int()), from(std::int64_t());
  from(std::uint8_t()), from(std::uint16_t()), from(unsigned()), from(std::uint64_t());
  from(half()), from(float()), from(double());
  EXPECT_TRUE(cast<bool>(0.5f));
  EXPECT_FALSE(cast<bool>(0));
  EXPECT_EQ(cast<int>(true), 1);
}

TEST(HostFunctions, halves_stay_halves) {
  const half h(1.5f);
  static_assert(std::is_same_v<decltype(2 * h), half> && std::is_same_v<decltype(h / 0.5), half> &&
                std::is_same_v<decltype(-h), half> && std::is_same_v<decltype(h + h), half>);
  static_assert(std::is_same_v<decltype((min)(h, 2.0)), half> && std::is_same_v<decltype((min)(1, 2.0f)), float>);
  EXPECT_EQ(2 * h, half(3));
  half sum(2048);
  sum += half(1);  // a tie: 2049 has no half
  EXPECT_EQ(sum, half(2048));
  EXPECT_EQ(bitcast<std::uint16_t>(half(1)), 0x3c00);
  EXPECT_EQ(bitcast<float>(0x3f800000), 1.f);
}

}  // namespace
}  // namespace weft
