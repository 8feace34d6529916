// Special functions: every device and the host face against the C++ library in more digits, in ulps, and at the ends of
// their domains.
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(LibrarySpecial);

using Real = long double;

/// The distance from the true value in units in the last place of T. Results below the normal numbers, which a device
/// may flush, are measured in units of the least of those.
template <class T>
double ulps(T got, Real wanted) {
  const double g = double(got);
  constexpr int digits = sizeof(T) == 2 ? 11 : sizeof(T) == 4 ? 24 : 53;
  constexpr int least = sizeof(T) == 2 ? -13 : sizeof(T) == 4 ? -125 : -1021;
  if (std::isnan(g) || std::isnan(wanted)) return std::isnan(g) && std::isnan(wanted) ? 0 : 1e300;
  if (std::isinf(g) || std::isinf(wanted)) return g == double(wanted) ? 0 : 1e300;
  int exponent = 0;
  std::frexp(std::abs(wanted), &exponent);
  const Real unit = std::ldexp(Real(1), exponent < least ? least - 1 : exponent - digits);
  return double(std::abs(Real(g) - wanted) / unit);
}

// Newton's method on the one of erf and erfc that keeps its digits at y.
Real true_erfinv(Real y) {
  if (!(std::abs(y) < 1)) return std::abs(y) == 1 ? y * std::numeric_limits<Real>::infinity() : std::nan("");
  const Real slope = std::numbers::inv_sqrtpi_v<Real> * 2;
  Real x = y * std::sqrt(Real(2));
  if (std::abs(y) > 0.5L) x = std::copysign(std::sqrt(-std::log(1 - std::abs(y))), y);
  for (int k = 0; k < 60; ++k) {
    const Real tail = 1 - std::abs(y) - std::erfc(std::abs(x));
    const Real error = std::abs(y) < 0.5L ? std::erf(x) - y : y < 0 ? -tail : tail;
    const Real step = error / (slope * std::exp(-x * x));
    x -= step / (1 + x * step);  // Halley's step
  }
  return x;
}
Real true_erfcinv(Real y) {
  if (y == 0) return std::numeric_limits<Real>::infinity();
  if (y >= 0.25L || y < 0) return true_erfinv(1 - y);
  Real x = std::sqrt(-std::log(y));
  for (int k = 0; k < 60; ++k) {
    const Real step = (y - std::erfc(x)) / (2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return x;
}

/// Edge values, then random ones: evenly from lo to hi, and of all sizes from 2^-60 (2^-10 for float16) to hi.
template <class T>
std::vector<T> arguments(double lo, double hi) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> even(0, 1);
  std::vector<T> x;
  for (double e : {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 0.25, 0.425, 0.85, -0.85})
    if (e >= lo && e <= hi) x.push_back(T(e));
  while (x.size() < 2000) {
    x.push_back(T(lo + (hi - lo) * even(random)));
    const double size = std::exp2((sizeof(T) == 2 ? 10 : 60) * -even(random)) * (x.size() % 4 == 3 && lo < 0 ? lo : hi);
    x.push_back(T(size));
  }
  return x;
}

/// More ulps for devices that do not round quotients and roots correctly.
double slack() { return LibrarySpecial::GetParam() == "gpu" ? 4 : 0; }

/// Compares a function with its limit on the device and on the host. `f` is generic over the faces.
template <class T, class F, class G>
void check(const Device& device, const char* name, F f, G truth, double lo, double hi, double limit) {
  const std::vector<T> x = arguments<T>(lo, hi);
  Array<T> in(device, x), out = zeros<T>(device, std::int64_t(x.size()));
  launch(kernel(name,
                [f](Arr<const T> in, Arr<T> out) {
                  Int i = tid();
                  out[i] = f(in[i]);
                }),
         std::int64_t(x.size()), in, out);
  const std::vector<T> got = out.to_vector();
  limit += slack();
  if (sizeof(T) == 2) limit = 1;  // rounded once from float32
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real wanted = truth(Real(double(x[i])));
    if (std::abs(wanted) > (sizeof(T) == 2 ? 65504 : sizeof(T) == 4 ? 3.4e38 : 1.7e308)) continue;
    ASSERT_LE(ulps(got[i], wanted), limit)
        << name << "(" << double(x[i]) << ") = " << double(got[i]) << ", not " << wanted;
    ASSERT_LE(ulps(f(x[i]), wanted), limit) << name << "(" << double(x[i]) << ") on the host";
  }
}

