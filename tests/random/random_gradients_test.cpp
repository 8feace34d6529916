// Gradients of random kernels of plain bodies, launched without a tape: on the interpreter against central differences
// in float64, on Vulkan against the interpreter. A kernel's number is its seed and stands in every failure.
// WEFT_RANDOM_GRADIENTS=2000 runs more of them, WEFT_RANDOM_SEED=n starts at the kernel of that number.
#include <cmath>
#include <random>

#include "../../frontend/support/platform.h"
#include "../device/run_adjoint.h"
#include "random_gradient_body.h"

using namespace weft;
using namespace weft::test;

namespace {

using Sizes = GradientSizes;

struct Case {
  ir::Module module;
  std::vector<double> x, row, weights_out, weights_row;
  std::vector<int> counts;
  std::uint32_t slots = 1;
};

Case make(std::uint64_t seed) {
  Case c;
  c.module = kernel("random", [seed](Arr<const double> x, Arr<double> row, Arr<double> out, Arr<const int> counts) {
               GradientBody(seed, PlainArrays{x, row, out, counts}).trace();
             }).trace();
  std::mt19937_64 random(seed ^ 0x9e3779b97f4a7c15ull);
  const auto fill = [&](std::vector<double>& v, int n) {
    for (int i = 0; i < n; ++i) v.push_back((double(random() % 20001) - 10000) / 9000);
  };
  fill(c.x, Sizes::kInputs);
  fill(c.row, Sizes::kRows);
  fill(c.weights_out, Sizes::kOutputs);
  fill(c.weights_row, Sizes::kRows);
  for (int i = 0; i < Sizes::kThreads; ++i) c.counts.push_back(int(random() % 5));
  c.slots = std::uint32_t(random() % 6) + 1;
  return c;
}

/// The weighted sum of all elements that the kernel writes.
double loss(const Device& device, const Case& c, const std::vector<double>& x, const std::vector<double>& row) {
  const Array<double> rows(device, row), out = zeros<double>(device, Sizes::kOutputs);
  AdjointLaunch launch(device, c.module, Sizes::kThreads,
                       {AdjointArg::make(Array<double>(device, x)), AdjointArg::make(rows), AdjointArg::make(out),
                        AdjointArg::make(Array<int>(device, c.counts))});
  launch.forward();
  double sum = 0;
  const std::vector<double> o = out.to_vector(), r = rows.to_vector();
  for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * c.weights_out[i];
  for (std::size_t i = 0; i < r.size(); ++i) sum += r[i] * c.weights_row[i];
  return sum;
}

/// The gradients of x, then those of the rows.
std::vector<double> gradients(const Device& device, const Case& c) {
  const Array<double> rows(device, c.row);
  AdjointLaunch launch(
      device, c.module, Sizes::kThreads,
      {AdjointArg::make(Array<double>(device, c.x)), AdjointArg::make(rows),
       AdjointArg::make(zeros<double>(device, Sizes::kOutputs)), AdjointArg::make(Array<int>(device, c.counts))});
  launch.gradient<double>(1).assign(c.weights_row);
  launch.gradient<double>(2).assign(c.weights_out);
  launch.backward(c.slots, 8);
  std::vector<double> g = launch.gradient<double>(0).to_vector();
  const std::vector<double> of_rows = launch.gradient<double>(1).to_vector();
  g.insert(g.end(), of_rows.begin(), of_rows.end());
  EXPECT_EQ(rows.to_vector(), c.row) << "the adjoint left the rows changed";
  return g;
}

/// The difference quotients with a step and with a tenth of it, which differ at a kink or a jump.
std::pair<double, double> differences(const Device& device, const Case& c, std::size_t k) {
  const auto quotient = [&](double h) {
    const auto at = [&](double by) {
      std::vector<double> x = c.x, row = c.row;
      (k < x.size() ? x[k] : row[k - x.size()]) += by;
      return loss(device, c, x, row);
    };
    return (at(h) - at(-h)) / (2 * h);
  };
  return {quotient(1e-5), quotient(1e-6)};
}

DEVICE_TEST(RandomGradients);

TEST_P(RandomGradients, agree_with_differences_and_the_interpreter) {
  const std::uint64_t first = platform::environment_number("WEFT_RANDOM_SEED", 1);
  const std::uint64_t count = platform::environment_number("WEFT_RANDOM_GRADIENTS", on_reference() ? 300 : 25);
  const Device reference = interpreter_like(device());
  std::size_t compared = 0, skipped = 0, nonzero = 0, refused = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const Case c = make(seed);
    const std::string name = "WEFT_RANDOM_SEED=" + std::to_string(seed) + " WEFT_RANDOM_GRADIENTS=1";
    SCOPED_TRACE(name);
    const std::vector<double> g = gradients(reference, c);
    if (!on_reference()) {
      std::vector<double> here;
      try {
        here = gradients(device(), c);
      } catch (const Error& e) {
        // A few kernels keep more values than fit on the stack of a host thread.
        if (std::string(e.what()).find("on the stack of a host thread") == std::string::npos) throw;
        ++refused;
        continue;
      }
      for (std::size_t k = 0; k < g.size(); ++k) {
        // Some kernels overflow, and then their gradients are NaN as well.
        if (std::isnan(here[k]) && std::isnan(g[k])) continue;
        ASSERT_NEAR(here[k], g[k], 1e-9 * std::max(1.0, std::abs(g[k]))) << k << "\n" << ir::print(c.module);
      }
      continue;
    }
    for (std::size_t k = 0; k < g.size(); ++k) {
      const auto [rough, fine] = differences(device(), c, k);
      const double scale = std::max(1.0, std::abs(fine));
      if (!(std::abs(rough - fine) < 1e-4 * scale)) {
        ++skipped;
        continue;
      }
      ++compared;
      nonzero += g[k] != 0;
      ASSERT_NEAR(g[k], fine, 3e-4 * scale) << k << "\n" << ir::print(c.module);
    }
  }
  RecordProperty("refused", int(refused));
  EXPECT_LE(refused * 200, count) << "too many kernels are refused";
  if (!on_reference() || HasFailure()) return;
  RecordProperty("compared", int(compared));
  RecordProperty("skipped", int(skipped));
  RecordProperty("other_than_zero", int(nonzero));
  EXPECT_GT(nonzero * 4, compared);
  EXPECT_LT(skipped * 10, compared) << "too many kinks for the test to mean something";
}

}  // namespace
