// Gradients of loops over neighbours, and of programs that build grids between such loops.
#include <weft/runtime/algorithms/reduce.h>
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/geometry/hash_grid_query.h>

#include <cmath>
#include <random>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(HashGridGradient);

constexpr float kRadius = 0.35f;
constexpr int kPoints = 60;

std::vector<vec3> some_points(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<vec3> p(kPoints);
  for (vec3& v : p)
    for (int k = 0; k < 3; ++k) v[k] = float(random() % 10007) / 10007 - 0.4f;
  return p;
}

/// Sums (1 - d^2 / r^2)^3 over all neighbours: smooth where neighbours come and go.
const auto energy_kernel = kernel("energy", [](Var<HashGridArrays> grid, Arr<const vec3> x, Arr<float> energy) {
  Int t = tid();
  Float sum = 0;
  for (auto i : hash_grid_query(grid, x[t], kRadius)) {
    Vec3 d = x[i] - x[t];
    Float near = 1.f - dot(d, d) / (kRadius * kRadius);
    If ((i != t) & (near > 0.f)) {
      sum += near * near * near;
    }
  }
  energy[t] += sum;
});

using Exact = std::vector<std::array<double, 3>>;

Exact exact(const std::vector<vec3>& points) {
  Exact x;
  for (const vec3& p : points) x.push_back({p.x, p.y, p.z});
  return x;
}
double energy_of(const Exact& x) {
  double sum = 0;
  for (std::size_t a = 0; a < x.size(); ++a)
    for (std::size_t b = 0; b < x.size(); ++b) {
      double square = 0;
      for (std::size_t k = 0; k < 3; ++k) square += (x[a][k] - x[b][k]) * (x[a][k] - x[b][k]);
      const double near = 1 - square / (double(kRadius) * double(kRadius));
      if (a != b && near > 0) sum += near * near * near;
    }
  return sum;
}

template <class F>
void expect_differences(const std::vector<vec3>& gradient, const std::vector<vec3>& points, F f) {
  Exact x = exact(points);
  constexpr double step = 1e-5;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k) {
      const double at = x[i][k];
      x[i][k] = at + step;
      const double above = f(x);
      x[i][k] = at - step;
      const double below = f(x);
      x[i][k] = at;
      const double expected = (above - below) / (2 * step);
      largest = std::max(largest, std::abs(expected));
      ASSERT_NEAR(double(gradient[i][int(k)]), expected, 2e-4 * std::max(1.0, std::abs(expected))) << i << ", " << k;
    }
  EXPECT_GT(largest, 1) << "there is something to compare";
}

TEST_P(HashGridGradient, passes_sums_over_neighbours) {
  const std::vector<vec3> points = some_points(1);
  const auto x = Array<vec3>(device(), points).requires_grad();
  const Array<float> energy = zeros<float>(device(), kPoints), loss = zeros<float>(device(), 1);
  HashGrid grid(device(), 8, 8, 8);
  Tape tape;
  tape.record([&] {
    grid.build(x, kRadius);
    launch(energy_kernel, kPoints, grid, x, energy);
    reduce_sum(energy, loss);
  });
  tape.backward(loss);
  EXPECT_NEAR(double(loss.at(0)), energy_of(exact(points)), 1e-3);
  expect_differences(x.grad().to_vector(), points, energy_of);
}

TEST_P(HashGridGradient, goes_back_by_the_cells_that_each_launch_went_by) {
  const std::vector<vec3> points = some_points(2);
  const auto move = kernel("move", [](Arr<vec3> x) {
    Int i = tid();
    Vec3 p = x[i];
    x[i] = Vec3(p.y * 1.5f, -p.x, p.z + p.x * p.x);
  });
  const auto moved = [](const Exact& x) {
    Exact to = x;
    for (std::size_t i = 0; i < x.size(); ++i) to[i] = {x[i][1] * 1.5, -x[i][0], x[i][2] + x[i][0] * x[i][0]};
    return to;
  };
  for (const bool deterministic : {false, true}) {
    const auto start = Array<vec3>(device(), points).requires_grad();
    Array<vec3> x = zeros<vec3>(device(), kPoints);
    const Array<float> energy = zeros<float>(device(), kPoints), loss = zeros<float>(device(), 1);
    HashGrid grid(device(), 8, 8, 8, {.deterministic = deterministic});
    Tape tape;
    tape.record([&] {
      x.copy_from(start);
      for (int k = 0; k < 3; ++k) {
        grid.build(x, kRadius);
        launch(energy_kernel, kPoints, grid, x, energy);
        launch(move, kPoints, x);
      }
      reduce_sum(energy, loss);
    });
    // By the way back the grid holds other points: first in the same memory, and then in more.
    grid.build(zeros<vec3>(device(), 10), 0.1f);
    grid.build(zeros<vec3>(device(), 1000), 7);
    tape.backward(loss);
    expect_differences(start.grad().to_vector(), points, [&](const Exact& at) {
      return energy_of(at) + energy_of(moved(at)) + energy_of(moved(moved(at)));
    });
  }
}

