// Gradients of the functions of numbers: the language's and the special ones.
#include <cmath>
#include <limits>
#include <numbers>

#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(LibraryGradient);

#define UNARY(name) of(#name, [](Double x) { return name(x); })

TEST_P(LibraryGradient, of_operators) {
  const Points pairs = random_points(2, 0.5, 3) + random_points(2, -3, -0.5);
  expect_gradient(of("+", [](Double x, Double y) { return x + y; }), pairs);
  expect_gradient(of("-", [](Double x, Double y) { return x - y; }), pairs);
  expect_gradient(of("*", [](Double x, Double y) { return x * y; }), pairs + Points{{0, 0}, {0, 2}});
  expect_gradient(of("/", [](Double x, Double y) { return x / y; }), pairs + Points{{0, 2}});
  expect_gradient(of("%", [](Double x, Double y) { return x % y; }), {{5.3, 2.1}, {-5.3, 2.1}, {5.3, -2.1}, {0.5, 2}});
  expect_gradient(of("negative", [](Double x) { return -x; }), {{0}, {3}});
  expect_gradient(of("fma", [](Double x, Double y, Double z) { return fma(x, y, z); }), random_points(3, -2, 2));
  expect_gradient(of("select", [](Double x, Double y) { return select(x < y, x * x, y); }), {{1, 2}, {2, 1}});
  expect_gradient(of("floor_div", [](Double x, Double y) { return floor_div(x, y); }), {{5.3, 2.1}, {-5.3, 2.1}});
}

TEST_P(LibraryGradient, of_powers_and_exponentials) {
  const Points positive = random_points(1, 0.1, 8), all = random_points(1, -4, 4) + Points{{0}};
  expect_gradient(UNARY(sqrt), positive);
  expect_gradient(UNARY(rsqrt), positive);
  expect_gradient(UNARY(cbrt), positive + random_points(1, -8, -0.1) + Points{{1}, {-1}, {64}});
  expect_gradient(UNARY(exp), all);
  expect_gradient(UNARY(exp2), all);
  expect_gradient(UNARY(expm1), all + Points{{1e-9}, {-50}});
  expect_gradient(UNARY(log), positive);
  expect_gradient(UNARY(log2), positive);
  expect_gradient(UNARY(log10), positive + Points{{1}, {0.5}, {2}, {1000}});
  expect_gradient(UNARY(log1p), positive + random_points(1, -0.9, 0) + Points{{0}, {1}, {1e-9}, {1e6}});
  expect_gradient(of("pow", [](Double x, Double y) { return pow(x, y); }),
                  random_points(2, 0.2, 3) + Points{{2, 0}, {1, 1}, {0.5, -2}});
  expect_gradient(of("pow to a number", [](Double x) { return pow(x, 3.0); }), {{-2}, {-1}, {0}, {2}});
}

TEST_P(LibraryGradient, of_functions_of_angles) {
  const Points all = random_points(1, -4, 4) + Points{{0}}, inside = random_points(1, -0.9, 0.9) + Points{{0}};
  expect_gradient(UNARY(sin), all);
  expect_gradient(UNARY(cos), all);
  expect_gradient(UNARY(tan), random_points(1, -1.4, 1.4) + Points{{0}});
  expect_gradient(UNARY(asin), inside);
  expect_gradient(UNARY(acos), inside);
  expect_gradient(UNARY(atan), all);
  expect_gradient(of("atan2", [](Double y, Double x) { return atan2(y, x); }),
                  random_points(2, 0.3, 2) + random_points(2, -2, -0.3) + Points{{1, 0}, {-1, 0}, {0, 1}, {1, -1}});
  // The squares of the arguments are 0 or infinite.
  const auto angle =
      of("atan2", [](Double y, Double x) { return atan2(y * 1e-200, x * 1e-200) + atan2(y * 1e200, x * 1e200); });
  expect_gradient(angle, random_points(2, 0.3, 2));
  expect_gradient(UNARY(sinh), all);
  expect_gradient(UNARY(cosh), all);
  expect_gradient(UNARY(tanh), all);
  expect_gradient(UNARY(degrees), all);
  expect_gradient(UNARY(radians), all);
}

TEST_P(LibraryGradient, of_error_functions) {
  const Points all = random_points(1, -4, 4) + Points{{0}, {0.5}, {-0.5}, {1e-9}};
  expect_gradient(UNARY(erf), all + Points{{12}, {-40}});
  expect_gradient(UNARY(erfc), all + Points{{12}, {-40}});
  expect_gradient(UNARY(erfinv), random_points(1, -0.95, 0.95) + Points{{0}, {0.85}, {-0.85}, {1e-9}});
  expect_gradient(UNARY(erfcinv), random_points(1, 0.05, 1.95) + Points{{1}, {0.15}, {1.85}});
}

TEST_P(LibraryGradient, of_functions_with_steps) {
  const Points between = {{-2.7}, {-1.3}, {-0.4}, {0.4}, {1.6}, {2.2}};
  expect_gradient(UNARY(abs), between);
  expect_gradient(UNARY(sign), between);
  expect_gradient(UNARY(floor), between);
  expect_gradient(UNARY(ceil), between);
  expect_gradient(UNARY(trunc), between);
  expect_gradient(UNARY(round), between);
  expect_gradient(UNARY(rint), between);
  expect_gradient(UNARY(frac), between);
  expect_gradient(UNARY(step), between);
  expect_gradient(UNARY(nonzero), between);
  expect_gradient(of("min", [](Double x, Double y) { return min(x, y); }), {{1, 2}, {2, 1}});
  expect_gradient(of("max", [](Double x, Double y) { return max(x, y); }), {{1, 2}, {2, 1}});
  expect_gradient(of("clamp", [](Double x, Double lo, Double hi) { return clamp(x, lo, hi); }),
                  {{0, 1, 2}, {1.5, 1, 2}, {3, 1, 2}});
  expect_gradient(of("lerp", [](Double a, Double b, Double t) { return lerp(a, b, t); }), random_points(3, -2, 2));
  expect_gradient(of("smoothstep", [](Double a, Double b, Double x) { return smoothstep(a, b, x); }),
                  {{1, 3, 0}, {1, 3, 1.5}, {1, 3, 2}, {1, 3, 2.9}, {1, 3, 4}, {3, 1, 2.5}});
}

