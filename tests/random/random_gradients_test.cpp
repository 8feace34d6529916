// Gradients of random kernels: on the interpreter against central differences in float64, on Vulkan against the
// interpreter. A kernel's number is its seed and stands in every failure.
// WEFT_RANDOM_GRADIENTS=2000 runs more of them, WEFT_RANDOM_SEED=n starts at the kernel of that number.
#include <cmath>
#include <deque>
#include <random>

#include "../../frontend/support/platform.h"
#include "../device/run_adjoint.h"

using namespace weft;
using namespace weft::test;

namespace {

constexpr int kThreads = 3, kInputs = 6, kRow = 4, kOutputs = 3;

/// Traces a random body: straight code, branches, loops with break and continue, early returns, in-place updates.
/// Values stay small, so that differences are exact enough; all but comparisons and kinks is smooth.
class Body {
 public:
  Body(std::uint64_t seed, Arr<const double> x, Arr<double> row, Arr<double> out, Arr<const int> counts)
      : random_(seed), x_(x), row_(row), out_(out), counts_(counts), thread_(tid()) {}

  void trace() {
    // Few kinds of operations in each: most of the time goes to the compiler of the device.
    for (int& kind : palette_) kind = pick(22);
    for (int k = 0; k < 3; ++k) reals_.push_back(Double(x_[pick(kInputs)]));
    ints_.push_back(Int(counts_[thread_]));
    ints_.push_back(Int(thread_ + pick(3)));
    block(pick(4) + 2, 0);
    Double sum = 0.0;
    for (Double& v : reals_) sum += v * real();
    if (chance(2))
      row_[place()] = sum;
    else
      atomic_add(out_[pick(kOutputs)], sum);
  }

 private:
  int pick(int n) { return int(random_() % std::uint64_t(n)); }
  bool chance(int one_in) { return pick(one_in) == 0; }
  double real() { return (double(random_() % 2000) - 1000) / 700; }
  Double& var() { return reals_[std::size_t(pick(int(reals_.size())))]; }
  Int& count() { return ints_[std::size_t(pick(int(ints_.size())))]; }
  /// An element of the thread's own row.
  Int place() { return thread_ * kRow + (count() + pick(3)) % kRow; }

  Double leaf() {
    switch (pick(6)) {
      case 0: return Double(real());
      case 1: return Double(x_[pick(kInputs)]);
      case 2: return Double(row_[place()]);
      case 3: return Double(x_[(count() + pick(3)) % kInputs]);
      default: return Double(var());
    }
  }
  Double expression(int depth) {
    if (depth == 0) return leaf();
    Double a = expression(depth - 1);
    switch (palette_[std::size_t(pick(5))]) {
      case 0: return sin(a * expression(depth - 1));
      case 1: return cos(a) * 0.9;
      case 2: return tanh(a + expression(depth - 1));
      case 3: return a * 0.6 - expression(depth - 1) * 0.3;
      case 4: return a / (2.0 + expression(depth - 1) * expression(0));
      case 5: return sqrt(1.0 + a * a) * 0.5;
      case 6: return exp(-a * a);
      case 7: return atan2(a, 2.5 + cos(expression(depth - 1)));
      case 8: return min(a, expression(depth - 1));
      case 9: return max(a, expression(depth - 1));
      case 10: return abs(a) * 0.7;
      case 11: return select(condition(), a, expression(depth - 1));
      case 12: return fma(a, 0.4, expression(depth - 1));
      case 13: return log(1.5 + a * a);
      case 14: return pow(1.2 + a * a, expression(0) * 0.3);
      case 15: return atan(a) + rsqrt(1.0 + a * a);
      case 16: return asin(tanh(a) * 0.9);
      case 17: return a * a * 0.4;
      case 18: return exp2(-a * a) + log2(2.0 + a * a);
      case 19: return cosh(tanh(a)) * 0.5;
      case 20: return a % 1.7;
      default: return a;
    }
  }
  Bool condition() {
    switch (pick(4)) {
      case 0: return Double(var()) < real();
      case 1: return count() % 2 == 0;
      case 2: return (count() + pick(3)) % 3 == 1;
      default: return Double(row_[place()]) > real() * 0.5;
    }
  }

