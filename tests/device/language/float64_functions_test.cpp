// The functions of float64 over their whole range, on every device, against the host's long double.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Float64Functions);

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// The limit of docs/semantics.md; half an ulp more if the host's long double is no wider than double.
constexpr double kUlps = 2.5 + (std::numeric_limits<long double>::digits > 60 ? 0 : 1);

/// Distance in units of the last place of the true value; 0 for two NaNs and for equal infinities.
double ulps(double got, long double want) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want) ? 0 : kInf;
  const double rounded = double(want);
  if (got == rounded) return std::signbit(got) == std::signbit(rounded) || got != 0 ? 0 : kInf;
  if (std::isinf(got) || std::isinf(rounded)) return kInf;
  const int exponent = want == 0 ? -1022 : std::max(std::ilogb(want), -1022);
  return double(std::fabs(static_cast<long double>(got) - want) / std::ldexp(1.0L, exponent - 52));
}

/// Edge values, the function's own interval, all magnitudes, and small numbers.
std::vector<double> arguments(double lo, double hi) {
  std::vector<double> x{0.0,
                        -0.0,
                        1,
                        -1,
                        kInf,
                        -kInf,
                        kNaN,
                        0.5,
                        -0.5,
                        2,
                        1e-300,
                        709.7827,
                        -745.1,
                        710.4,
                        1e22,
                        0x1p20,
                        0x1.00001p20,
                        1 - 0x1p-53,
                        1 + 0x1p-52,
                        std::numeric_limits<double>::max(),
                        std::numeric_limits<double>::min()};
  std::mt19937_64 random(11);
  auto uniform = [&] { return double(random() >> 11) * 0x1p-53; };
  while (x.size() < 20000) {
    x.push_back(lo + (hi - lo) * uniform());
    const double any = std::bit_cast<double>(std::uint64_t(random()));
    if (std::isnormal(any)) x.push_back(any);
    x.push_back((uniform() - 0.5) * std::ldexp(1.0, int(random() % 40) - 20));
  }
  return x;
}

using Reference = long double (*)(long double);

template <class F>
void check(const Device& device, const char* name, F function, Reference reference, double lo, double hi) {
  SCOPED_TRACE(name);
  const std::vector<double> x = arguments(lo, hi);
  Array<double> in(device, x), out = zeros<double>(device, x.size());
  launch(kernel(name,
                [function](Arr<const double> x, Arr<double> y) {
                  Int i = tid();
                  y[i] = function(Double(x[i]));
                }),
         x.size(), in, out);
  const std::vector<double> y = out.to_vector();
  int wrong = 0;
  for (std::size_t i = 0; i < x.size() && wrong < 5; ++i) {
    const long double want = reference(x[i]);
    // Subnormal results may be flushed to zero.
    const bool flushed = y[i] == 0 && std::fabs(want) < 0x1p-1022L;
    if (ulps(y[i], want) <= kUlps || flushed) continue;
    ++wrong;
    ADD_FAILURE() << std::hexfloat << name << "(" << x[i] << ") = " << y[i] << " where " << double(want)
                  << " is right: " << std::defaultfloat << ulps(y[i], want) << " ulp";
  }
}

#define WEFT_CHECK(function, lo, hi)                                                                                 \
  check(                                                                                                             \
      device(), #function, [](Double x) { return function(x); }, [](long double x) { return std::function(x); }, lo, \
      hi)

TEST_P(Float64Functions, exponentials_are_within_their_limits) {
  WEFT_CHECK(exp, -745, 710);
  WEFT_CHECK(exp2, -1075, 1024);
  WEFT_CHECK(sinh, -710, 710);
  WEFT_CHECK(cosh, -710, 710);
  WEFT_CHECK(tanh, -25, 25);
}

TEST_P(Float64Functions, logarithms_are_within_their_limits) {
  WEFT_CHECK(log, 0, 10);
  WEFT_CHECK(log2, 0, 4);
}