TEST_P(HashGridGradient, passes_positions_that_the_grid_keeps) {
  const std::vector<vec3> points = some_points(3);
  const auto x = Array<vec3>(device(), points).requires_grad();
  const Array<float> energy = zeros<float>(device(), kPoints), loss = zeros<float>(device(), 1);
  HashGrid grid(device(), 8, 8, 8, {.keep_positions = true});
  const auto by_place = kernel("by_place", [](Var<HashGridArrays> grid, Arr<float> energy) {
    Int t = tid();
    Vec3 p = grid.positions[t];
    Float sum = 0;
    auto query = hash_grid_query(grid, p, kRadius);
    for (auto i : query) {
      Vec3 d = grid.positions[query.place()] - p;
      Float near = 1.f - dot(d, d) / (kRadius * kRadius);
      If ((i != hash_grid_point_id(grid, t)) & (near > 0.f)) {
        sum += near * near * near;
      }
    }
    energy[t] = sum;
  });
  Tape tape;
  tape.record([&] {
    grid.build(x, kRadius);
    launch(by_place, kPoints, grid, energy);
    reduce_sum(energy, loss);
  });
  grid.build(zeros<vec3>(device(), kPoints), kRadius);
  tape.backward(loss);
  expect_differences(x.grad().to_vector(), points, energy_of);
}

TEST_P(HashGridGradient, passes_steps_that_build_and_are_run_again) {
  const std::vector<vec3> points = some_points(4);
  const auto repel = kernel("repel", [](Var<HashGridArrays> grid, Arr<const vec3> x, Arr<vec3> to) {
    Int t = tid();
    Vec3 p = x[t], push;
    for (auto i : hash_grid_query(grid, p, kRadius)) {
      Vec3 d = p - x[i];
      Float near = 1.f - dot(d, d) / (kRadius * kRadius);
      If (near > 0.f) {
        push += d * (near * near);
      }
    }
    to[t] = p + push * 0.2f;
  });
  const auto gradient = [&](bool again) {
    const auto start = Array<vec3>(device(), points).requires_grad();
    Array<vec3> x = zeros<vec3>(device(), kPoints), y = zeros<vec3>(device(), kPoints);
    const Array<float> energy = zeros<float>(device(), kPoints), loss = zeros<float>(device(), 1);
    HashGrid grid(device(), 8, 8, 8, {.deterministic = true});
    grid.build(start, kRadius);
    Tape tape;
    const auto step = [&](int) {
      grid.build(x, kRadius);
      launch(repel, kPoints, grid, x, y);
      x.copy_from(y);
    };
    tape.record([&] {
      x.copy_from(start);
      if (again)
        tape.checkpointed(6, 2, step);
      else
        for (int k = 0; k < 6; ++k) step(k);
      grid.build(x, kRadius);
      launch(energy_kernel, kPoints, grid, x, energy);
      reduce_sum(energy, loss);
    });
    tape.backward(loss);
    return start.grad().to_vector();
  };
  const std::vector<vec3> plain = gradient(false), again = gradient(true);
  float largest = 0;
  for (std::size_t i = 0; i < kPoints; ++i) {
    largest = std::max(largest, length(plain[i]));
    // Gradients by other threads are added to a point's in any order.
    ASSERT_LT(length(plain[i] - again[i]), 1e-4f * std::max(1.f, length(plain[i]))) << i;
  }
  EXPECT_GT(largest, 1);
}

TEST_P(HashGridGradient, passes_launches_by_handles_until_the_next_build) {
  const std::vector<vec3> points = some_points(5);
  const auto x = Array<vec3>(device(), points).requires_grad();
  const Array<float> energy = zeros<float>(device(), kPoints), loss = zeros<float>(device(), 1);
  HashGrid grid(device(), 8, 8, 8);
  const Array<std::uint64_t> id(device(), {grid.id()});
  const auto by_handle = kernel("by_handle", [](Arr<const std::uint64_t> id, Arr<const vec3> x, Arr<float> energy) {
    Int t = tid();
    Float sum = 0;
    for (auto i : hash_grid_query(id[0], x[t], kRadius)) {
      Vec3 d = x[i] - x[t];
      Float near = 1.f - dot(d, d) / (kRadius * kRadius);
      If ((i != t) & (near > 0.f)) {
        sum += near * near * near;
      }
    }
    energy[t] = sum;
  });
  grid.build(x, kRadius);
  Tape tape;
  tape.record([&] {
    launch(by_handle, kPoints, id, x, energy);
    reduce_sum(energy, loss);
  });
  tape.backward(loss);
  expect_differences(x.grad().to_vector(), points, energy_of);
  grid.build(x, kRadius);
  const std::string text = error_of([&] { tape.backward(loss); });
  expect_contains(text, "\"by_handle\"");
  expect_contains(text, "has changed since");
}

}  // namespace
