// Warp's documents about gradients, named after their sections: their examples work here, and those that they show as
// wrong are right.
#include "../../../runtime/tape.h"
#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Differentiability);

using Floats = std::vector<float>;

const auto sum_of = kernel("sum", [](Arr<const float> x, Arr<float> loss) { atomic_add(loss[0], Float(x[tid()])); });

// ---- Runtime reference, "Differentiability"

TEST_P(Differentiability, a_tape_of_three_kernels) {
  const auto compute1 =
      kernel("compute1", [](Arr<const vec3> a, Arr<float> b) { b[tid()] = dot(Vec3(a[tid()]), Vec3(a[tid()])); });
  const auto compute2 = kernel("compute2", [](Arr<const float> c, Arr<float> d) { d[tid()] = sqrt(c[tid()]) * 3.0f; });
  const int n = 1024;
  auto a = full<vec3>(device(), n, vec3{2, 3, 6}).requires_grad();
  auto b = zeros<float>(device(), n), d = zeros<float>(device(), n), l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(compute1, n, a, b);
    launch(compute2, n, b, d);
    launch(sum_of, n, d, l);
  });
  tape.backward(l);
  const vec3 expected = vec3{2, 3, 6} * (3.0f / 7.0f);
  for (const vec3& g : tape.gradient(a).to_vector())
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(g[k], expected[k], 1e-5f);
}

TEST_P(Differentiability, gradients_accumulate_until_they_are_zeroed) {
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  auto l = zeros<float>(device(), 1);
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> l) { atomic_add(l[0], x[tid()] * x[tid()]); });
  Tape tape;
  tape.record([&] { launch(square, 3, x, l); });
  tape.backward(l);
  tape.backward(l);
  EXPECT_EQ(x.grad().to_vector(), (Floats{4, 8, 12}));
  tape.zero();
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0}));
  tape.backward(l);
  EXPECT_EQ(x.grad().to_vector(), (Floats{2, 4, 6}));
}

// "Dynamic loops should not mutate any previously declared local variable": Warp gets [32, 8, 2].
TEST_P(Differentiability, a_dynamic_loop_that_changes_a_local) {
  const auto product = kernel("product", [](Arr<const float> x, Arr<float> l, Int n) {
    Float p = 1;
    for (auto i : range(n)) p *= x[i];
    l[tid()] = p;
  });
  auto x = full<float>(device(), 3, 2).requires_grad();
  auto l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(product, 1, x, l, 3); });
  tape.backward(l);
  EXPECT_EQ(x.grad().to_vector(), (Floats{4, 4, 4}));
}

// "Kernels should not overwrite any previously used array values": Warp gets -2, -4, -6.
TEST_P(Differentiability, an_array_that_a_later_kernel_overwrites) {
  const auto square = kernel("square", [](Arr<const float> a, Arr<float> b) { b[tid()] = a[tid()] * a[tid()]; });
  const auto overwrite = kernel("overwrite", [](Arr<const float> c, Arr<float> a) { a[tid()] = c[tid()]; });
  auto a = Array<float>(device(), {1, 2, 3}).requires_grad();
  auto c = Array<float>(device(), {-1, -2, -3}).requires_grad();
  auto b = zeros<float>(device(), 3), l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(square, 3, a, b);
    launch(overwrite, 3, c, a);
    launch(sum_of, 3, b, l);
  });
  tape.backward(l);
  EXPECT_EQ(a.grad().to_vector(), (Floats{2, 4, 6}));
  EXPECT_EQ(c.grad().to_vector(), (Floats{0, 0, 0}));
  EXPECT_EQ(a.to_vector(), (Floats{-1, -2, -3}));
}

// Warp gets 2, 2, 2.
TEST_P(Differentiability, an_array_that_a_kernel_reads_and_overwrites) {
  const auto k = kernel("read and overwrite", [](Arr<float> a, Arr<float> b) {
    Int i = tid();
    b[i] = a[i] * a[i];
    a[i] = 1;
  });
  auto a = Array<float>(device(), {1, 2, 3}).requires_grad();
  auto b = zeros<float>(device(), 3), l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(k, 3, a, b);
    launch(sum_of, 3, a, l);
    launch(sum_of, 3, b, l);
  });
  tape.backward(l);
  EXPECT_EQ(a.grad().to_vector(), (Floats{2, 4, 6}));
}

TEST_P(Differentiability, multiplication_and_division_in_place) {
  const auto k = kernel("in place", [](Arr<float> a, Arr<const float> s) {
    Int i = tid();
    a[i] *= s[i];
    a[i] /= s[i] + 1.0f;
    a[i] *= a[i];
  });
  auto a = Array<float>(device(), {1, 2}).requires_grad();
  auto s = Array<float>(device(), {1, 3}).requires_grad();
  auto l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(k, 2, a, s);
    launch(sum_of, 2, a, l);
  });
  tape.backward(l);
  // (a s / (s + 1))^2
  const Floats ga = a.grad().to_vector(), gs = s.grad().to_vector();
  EXPECT_FLOAT_EQ(ga[0], 2 * 0.25f);
  EXPECT_FLOAT_EQ(ga[1], 2 * 2 * 0.5625f);
  EXPECT_FLOAT_EQ(gs[0], 2 * 0.5f * 1 / 4);
  EXPECT_FLOAT_EQ(gs[1], 2 * 1.5f * 2 / 16);
}