TEST_P(Float64Functions, angles_of_all_sizes_are_reduced) {
  WEFT_CHECK(sin, -100, 100);
  WEFT_CHECK(cos, -100, 100);
  WEFT_CHECK(tan, -100, 100);
}

TEST_P(Float64Functions, cos_is_right_next_to_its_hardest_zero) {
  // Of all doubles this one is the nearest to an odd multiple of pi/2. (The host's own library, which the reference
  // device calls, may be off by several ulp there.)
  Array<double> x(device(), {std::ldexp(6381956970095103.0, 797)}), y = zeros<double>(device(), 1);
  launch(kernel("cos",
                [](Arr<const double> x, Arr<double> y) {
                  Int i = tid();
                  y[i] = cos(x[i]);
                }),
         1, x, y);
  EXPECT_NEAR(y.at(0), -0x1.14ae72e6ba22fp-61, (on_reference() ? 16 : 2) * 0x1p-113);
}

TEST_P(Float64Functions, inverse_functions_are_within_their_limits) {
  WEFT_CHECK(asin, -1, 1);
  WEFT_CHECK(acos, -1, 1);
  WEFT_CHECK(atan, -10, 10);
}

template <class F, class R>
void check_pairs(const Device& device, const char* name, F function, R reference) {
  std::vector<double> x, y;
  const double edges[] = {0.0,
                          -0.0,
                          1,
                          -1,
                          kInf,
                          -kInf,
                          kNaN,
                          2,
                          3,
                          -3,
                          0.5,
                          -2.5,
                          1e300,
                          1 - 0x1p-53,
                          0x1p60,
                          9007199254740991.0,
                          -9007199254740993.0};
  for (double a : edges)
    for (double b : edges) x.push_back(a), y.push_back(b);
  std::mt19937_64 random(12);
  auto uniform = [&] { return double(random() >> 11) * 0x1p-53; };
  while (x.size() < 20000) {
    x.push_back(uniform() * 10), y.push_back((uniform() - 0.5) * 600);
    x.push_back(1 + (uniform() - 0.5) * 1e-3), y.push_back((uniform() - 0.5) * 1e6);
    x.push_back((uniform() - 0.5) * 8), y.push_back(std::rint((uniform() - 0.5) * 200));
    const double a = std::bit_cast<double>(std::uint64_t(random())), b = std::bit_cast<double>(std::uint64_t(random()));
    if (std::isnormal(a) && std::isnormal(b)) x.push_back(a), y.push_back(b);
  }
  Array<double> first(device, x), second(device, y), out = zeros<double>(device, x.size());
  launch(kernel(name,
                [function](Arr<const double> x, Arr<const double> y, Arr<double> z) {
                  Int i = tid();
                  z[i] = function(Double(x[i]), Double(y[i]));
                }),
         x.size(), first, second, out);
  const std::vector<double> z = out.to_vector();
  int wrong = 0;
  for (std::size_t i = 0; i < x.size() && wrong < 5; ++i) {
    const long double want = reference(x[i], y[i]);
    const bool flushed = z[i] == 0 && std::fabs(want) < 0x1p-1022L;
    if (ulps(z[i], want) <= kUlps || flushed) continue;
    ++wrong;
    ADD_FAILURE() << std::hexfloat << name << "(" << x[i] << ", " << y[i] << ") = " << z[i] << " where " << double(want)
                  << " is right";
  }
}

TEST_P(Float64Functions, pow_is_within_its_limits) {
  check_pairs(
      device(), "pow", [](Double x, Double y) { return pow(x, y); },
      [](long double x, long double y) { return std::pow(x, y); });
}

TEST_P(Float64Functions, atan2_is_within_its_limits) {
  check_pairs(
      device(), "atan2", [](Double y, Double x) { return atan2(y, x); },
      [](long double y, long double x) { return std::atan2(y, x); });
}

}  // namespace
