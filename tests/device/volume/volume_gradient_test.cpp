// Gradients of volumes: to points, to stored values and to the transform.
#include <weft/runtime/algorithms/reduce.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>

#include <cmath>
#include <random>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeGradient);

constexpr int kSide = 12;

template <class T>
Volume random_volume(const Device& device, const std::vector<T>& values) {
  return Volume::from_dense<T>(device, values, {kSide, kSide, kSide}, {-4, -4, -4}, T{},
                               {.matrix = mat33d(0.5, 0.125, 0, 0, 0.25, 0, 0.25, 0, 1), .translation = {1, 2, 3}});
}
template <class T>
std::vector<T> random_values() {
  std::mt19937 random(11);
  std::vector<T> values(kSide * kSide * kSide);
  for (T& v : values) v = T(int(random() % 2001) - 1000) / T(256);
  return values;
}
/// Away from voxels' planes, where the linear function has kinks.
std::vector<vec3> random_points(int count) {
  std::mt19937 random(12);
  std::vector<vec3> points(static_cast<std::size_t>(count));
  for (vec3& p : points)
    for (int k = 0; k < 3; ++k) p[k] = float(int(random() % 8) - 2) + 0.125f + float(random() % 768) / 1024;
  return points;
}

template <class T>
auto loss_kernel(VolumeSampling how) {
  return kernel("loss", [how](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<T> out) {
    Int i = tid();
    const Var<T> v = volume_sample<T>(volume, points[i], how);
    out[i] = v * v;
  });
}

template <class T>
void expect_gradients(const Device& device, VolumeSampling how, double tolerance) {
  constexpr int n = 24;
  const std::vector<T> values = random_values<T>();
  const std::vector<vec3> points = random_points(n);
  const auto square = loss_kernel<T>(how);
  const auto run = [&](const Volume& volume, const Array<vec3>& at) {
    const Array<T> out = zeros<T>(device, n);
    launch(square, n, volume, at, out);
    double sum = 0;
    for (const T& x : out.to_vector()) sum += double(x);
    return sum;
  };
  const Volume volume = random_volume(device, values);
  volume.requires_grad();
  const auto at = Array<vec3>(device, points).requires_grad();
  const Array<T> out = zeros<T>(device, n), loss = zeros<T>(device, 1);
  Tape tape;
  tape.record([&] {
    launch(square, n, volume, at, out);
    reduce_sum(out, loss);
  });
  tape.backward(loss);
  const std::vector<vec3> by_point = at.grad().to_vector();
  double largest = 0;
  for (std::size_t i = 0; i < points.size(); i += 3)
    for (int k = 0; k < 3; ++k) {
      const float step = 1 / 64.f;
      std::vector<vec3> moved = points;
      moved[i][k] += step;
      const double above = run(volume, Array<vec3>(device, moved));
      moved[i][k] -= 2 * step;
      const double below = run(volume, Array<vec3>(device, moved));
      const double expected = (above - below) / (2 * double(step));
      largest = std::max(largest, std::abs(expected));
      ASSERT_NEAR(double(by_point[i][k]), expected, tolerance * std::max(10.0, std::abs(expected))) << i << ", " << k;
    }
  EXPECT_GT(largest, 1);
  // The loss is a sum of squares of functions that are linear in the values: the sum of value times derivative is twice
  // the loss.
  const std::vector<T> by_value = volume.values<T>().grad().to_vector(), stored = volume.values<T>().to_vector();
  double sum = 0;
  std::size_t touched = 0;
  for (std::size_t k = 0; k < stored.size(); ++k)
    sum += double(by_value[k]) * double(stored[k]), touched += by_value[k] != T(0);
  EXPECT_NEAR(sum, 2 * double(loss.at(0)), 1e-4 * double(loss.at(0)));
  EXPECT_GT(touched, std::size_t(n));
}