// ---- Runtime reference, "Jacobians"

// Two outputs of three inputs for each environment: x0 x1, x1 + x2^2.
const auto function = kernel("function", [](Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[2 * i] = x[3 * i] * x[3 * i + 1];
  y[2 * i + 1] = x[3 * i + 1] + x[3 * i + 2] * x[3 * i + 2];
});

TEST_P(Differentiability, a_jacobian_row_by_row) {
  auto x = Array<float>(device(), {2, 3, 5}).requires_grad();
  auto y = zeros<float>(device(), 2);
  Tape tape;
  tape.record([&] { launch(function, 1, x, y); });
  std::vector<Floats> jacobian;
  for (std::size_t row = 0; row < 2; ++row) {
    Floats select(2, 0);
    select[row] = 1;
    tape.backward({{y, Array<float>(device(), select)}});
    jacobian.push_back(tape.gradient(x).to_vector());
    tape.zero();
  }
  EXPECT_EQ(jacobian, (std::vector<Floats>{{3, 2, 0}, {0, 1, 10}}));
}

TEST_P(Differentiability, jacobians_of_all_environments_at_once) {
  const int environments = 4;
  auto x = arange<float>(device(), 3.0f * environments).requires_grad();
  auto y = zeros<float>(device(), 2 * environments);
  Tape tape;
  tape.record([&] { launch(function, environments, x, y); });
  std::vector<Floats> rows;
  for (std::size_t row = 0; row < 2; ++row) {
    Floats select(2 * environments, 0);
    for (std::size_t e = 0; e < environments; ++e) select[2 * e + row] = 1;
    tape.backward({{y, Array<float>(device(), select)}});
    rows.push_back(tape.gradient(x).to_vector());
    tape.zero();
  }
  for (std::size_t e = 0; e < environments; ++e) {
    const float x0 = 3.0f * float(e), x1 = x0 + 1, x2 = x0 + 2;
    const Floats first(rows[0].begin() + 3 * long(e), rows[0].begin() + 3 * long(e) + 3);
    const Floats second(rows[1].begin() + 3 * long(e), rows[1].begin() + 3 * long(e) + 3);
    EXPECT_EQ(first, (Floats{x1, x0, 0}));
    EXPECT_EQ(second, (Floats{0, 1, 2 * x2}));
  }
}

// ---- FAQ, "What happens when you differentiate a function like abs(x)?"

TEST_P(Differentiability, abs_at_zero) {
  const auto k = kernel("abs", [](Arr<const float> x, Arr<float> l) { atomic_add(l[0], abs(x[tid()])); });
  auto x = Array<float>(device(), {-2, 0, 3}).requires_grad();
  auto l = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(k, 3, x, l); });
  tape.backward(l);
  EXPECT_EQ(x.grad().to_vector(), (Floats{-1, 1, 1}));
}

// ---- Interoperability, "Example: Optimization": points that roll to the origin

TEST_P(Differentiability, an_optimisation_by_gradients) {
  const auto loss = kernel("loss", [](Arr<const vec2> xs, Arr<float> l) {
    Vec2 x = xs[tid()];
    atomic_add(l[0], x[0] * x[0] + x[1] * x[1]);
  });
  const auto step =
      kernel("step", [](Arr<vec2> xs, Arr<const vec2> gradient, Float rate) { xs[tid()] -= gradient[tid()] * rate; });
  const int n = 100;
  std::vector<vec2> start;
  for (int i = 0; i < n; ++i) start.push_back({float(i % 7) - 3, float(i % 5) - 2});
  auto xs = Array<vec2>(device(), start).requires_grad();
  auto l = zeros<float>(device(), 1);
  float first = 0;
  for (int iteration = 0; iteration < 30; ++iteration) {
    Tape tape;
    l.zero();
    tape.record([&] { launch(loss, n, xs, l); });
    if (iteration == 0) first = l.at(0);
    tape.backward(l);
    launch(step, n, xs, xs.grad(), 0.2f);
    tape.zero();
  }
  EXPECT_LT(l.at(0), first * 1e-6f);
}

// Interoperability, "Example: Optimization using Warp's own operator": Rosenbrock's function by its adjoint.
TEST_P(Differentiability, rosenbrocks_function_by_seeds) {
  const auto rosenbrock = kernel("rosenbrock", [](Arr<const vec2> xy, Arr<float> z) {
    Vec2 v = xy[tid()];
    Float x = v[0], y = v[1];
    z[tid()] = pow(1.0f - x, 2.0f) + 100.0f * pow(y - x * x, 2.0f);
  });
  const std::vector<vec2> points{{1, 1}, {0.5f, -0.25f}, {-1, 2}};
  auto xy = Array<vec2>(device(), points).requires_grad();
  auto z = zeros<float>(device(), 3);
  Tape tape;
  tape.record([&] { launch(rosenbrock, 3, xy, z); });
  tape.backward({{z, ones_like(z)}});
  const std::vector<vec2> found = xy.grad().to_vector();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float x = points[i][0], y = points[i][1];
    EXPECT_NEAR(found[i][0], -2 * (1 - x) - 400 * x * (y - x * x), 1e-3f);
    EXPECT_NEAR(found[i][1], 200 * (y - x * x), 1e-3f);
  }
}

}  // namespace