template <class T>
void check_all(const Device& device) {
  const bool d = sizeof(T) == 8, h = sizeof(T) == 2;
#define WEFT_CHECK(name, truth, ...) \
  check<T>(                          \
      device, #name, [](const auto& x) { return weft::name(x); }, [](Real x) { return Real(truth(x)); }, __VA_ARGS__)
  WEFT_CHECK(erf, std::erf, -7, 7, 4);
  WEFT_CHECK(erfc, std::erfc, -7, d ? 26 : h ? 3 : 9, 6);
  WEFT_CHECK(erfinv, true_erfinv, -1, 1, 8);
  WEFT_CHECK(erfcinv, true_erfcinv, 0, 2, 10);
  WEFT_CHECK(expm1, std::expm1, -50, d ? 700 : h ? 11 : 88, 4);
  WEFT_CHECK(log1p, std::log1p, -1, 1000, 4);
  WEFT_CHECK(log10, std::log10, 0, 10, 4);
  WEFT_CHECK(cbrt, std::cbrt, -1000, 1000, 4);
#undef WEFT_CHECK
}

TEST_P(LibrarySpecial, float16_functions_are_rounded_once) { check_all<half>(device()); }
TEST_P(LibrarySpecial, float32_functions_keep_their_limits) { check_all<float>(device()); }
TEST_P(LibrarySpecial, float64_functions_keep_their_limits) { check_all<double>(device()); }

// Checks functions over the whole range of exponents.
template <class T>
void check_range(const Device& device) {
  const int greatest = sizeof(T) == 4 ? 127 : 1023;
  std::vector<T> x;
  for (int e = -greatest + 1; e <= greatest; ++e) x.push_back(T(std::ldexp(1.37, e)));
  Array<T> in(device, x), roots = zeros<T>(device, std::int64_t(x.size())), logs = roots.clone(), tails = roots.clone();
  launch(kernel("range",
                [](Arr<const T> in, Arr<T> roots, Arr<T> logs, Arr<T> tails) {
                  Int i = tid();
                  roots[i] = cbrt(in[i]);
                  logs[i] = log10(in[i]);
                  tails[i] = erfcinv(in[i]);
                }),
         std::int64_t(x.size()), in, roots, logs, tails);
  const auto r = roots.to_vector(), l = logs.to_vector(), t = tails.to_vector();
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(ulps(r[i], std::cbrt(Real(x[i]))), 4 + slack()) << double(x[i]);
    ASSERT_LE(ulps(l[i], std::log10(Real(x[i]))), 4 + slack()) << double(x[i]);
    if (x[i] < 2) {
      ASSERT_LE(ulps(t[i], true_erfcinv(x[i])), 10 + slack()) << double(x[i]);
    }
    ASSERT_LE(ulps(T(log1p(x[i])), std::log1p(Real(x[i]))), 4) << double(x[i]);
  }
}
TEST_P(LibrarySpecial, functions_hold_over_the_whole_range) {
  check_range<float>(device());
  check_range<double>(device());
}

TEST_P(LibrarySpecial, log10_of_powers_of_ten_is_exact) {
  std::vector<float> x;
  for (int e = 0; e <= 10; ++e) x.push_back(float(std::pow(10., e)));
  Array<float> a(device(), x);
  launch(kernel("powers", [](Arr<float> a) { a[tid()] = log10(a[tid()]); }), std::int64_t(x.size()), a);
  const auto got = a.to_vector();
  for (int e = 0; e <= 10; ++e) EXPECT_EQ(got[std::size_t(e)], float(e));
}

// Checks the ends of the domains and beyond, on the host and on the device.
TEST_P(LibrarySpecial, results_at_the_ends_of_the_domains) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{0, -0.f, 1, -1, 2, -3, inf, -inf, nan};
  const auto n = std::int64_t(x.size());
  auto check = [&](const char* name, auto f, const std::vector<float>& wanted) {
    Array<float> in(device(), x), out = zeros<float>(device(), n);
    launch(kernel(name,
                  [f](Arr<const float> in, Arr<float> out) {
                    Int i = tid();
                    out[i] = f(in[i]);
                  }),
           n, in, out);
    const auto got = out.to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (float value : {got[i], f(x[i])}) {
        if (std::isnan(wanted[i])) {
          EXPECT_TRUE(std::isnan(value)) << name << "(" << x[i] << ") = " << value;
        } else {
          EXPECT_FLOAT_EQ(value, wanted[i]) << name << "(" << x[i] << ")";
          EXPECT_EQ(std::signbit(value), std::signbit(wanted[i])) << name << "(" << x[i] << ")";
        }
      }
    }
  };
#define WEFT_ENDS(name, ...) \
  check(                     \
      #name, [](const auto& v) { return weft::name(v); }, __VA_ARGS__)
  WEFT_ENDS(erf, {0, -0.f, 0.84270079f, -0.84270079f, 0.99532227f, -0.99997791f, 1, -1, nan});
  WEFT_ENDS(erfc, {1, 1, 0.15729921f, 1.8427008f, 0.0046777350f, 1.9999779f, 0, 2, nan});
  WEFT_ENDS(erfinv, {0, -0.f, inf, -inf, nan, nan, nan, nan, nan});
  WEFT_ENDS(erfcinv, {inf, inf, 0, nan, -inf, nan, nan, nan, nan});
  WEFT_ENDS(expm1, {0, -0.f, 1.7182818f, -0.63212056f, 6.3890561f, -0.95021293f, inf, -1, nan});
  WEFT_ENDS(log1p, {0, -0.f, 0.69314718f, -inf, 1.0986123f, nan, inf, nan, nan});
  WEFT_ENDS(log10, {-inf, -inf, 0, nan, 0.30103f, nan, inf, nan, nan});
  WEFT_ENDS(cbrt, {0, -0.f, 1, -1, 1.2599210f, -1.4422496f, inf, -inf, nan});
#undef WEFT_ENDS
}

}  // namespace