  void block(int statements, int depth) {
    const std::size_t reals = reals_.size(), ints = ints_.size();
    for (int s = 0; s < statements; ++s) statement(depth);
    // What a block declares ends with it.
    while (reals_.size() > reals) reals_.pop_back();
    while (ints_.size() > ints) ints_.pop_back();
  }
  void statement(int depth) {
    switch (pick(depth < 3 ? 14 : 7)) {
      case 0:
      case 1:
      case 2: var() = expression(2); return;
      case 3: row_[place()] = expression(1); return;
      case 4: row_[place()] += expression(1) * 0.5; return;
      case 5: reals_.push_back(expression(1)); return;
      case 6:
        if (chance(2))
          count() = (count() * 3 + pick(5)) % 5;
        else
          atomic_add(out_[pick(kOutputs)], expression(1));
        return;
      case 7:
      case 8:
        If (condition()) {
          block(pick(3) + 1, depth + 1);
          leave(depth);
        }
        if (chance(2)) {
          Else { block(pick(2) + 1, depth + 1); }
        }
        return;
      case 9:
      case 10:
      case 11:
        for (auto i : range(Int(chance(2) ? count() % 5 : Int(pick(6))))) {
          ++loops_;
          ints_.push_back(Int(i));
          block(pick(3) + 1, depth + 1);
          ints_.pop_back();
          --loops_;
        }
        return;
      case 12: {
        Int left = count() % 4 + 1;
        Double v = expression(0);
        While (left > 0 && v < 3.0) {
          ++loops_;
          left -= 1;
          v = v * 0.9 + expression(1) * 0.2;
          block(pick(2), depth + 1);
          --loops_;
        }
        var() = v;
        return;
      }
      default: reals_.push_back(Double(var())); return;
    }
  }
  void leave(int depth) {
    if (loops_ > 0 && chance(4)) return chance(2) ? Break() : Continue();
    if (depth > 0 && chance(12)) Return();
  }

  std::mt19937_64 random_;
  Arr<const double> x_;
  Arr<double> row_, out_;
  Arr<const int> counts_;
  Int thread_;
  std::deque<Double> reals_;  // a variable that moved would be another one
  std::deque<Int> ints_;
  int loops_ = 0;
  int palette_[5];
};

struct Case {
  ir::Module module;
  std::vector<double> x, row, weights_out, weights_row;
  std::vector<int> counts;
  std::uint32_t slots = 1;
};

Case make(std::uint64_t seed) {
  Case c;
  c.module = kernel("random", [seed](Arr<const double> x, Arr<double> row, Arr<double> out, Arr<const int> counts) {
               Body(seed, x, row, out, counts).trace();
             }).trace();
  std::mt19937_64 random(seed ^ 0x9e3779b97f4a7c15ull);
  const auto fill = [&](std::vector<double>& v, int n) {
    for (int i = 0; i < n; ++i) v.push_back((double(random() % 20001) - 10000) / 9000);
  };
  fill(c.x, kInputs);
  fill(c.row, kThreads * kRow);
  fill(c.weights_out, kOutputs);
  fill(c.weights_row, kThreads * kRow);
  for (int i = 0; i < kThreads; ++i) c.counts.push_back(int(random() % 5));
  c.slots = std::uint32_t(random() % 6) + 1;
  return c;
}

/// The weighted sum of all that the kernel writes.
double loss(const Device& device, const Case& c, const std::vector<double>& x, const std::vector<double>& row) {
  const Array<double> rows(device, row), out = zeros<double>(device, kOutputs);
  AdjointLaunch launch(device, c.module, kThreads,
                       {AdjointArg::make(Array<double>(device, x)), AdjointArg::make(rows), AdjointArg::make(out),
                        AdjointArg::make(Array<int>(device, c.counts))});
  launch.forward();
  double sum = 0;
  const std::vector<double> o = out.to_vector(), r = rows.to_vector();
  for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * c.weights_out[i];
  for (std::size_t i = 0; i < r.size(); ++i) sum += r[i] * c.weights_row[i];
  return sum;
}

/// Gradients of x, then of the rows.
std::vector<double> gradients(const Device& device, const Case& c) {
  const Array<double> rows(device, c.row);
  AdjointLaunch launch(
      device, c.module, kThreads,
      {AdjointArg::make(Array<double>(device, c.x)), AdjointArg::make(rows),
       AdjointArg::make(zeros<double>(device, kOutputs)), AdjointArg::make(Array<int>(device, c.counts))});
  launch.gradient<double>(1).assign(c.weights_row);
  launch.gradient<double>(2).assign(c.weights_out);
  launch.backward(c.slots, 8);
  std::vector<double> g = launch.gradient<double>(0).to_vector();
  const std::vector<double> of_rows = launch.gradient<double>(1).to_vector();
  g.insert(g.end(), of_rows.begin(), of_rows.end());
  EXPECT_EQ(rows.to_vector(), c.row) << "the adjoint left the rows changed";
  return g;
}

/// The difference quotients with a step and with a tenth of it; where they differ there is a kink or a jump.
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
  const Device reference("reference");
  std::size_t compared = 0, skipped = 0, nonzero = 0;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const Case c = make(seed);
    const std::string name = "WEFT_RANDOM_SEED=" + std::to_string(seed) + " WEFT_RANDOM_GRADIENTS=1";
    SCOPED_TRACE(name);
    const std::vector<double> g = gradients(reference, c);
    if (!on_reference()) {
      const std::vector<double> here = gradients(device(), c);
      for (std::size_t k = 0; k < g.size(); ++k) {
        // Some kernels overflow, and with their values go the gradients.
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
  if (!on_reference() || HasFailure()) return;
  RecordProperty("compared", int(compared));
  RecordProperty("skipped", int(skipped));
  RecordProperty("other_than_zero", int(nonzero));
  EXPECT_GT(nonzero * 4, compared);
  EXPECT_LT(skipped * 10, compared) << "too many kinks for the test to mean something";
}

}  // namespace