TEST_P(VolumeGradient, passes_linear_samples) {
  expect_gradients<float>(device(), VolumeSampling::linear, 2e-3);
  expect_gradients<double>(device(), VolumeSampling::linear, 2e-3);
}

TEST_P(VolumeGradient, passes_cubic_samples) { expect_gradients<float>(device(), VolumeSampling::cubic, 2e-2); }

const auto world_kernel = kernel("world", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<float> out) {
  Int i = tid();
  const Vec3 p = volume_index_to_world(volume, points[i]);
  out[i] = dot(p, p);
});

TEST_P(VolumeGradient, passes_to_the_transform) {
  const Volume volume = random_volume(device(), random_values<float>());
  volume.transform().requires_grad();
  const std::vector<vec3> points = random_points(5);
  const auto at = Array<vec3>(device(), points).requires_grad();
  const Array<float> out = zeros<float>(device(), 5), loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(world_kernel, 5, volume, at, out);
    reduce_sum(out, loss);
  });
  tape.backward(loss);
  const std::vector<float> m = volume.transform().to_vector(), got = volume.transform().grad().to_vector();
  float expected[21] = {};
  for (const vec3& p : points)
    for (int r = 0; r < 3; ++r) {
      const float world = m[std::size_t(3 * r)] * p.x + m[std::size_t(3 * r + 1)] * p.y +
                          m[std::size_t(3 * r + 2)] * p.z + m[std::size_t(18 + r)];
      for (int c = 0; c < 3; ++c) expected[3 * r + c] += 2 * world * p[c];
      expected[18 + r] += 2 * world;
    }
  for (std::size_t k = 0; k < 21; ++k)
    EXPECT_NEAR(got[k], expected[k], 1e-4 * std::max(1.f, std::abs(expected[k]))) << k;
}

const auto scale_kernel = kernel("scale", [](Var<VolumeArrays> volume, Arr<const float> x) {
  Int i = tid();
  volume_store<float>(volume, Vec3i(i, 0, 0), x[i] * 3.f);
});
const auto square_kernel = kernel("square", [](Var<VolumeArrays> volume, Arr<float> out) {
  Int i = tid();
  const Float v = volume_lookup<float>(volume, Vec3i(i, 0, 0));
  out[i] = v * v;
});

TEST_P(VolumeGradient, passes_through_stores) {
  const Volume volume = random_volume(device(), random_values<float>());
  volume.requires_grad();
  const auto x = Array<float>(device(), {1.f, 2.f, 3.f}).requires_grad();
  const Array<float> out = zeros<float>(device(), 3), loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(scale_kernel, 3, volume, x);
    launch(square_kernel, 3, volume, out);
    reduce_sum(out, loss);
  });
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{18, 36, 54}));
}

TEST_P(VolumeGradient, by_a_handle_is_that_of_the_point_alone) {
  const Volume volume =
      Volume::from_dense<float>(device(), std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2}, {}, 9.f);
  Array<vec3> points(device(), {vec3{0.5f, 0.25f, 0.75f}});
  points.requires_grad();
  Array<float> out = zeros<float>(device(), 1);
  out.requires_grad();
  const auto look = kernel("look", [](UInt64 volume, Arr<const vec3> points, Arr<float> out) {
    const Vec3 p = volume_world_to_index(volume, points[tid()]);
    out[tid()] = volume_sample<float>(volume, p);
  });
  Tape tape;
  tape.record([&] { launch(look, 1, volume.id(), points, out); });
  tape.backward({{out, ones_like(out)}});
  EXPECT_EQ(points.grad().at(0), vec3(4, 2, 1));
  expect_contains(error_of([&] { volume.requires_grad(); }), "that kernels find by its id()");
  const Volume other = Volume::from_dense<float>(device(), std::vector<float>{1}, {1, 1, 1}, {}, 0.f);
  other.requires_grad();
  expect_contains(error_of([&] { other.id(); }), "give kernels the volume itself");
}

}  // namespace
