// Jacobians by rows, of many environments at once, and the check of gradients by differences.
#include <cmath>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Jacobian);

using Floats = std::vector<float>;

void expect_near(const Floats& found, const Floats& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], expected[k], 1e-5f) << k;
}

// y = (a^2 b, a + 3 b) of each pair x = (a, b)
const auto pairs = kernel("pairs", [](Arr<const float> x, Arr<vec2> y) {
  Int i = tid();
  Float a = x[2 * i], b = x[2 * i + 1];
  y[i] = Vec2(a * a * b, a + b * 3.f);
});

TEST_P(Jacobian, of_one_function_row_by_row) {
  auto x = Array<float>(device(), {2, 5}).requires_grad();
  Array<vec2> y = zeros<vec2>(device(), 1);
  Tape tape;
  tape.record([&] { launch(pairs, 1, x, y); });
  const Array<float, 2> j = jacobian(tape, y, x);
  EXPECT_EQ(j.shape(0), 2);
  EXPECT_EQ(j.shape(1), 2);
  expect_near(j.to_vector(), {20, 4, 1, 3});
  expect_near(x.grad().to_vector(), {0, 0});
}

TEST_P(Jacobian, of_independent_environments_at_once) {
  auto x = Array<float>(device(), {2, 5, 1, 1, 3, 2}).requires_grad();
  Array<vec2> y = zeros<vec2>(device(), 3);
  Tape tape;
  tape.record([&] { launch(pairs, 3, x, y); });
  const Array<float, 3> j = jacobians(tape, y, x, 3);
  EXPECT_EQ(j.shape(0), 3);
  expect_near(j.to_vector(), {20, 4, 1, 3, 2, 1, 1, 3, 12, 9, 1, 3});
  // The Jacobian of all environments as one function is block-diagonal.
  const Array<float, 2> whole = jacobian(tape, y, x);
  EXPECT_EQ(whole.at(0, 0), j.at(0, 0, 0));
  EXPECT_EQ(whole.at(2, 1), 0);
  EXPECT_EQ(whole.at(5, 4), j.at(2, 1, 0));
  expect_contains(error_of([&] { jacobians(tape, y, x, 2); }), "the first dimension of y has 3 elements");
  expect_contains(error_of([&] { jacobians(tape, y, x, 0); }), "0 environments");
  expect_contains(error_of([&] { jacobian(tape, Array<float>(), x); }), "y is a null array");
}

DEVICE_TEST(Gradcheck);

const auto energy = kernel("energy", [](Arr<const vec3> x, Arr<float> e, Float scale, Arr<float> state) {
  Int i = tid();
  Float l = length(x[i]);
  for (auto k : range(3)) {
    (void)k;
    state[i] = sin(state[i] * l);
  }
  atomic_add(e[0], l * l * scale * state[i]);
});

TEST_P(Gradcheck, passes_right_gradients_and_leaves_the_arguments_alone) {
  Array<vec3> x(device(), {vec3{1, 2, 2}, vec3{0.5f, 0, 1}});
  Array<float> e = zeros<float>(device(), 1), state(device(), {0.7f, 0.2f});
  const GradcheckResult result = gradcheck(energy, 2, x, e, 1.5f, state);
  EXPECT_TRUE(result) << result.message;
  EXPECT_GT(result.worst, 0);
  EXPECT_EQ(e.at(0), 0);
  EXPECT_EQ(state.to_vector(), (Floats{0.7f, 0.2f}));
  EXPECT_FALSE(x.has_grad());
}

TEST_P(Gradcheck, is_exact_in_double) {
  const auto k = kernel("k", [](Arr<double> x, Arr<double> y) {
    Int i = tid();
    y[i] = exp(x[i]) * sin(x[i]);
    x[i] = x[i] * y[i];
  });
  Array<double> x(device(), {0.1, 0.7, -1.3}), y = zeros<double>(device(), 3);
  const GradcheckResult result = gradcheck(k, 3, x, y);
  EXPECT_TRUE(result) << result.message;
}

TEST_P(Gradcheck, names_the_worst_element_of_a_gradient_that_is_wrong) {
  // Derivatives through detached values are left out.
  const auto k = kernel("half", [](Arr<const double> x, Arr<double> y) { y[tid()] = x[tid()] * detach(x[tid()]); });
  Array<double> x(device(), {0.1, 3, 0.2}), y = zeros<double>(device(), 3);
  const GradcheckResult result = gradcheck(k, 3, x, y);
  EXPECT_FALSE(result);
  EXPECT_GT(result.worst, 1);
  EXPECT_EQ(result.message.find("argument 1, element 1: "), 0u) << result.message;
  GradcheckOptions loose;
  loose.tolerance = 10;
  EXPECT_TRUE(gradcheck(loose, k, 3, x, y));
}

TEST_P(Gradcheck, names_the_worst_scalar_of_an_element_by_its_indices) {
  const auto k = kernel("half", [](Arr<const vec3d, 2> x, Arr<double, 2> y) {
    auto [i, j] = tid<2>();
    y(i, j) = x(i, j).x + x(i, j).z * detach(x(i, j).z);
  });
  Array<vec3d, 2> x(device(), {2, 3}, std::vector<vec3d>{{}, {}, {}, {}, {}, {1, 2, 3}});
  const GradcheckResult result = gradcheck(k, {2, 3}, x, zeros<double, 2>(device(), {2, 3}));
  EXPECT_FALSE(result);
  EXPECT_EQ(result.message.find("argument 1, element (1, 2), scalar 2 of it: "), 0u) << result.message;
}

TEST_P(Gradcheck, one_array_given_twice_stays_one) {
  const auto k = kernel("k", [](Arr<const double> a, Arr<double> b) { b[tid()] = a[tid()] * a[tid()]; });
  Array<double> x(device(), {0.5, 2});
  const GradcheckResult result = gradcheck(k, 2, x, x);
  EXPECT_TRUE(result) << result.message;
}

TEST_P(Gradcheck, a_kernel_without_real_outputs_is_refused) {
  const auto k = kernel("counts", [](Arr<const float> a, Arr<int> b) { b[tid()] = Int(a[tid()]); });
  expect_contains(error_of([&] { gradcheck(k, 1, zeros<float>(device(), 1), zeros<int>(device(), 1)); }),
                  "writes no real numbers");
}

}  // namespace