TEST_P(LibraryGradient, is_chosen_where_functions_of_numbers_have_none) {
  expect_chosen(UNARY(abs), {0}, {1});
  expect_chosen(UNARY(sqrt), {0}, {0});
  expect_chosen(UNARY(cbrt), {0}, {0});
  expect_chosen(of("min", [](Double x, Double y) { return min(x, y); }), {2, 2}, {1, 0});
  expect_chosen(of("max", [](Double x, Double y) { return max(x, y); }), {2, 2}, {1, 0});
  const auto clamped = of("clamp", [](Double x, Double lo, Double hi) { return clamp(x, lo, hi); });
  expect_chosen(clamped, {1, 1, 2}, {1, 0, 0});
  expect_chosen(clamped, {2, 1, 2}, {1, 0, 0});
  expect_chosen(of("atan2", [](Double y, Double x) { return atan2(y, x); }), {0, 0}, {0, 0});
  for (double x : {-1., 0., 2.}) {
    expect_chosen(UNARY(sign), {x}, {0});
    expect_chosen(UNARY(floor), {x}, {0});
    expect_chosen(UNARY(ceil), {x}, {0});
    expect_chosen(UNARY(trunc), {x}, {0});
    expect_chosen(UNARY(round), {x + 0.5}, {0});
    expect_chosen(UNARY(rint), {x + 0.5}, {0});
    expect_chosen(UNARY(frac), {x}, {1});
    expect_chosen(UNARY(step), {x}, {0});
    expect_chosen(UNARY(nonzero), {x}, {0});
    expect_chosen(of("floor_div", [](Double x, Double y) { return floor_div(x, y); }), {x, 2}, {0, 0});
    expect_chosen(of("integer", [](Double x) { return Double(Int(x)); }), {x}, {0});
    expect_chosen(of("bits", [](Double x) { return bitcast<double>(bitcast<std::int64_t>(x) & -2); }), {x}, {0});
  }
  const auto smooth = of("smoothstep", [](Double a, Double b, Double x) { return smoothstep(a, b, x); });
  expect_chosen(smooth, {1, 3, 1}, {0, 0, 0});
  expect_chosen(smooth, {1, 3, 3}, {0, 0, 0});
  for (double x : {1., 2., 3.}) expect_chosen(smooth, {2, 2, x}, {0, 0, 0});
  // Powers: with a constant exponent, and at bases around which other exponents have no value.
  const auto power = of("pow", [](Double x, Double y) { return pow(x, y); });
  expect_chosen(power, {0, 0}, {0, 0});
  expect_chosen(power, {0, 1}, {1, 0});
  expect_chosen(power, {0, 2}, {0, 0});
  expect_chosen(power, {-2, 3}, {12, 0});
  expect_chosen(power, {0, 0.5}, {0, 0});
  // Slopes that are infinite have the gradient 0.
  expect_chosen(UNARY(asin), {1}, {0});
  expect_chosen(UNARY(acos), {-1}, {0});
  expect_chosen(UNARY(erfinv), {1}, {0});
}

TEST_P(LibraryGradient, of_values_that_keep_the_sign_of_zero_and_infinities) {
  // The way back uses the values of functions, whose bits are the same there if their gradients are by formula.
  expect_chosen(of("sign of zero",
                   [](Double x) {
                     Double a = atan2(erf(x), -1.0);
                     return a * a;
                   }),
                {-0.}, {4 * std::sqrt(std::numbers::pi)});
  const double infinity = std::numeric_limits<double>::infinity();
  expect_chosen(of("infinite", [](Double x, Double y) { return erf(x) * y; }), {infinity, 2}, {0, 1});
  expect_chosen(of("infinite", [](Double x, Double y) { return select(expm1(x) > 1.0, y, y * y); }), {infinity, 2},
                {0, 1});
}

TEST_P(LibraryGradient, of_float32_and_float16_is_that_of_float64) {
  const Points positive = random_points(1, 0.2, 4), all = random_points(1, -3, 3);
#define BOTH(name) of(#name, [](Float x) { return name(x); }), UNARY(name)
  expect_close(BOTH(sqrt), positive);
  expect_close(BOTH(cbrt), positive);
  expect_close(BOTH(exp), all);
  expect_close(BOTH(expm1), all);
  expect_close(BOTH(log10), positive);
  expect_close(BOTH(log1p), positive);
  expect_close(BOTH(sin), all);
  expect_close(BOTH(tanh), all);
  expect_close(BOTH(erf), all);
  expect_close(BOTH(erfc), all);
  expect_close(BOTH(erfinv), random_points(1, -0.9, 0.9));
  expect_close(BOTH(erfcinv), random_points(1, 0.1, 1.9));
#undef BOTH
#define BOTH(name) of(#name, [](Half x) { return name(x); }), UNARY(name)
  const Points halves = {{0.25}, {0.5}, {0.75}};
  expect_close(BOTH(sqrt), halves, 2e-3);
  expect_close(BOTH(erf), halves, 2e-3);
  expect_close(BOTH(erfcinv), halves, 2e-3);
  expect_close(BOTH(log10), halves, 2e-3);
#undef BOTH
}

#undef UNARY

}  // namespace
