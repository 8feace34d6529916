// Gradients of random programs of one to four launches on a tape: on the interpreter against central differences in
// float64, on Vulkan against the interpreter. A program's number is its seed and stands in every failure.
// WEFT_RANDOM_GRADIENTS=2000 runs more of them, WEFT_RANDOM_SEED=n starts at the program of that number.
// Nearly all the time on Vulkan goes to the driver's compiler: GALLIVM_PERF=nopt halves it on the software device.
#include <algorithm>
#include <cmath>

#include "../../frontend/support/platform.h"
#include "../device/device_test.h"
#include "random_gradient_program.h"

using namespace weft;
using namespace weft::test;

namespace {

using Values = std::vector<double>;
using Twin = GradientRun<double, double>;
using Narrow = GradientRun<float, half>;

/// The largest absolute value that is a number, at least 1.
double size_of(const Values& values) {
  double most = 1;
  for (double v : values)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most;
}

bool is_finite(const Values& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

bool equal(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// The first index at which they differ by more than `tolerance`, or -1.
int difference(const Values& a, const Values& b, double tolerance) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (!equal(a[k], b[k]) && !(std::abs(a[k] - b[k]) <= tolerance)) return int(k);
  return -1;
}

/// Counts of the test, as properties in GoogleTest's report (--gtest_output=xml).
struct Counts {
  int programs = 0, kernels = 0;
  int compared = 0, skipped = 0, nonzero = 0;    ///< gradients that were compared with differences, or were not
  int narrow = 0, unsteady = 0, overflowed = 0;  ///< programs

  void record() const {
    testing::Test::RecordProperty("programs", programs);
    testing::Test::RecordProperty("kernels", kernels);
    testing::Test::RecordProperty("compared", compared);
    testing::Test::RecordProperty("skipped", skipped);
    testing::Test::RecordProperty("other_than_zero", nonzero);
    testing::Test::RecordProperty("narrow", narrow);
    testing::Test::RecordProperty("unsteady", unsteady);
    testing::Test::RecordProperty("overflowed", overflowed);
  }
};

/// Compares some of the gradients with differences: quotients with a step and with a tenth of it, which differ at a
/// kink or a jump.
void compare_with_differences(const Device& device, const GradientProgram& program, const Twin& twin,
                              const Values& gradients, Counts& counts) {
  std::mt19937_64 random(program.seed);
  double largest = 0;  // the largest term: differences cannot see its last bits
  const auto loss = [&](const Values& numbers) {
    const Values end = twin.values(device, numbers);
    double sum = 0;
    for (std::size_t k = 0; k < end.size(); ++k) {
      sum += end[k] * program.weights[k];
      largest = std::max(largest, std::abs(end[k] * program.weights[k]));
    }
    return sum;
  };
  for (int sample = 0; sample < 32; ++sample) {
    const std::size_t k = random() % gradients.size();
    const auto quotient = [&](double h) {
      const auto at = [&](double by) {
        Values numbers = program.numbers;
        numbers[k] += by;
        return loss(numbers);
      };
      return (at(h) - at(-h)) / (2 * h);
    };
    const double rough = quotient(1e-5), fine = quotient(1e-6), scale = std::max(1.0, std::abs(fine));
    if (!(std::abs(rough - fine) < 1e-4 * scale) || largest * 1e-16 / 1e-6 > 1e-4 * scale) {
      ++counts.skipped;
      continue;
    }
    ++counts.compared;
    counts.nonzero += gradients[k] != 0;
    ASSERT_NEAR(gradients[k], fine, 3e-4 * scale) << "number " << k << "\n" << twin.text();
  }
}

/// Whether gradients depend on roundings so much that they cannot be compared: the gradients of twins with random
/// roundings are as far from the twin's as the tested ones.
bool is_unsteady(const Device& device, const GradientProgram& program, const Values& gradients, double tolerance) {
  for (double noise : {2.0, -1.0, 4.0, -8.0}) {
    const Twin noisy(program, noise);
    if (difference(noisy.gradients(device, 2).of, gradients, tolerance / 4) >= 0) return true;
  }
  return false;
}

DEVICE_TEST(RandomGradientsOfPrograms);

TEST_P(RandomGradientsOfPrograms, agree_with_differences_and_the_interpreter) {
  const std::uint64_t first = platform::environment_number("WEFT_RANDOM_SEED", 1);
  const std::uint64_t number = platform::environment_number("WEFT_RANDOM_GRADIENTS", on_reference() ? 120 : 12);
  const Device reference = interpreter_like(device());
  Counts counts;
  for (std::uint64_t seed = first; seed < first + number && !HasFailure(); ++seed) {
    SCOPED_TRACE("WEFT_RANDOM_SEED=" + std::to_string(seed) + " WEFT_RANDOM_GRADIENTS=1");
    const GradientProgram program(seed);
    ++counts.programs;
    counts.kernels += int(program.kernels.size());
    const Twin twin(program);
    const bool is_narrow = program.narrow.single || program.narrow.half;
    const Values of_twin = twin.gradients(reference, program.slots[0]).of;
    const double size = size_of(of_twin), narrow_tolerance = size * (program.narrow.half ? 3e-2 : 3e-4);
    // The largest number of float16 is 65504.
    const bool comparable = is_finite(of_twin) && (!program.narrow.half || size < 1000);
    Values expected = of_twin;
    if (is_narrow) {
      const Narrow narrow(program);
      expected = narrow.gradients(reference, program.slots[0]).of;
    }
    if (!on_reference()) {
      const Values here = is_narrow ? Narrow(program).gradients(device(), program.slots[0]).of
                                    : twin.gradients(device(), program.slots[0]).of;
      const double tolerance = is_narrow ? narrow_tolerance : 1e-9 * size;
      const int k = difference(here, expected, tolerance);
      if (k >= 0 && is_narrow && (!comparable || is_unsteady(reference, program, of_twin, tolerance))) {
        ++counts.unsteady;
        continue;
      }
      ASSERT_LT(k, 0) << here[std::size_t(k)] << " is not " << expected[std::size_t(k)] << "\n" << twin.text();
      continue;
    }
    // The number of saved states does not change a single bit.
    const Values again = is_narrow ? Narrow(program).gradients(device(), program.slots[1]).of
                                   : twin.gradients(device(), program.slots[1]).of;
    ASSERT_EQ(difference(again, expected, 0), -1)
        << "with " << program.slots[0] << " and " << program.slots[1] << " states";
    if (!is_finite(of_twin)) {
      ++counts.overflowed;
      continue;
    }
    compare_with_differences(device(), program, twin, of_twin, counts);
    if (!is_narrow || !comparable) continue;
    ++counts.narrow;
    const int k = difference(expected, of_twin, narrow_tolerance);
    if (k < 0) continue;
    if (is_unsteady(device(), program, of_twin, narrow_tolerance)) {
      ++counts.unsteady;
      continue;
    }
    ASSERT_LT(k, 0) << expected[std::size_t(k)] << " is not near " << of_twin[std::size_t(k)] << "\n"
                    << Narrow(program).text();
  }
  counts.record();
  if (number < 50 || HasFailure()) return;
  EXPECT_LT(counts.unsteady * 20, counts.kernels) << "too many that cannot be compared for the test to mean something";
  if (!on_reference()) return;
  EXPECT_GT(counts.nonzero * 4, counts.compared);
  EXPECT_LT(counts.skipped * 10, counts.compared) << "too many kinks for the test to mean something";
  EXPECT_LT(counts.overflowed * 20, counts.kernels);
}

}  // namespace
