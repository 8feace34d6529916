// Gradients that are the same in every bit, in whatever order threads run.
#include <cmath>
#include <limits>

#include "../../../runtime/tape.h"
#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(TapeDeterministic);

const TapeOptions kDeterministic{.deterministic = true};

/// The gradient of table[k] is the sum of the seeds of all threads that read it.
const auto gather = kernel("gather", [](Arr<const float> table, Arr<const int> index, Arr<float> y) {
  y[tid()] = table[index[tid()]] * 1.0f;
});

std::vector<float> gradient_of_sums(const Device& device, int elements, const std::vector<int>& index,
                                    const std::vector<float>& seeds) {
  const int n = int(index.size());
  auto table = zeros<float>(device, elements).requires_grad();
  auto y = zeros<float>(device, n);
  const Array<int> of(device, index);
  Tape tape(kDeterministic);
  tape.record([&] { launch(gather, n, table, of, y); });
  tape.backward({{y, Array<float>(device, seeds)}});
  return table.grad().to_vector();
}

TEST_P(TapeDeterministic, sums_are_rounded_once) {
  // In float32, one after another, the first sum would be 1, because 1e8 + 1 is 1e8.
  EXPECT_EQ(gradient_of_sums(device(), 1, {0, 0, 0, 0}, {1e8f, 1, -1e8f, 1}), (std::vector<float>{2}));
  EXPECT_EQ(gradient_of_sums(device(), 2, {1, 1, 1, 0}, {1e30f, 1e-30f, -1e30f, -3}), (std::vector<float>{-3, 1e-30f}));
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(gradient_of_sums(device(), 1, {0, 0, 0}, {tiny, -4 * tiny, tiny}), (std::vector<float>{-2 * tiny}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_EQ(gradient_of_sums(device(), 1, {0, 0, 0}, {most, most, -most}), (std::vector<float>{most}));
}

TEST_P(TapeDeterministic, sums_are_those_of_float64_rounded) {
  const int n = 5000, elements = 7;
  std::vector<int> index;
  std::vector<float> seeds;
  std::vector<double> expected(elements, 0);
  for (int i = 0; i < n; ++i) {
    index.push_back(i * 13 % elements);
    seeds.push_back(std::ldexp(float(i * 7919 % 2003) - 1000, i % 11 - 5));
    expected[std::size_t(index.back())] += double(seeds.back());
  }
  const std::vector<float> found = gradient_of_sums(device(), elements, index, seeds);
  for (int k = 0; k < elements; ++k) EXPECT_EQ(found[std::size_t(k)], float(expected[std::size_t(k)]));
}

TEST_P(TapeDeterministic, what_is_not_finite_is_kept) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> found =
      gradient_of_sums(device(), 3, {0, 0, 1, 2, 2}, {infinity, 5, -infinity, infinity, -infinity});
  EXPECT_EQ(found[0], infinity);
  EXPECT_EQ(found[1], -infinity);
  EXPECT_TRUE(std::isnan(found[2]));
}

TEST_P(TapeDeterministic, of_float64_vectors_in_loops) {
  const auto k = kernel("weights", [](Arr<const vec3d> w, Arr<const double> x, Arr<double> y, Int n) {
    Double sum = 0.0;
    for (auto j : range(n)) sum += dot(Vec3d(w[j]), Vec3d(1.0, 2.0, 1e-20)) * x[tid()];
    y[tid()] = sum;
  });
  const int n = 300;
  auto w = full<vec3d>(device(), 4, vec3d{1, 1, 1}).requires_grad();
  auto x = full<double>(device(), n, 0.1).requires_grad();
  auto y = zeros<double>(device(), n);
  Tape tape(kDeterministic);
  tape.record([&] { launch(k, n, w, x, y, 4); });
  tape.backward({{y, ones_like(y)}});
  for (const vec3d& g : w.grad().to_vector()) {
    EXPECT_DOUBLE_EQ(g[0], 30.0);
    EXPECT_DOUBLE_EQ(g[1], 60.0);
    EXPECT_DOUBLE_EQ(g[2], 3e-19);
  }
  for (double g : x.grad().to_vector()) EXPECT_DOUBLE_EQ(g, 12.0);
}

TEST_P(TapeDeterministic, accumulates_in_gradients_as_others_do) {
  auto table = zeros<float>(device(), 1).requires_grad();
  auto y = zeros<float>(device(), 3);
  const auto index = zeros<int>(device(), 3);
  Tape tape(kDeterministic);
  tape.record([&] { launch(gather, 3, table, index, y); });
  tape.backward({{y, ones_like(y)}});
  tape.backward({{y, ones_like(y)}});
  EXPECT_EQ(table.grad().at(0), 6);
}

TEST_P(TapeDeterministic, what_has_no_order_is_refused) {
  const auto half_sum = kernel("half", [](Arr<const half> x, Arr<half> y) { y[tid()] = x[0] * Half(2); });
  auto x = zeros<half>(device(), 1).requires_grad();
  auto y = zeros<half>(device(), 4);
  Tape tape(kDeterministic);
  const std::string message = error_of([&] { tape.record([&] { launch(half_sum, 4, x, y); }); });
  expect_contains(message, "argument 1");
  expect_contains(message, "float16");
}

}  // namespace
