// Gradients by the adjoint and by differences.
#include "check_gradient.h"

#include <cmath>
#include <random>

#include "run_adjoint.h"

namespace weft::test {

namespace {

/// y = the sum of the function's results, each times its weight.
auto weighted_sum(const NumberFunction& function, std::function<double(std::size_t)> weight) {
  return kernel(function.name, [function, weight](Arr<const double> x, Arr<double> y) {
    Int i = tid();
    std::vector<Double> inputs;
    for (int k = 0; k < function.inputs; ++k) inputs.push_back(x[i * function.inputs + k]);
    const std::vector<Double> results = function.f(inputs);
    Double sum = 0.0;
    for (std::size_t k = 0; k < results.size(); ++k) sum += results[k] * weight(k);
    y[i] = sum;
  });
}
using SumKernel = decltype(weighted_sum(NumberFunction(), nullptr));

std::vector<double> flat(const Points& points) {
  std::vector<double> numbers;
  for (const std::vector<double>& p : points) numbers.insert(numbers.end(), p.begin(), p.end());
  return numbers;
}

/// The gradients at all points, one after another.
std::vector<double> gradient(const Device& device, const SumKernel& sum, const Points& points) {
  ir::Variant variant;
  variant.adjoint = true;
  const int n = int(points.size());
  const Array<double> x(device, flat(points)), y = zeros<double>(device, n);
  AdjointLaunch launch(device, sum.core().trace(variant), n, {AdjointArg::make(x), AdjointArg::make(y)});
  launch.gradient<double>(1).fill(1);
  launch.backward();
  return launch.gradient<double>(0).to_vector();
}

/// The gradients by differences of values: (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h, with an error of the order h^4.
std::vector<double> difference(const Device& device, const SumKernel& sum, const Points& points) {
  constexpr double steps[] = {-2, -1, 1, 2};
  Points moved;
  std::vector<double> sizes;
  for (const std::vector<double>& p : points)
    for (std::size_t k = 0; k < p.size(); ++k) {
      // The step is a power of two, so that the moved numbers are exactly as far apart as they should be.
      sizes.push_back(std::ldexp(std::exp2(std::floor(std::log2(std::max(1., std::abs(p[k]))))), -12));
      for (double step : steps) {
        moved.push_back(p);
        moved.back()[k] += step * sizes.back();
      }
    }
  const int n = int(moved.size());
  const Array<double> x(device, flat(moved)), y = zeros<double>(device, n);
  launch(sum, n, x, y);
  const std::vector<double> f = y.to_vector();
  std::vector<double> slopes;
  for (std::size_t k = 0; k < sizes.size(); ++k)
    slopes.push_back((8 * (f[4 * k + 2] - f[4 * k + 1]) - (f[4 * k + 3] - f[4 * k])) / (12 * sizes[k]));
  return slopes;
}

/// \param what  names the expectation in messages: "differences"
void expect_equal(const NumberFunction& function, const Points& points, const std::vector<double>& found,
                  const std::vector<double>& expected, double tolerance, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t first = i * points[i].size();
    double largest = 1;
    for (std::size_t k = 0; k < points[i].size(); ++k) largest = std::max(largest, std::abs(expected[first + k]));
    for (std::size_t k = 0; k < points[i].size(); ++k) {
      // This is not EXPECT_NEAR, because a NaN is an error as well.
      const bool close = std::abs(found[first + k] - expected[first + k]) <= tolerance * largest;
      EXPECT_TRUE(close) << function.name << " at " << testing::PrintToString(points[i]) << ": by input " << k << " "
                         << testing::PrintToString(found[first + k]) << ", by " << what << " "
                         << testing::PrintToString(expected[first + k]);
    }
  }
}

double random_weight(std::size_t k) { return std::cos(1.7 * double(k) + 0.4); }

}  // namespace

void GradientTest::expect_gradient(const NumberFunction& function, const Points& points, double tolerance,
                                   double between_devices) const {
  const SumKernel sum = weighted_sum(function, random_weight);
  const Device interpreter = interpreter_like(device());
  const std::vector<double> expected = gradient(interpreter, sum, points);
  if (on_reference())
    expect_equal(function, points, expected, difference(interpreter, sum, points), tolerance, "differences");
  else
    expect_equal(function, points, gradient(device(), sum, points), expected, std::min(tolerance, between_devices),
                 "the interpreter");
}

void GradientTest::expect_chosen(const NumberFunction& function, const std::vector<double>& point,
                                 const std::vector<double>& chosen) const {
  const SumKernel sum = weighted_sum(function, [](std::size_t) { return 1; });
  expect_equal(function, {point}, gradient(device(), sum, {point}), chosen, 1e-12, "choice");
}

void GradientTest::expect_close(const NumberFunction& single, const NumberFunction& exact, const Points& points,
                                double tolerance) const {
  expect_equal(single, points, gradient(device(), weighted_sum(single, random_weight), points),
               gradient(interpreter_like(device()), weighted_sum(exact, random_weight), points), tolerance, "float64");
}

Points random_points(int n, double lo, double hi, int count) {
  std::mt19937 bits(unsigned(n) * 7919u + unsigned(count));
  Points points;
  for (int i = 0; i < count; ++i) {
    std::vector<double> p;
    for (int k = 0; k < n; ++k) p.push_back(float(lo + (hi - lo) * (bits() * 0x1p-32)));
    points.push_back(p);
  }
  return points;
}

Points operator+(Points points, const Points& more) {
  points.insert(points.end(), more.begin(), more.end());
  return points;
}

}  // namespace weft::test
