// Surfaces of volumes and of blocks: closed, turned outward, and where the values say.
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_surface.h>

#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeSurfaceTest);

/// The sides of triangles, each as its two points in the order of the triangle. On a closed surface each side is there
/// as often as the other way round: once, unless two parts of the surface touch.
void expect_closed(const std::vector<int>& indices) {
  std::map<std::pair<int, int>, int> sides;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const std::size_t next = k % 3 == 2 ? k - 2 : k + 1;
    ++sides[{indices[k], indices[next]}];
  }
  for (const auto& [side, count] : sides) {
    const auto back = sides.find({side.second, side.first});
    ASSERT_TRUE(back != sides.end()) << "the side from " << side.first << " to " << side.second << " is open";
    EXPECT_EQ(back->second, count);
  }
}

double volume_inside(const std::vector<vec3>& points, const std::vector<int>& indices) {
  double sum = 0;
  for (std::size_t k = 0; k < indices.size(); k += 3) {
    const vec3d a(points[std::size_t(indices[k])]), b(points[std::size_t(indices[k + 1])]),
        c(points[std::size_t(indices[k + 2])]);
    sum += dot(a, cross(b, c)) / 6;
  }
  return sum;
}

/// Values of a function at the points of a block.
template <class F>
std::vector<float> block(int n, F f) {
  std::vector<float> values;
  for (int x = 0; x < n; ++x)
    for (int y = 0; y < n; ++y)
      for (int z = 0; z < n; ++z) values.push_back(float(f(x, y, z)));
  return values;
}
double ball(double x, double y, double z, double radius) { return std::sqrt(x * x + y * y + z * z) - radius; }

constexpr int kBlock = 20;
constexpr double kPi = 3.14159265358979;

TEST_P(VolumeSurfaceTest, of_a_ball_is_closed_and_turns_outward) {
  const std::vector<float> values =
      block(kBlock, [](int x, int y, int z) { return ball(x - 9.5, y - 9.25, z - 9, 6.3); });
  const Array<float, 3> array = Array<float>(device(), values).reshape<3>({kBlock, kBlock, kBlock});
  const VolumeSurface surface = to_mesh(array, 0, mat33::identity() * 0.5f, {1, 2, 3});
  const std::vector<vec3> points = surface.points.to_vector();
  const std::vector<int> indices = surface.indices.to_vector();
  expect_closed(indices);
  for (const vec3& p : points)
    EXPECT_NEAR(ball((p.x - 1) * 2 - 9.5, (p.y - 2) * 2 - 9.25, (p.z - 3) * 2 - 9, 6.3), 0, 0.02);
  EXPECT_NEAR(volume_inside(points, indices), 4. / 3 * kPi * std::pow(6.3 / 2, 3), 2);
  // Each point is used.
  std::vector<char> used(points.size());
  for (const int i : indices) used[std::size_t(i)] = 1;
  EXPECT_EQ(std::count(used.begin(), used.end(), 1), std::ptrdiff_t(points.size()));
}

TEST_P(VolumeSurfaceTest, of_noise_has_no_holes) {
  // All 256 cubes are in it, and every way in which two of them meet. Around it are greater values.
  std::mt19937 random(4);
  const int n = on_reference() ? 10 : 24;
  const std::vector<float> values = block(n, [&](int x, int y, int z) {
    const bool rim = x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1;
    return rim ? 1 : double(random() % 2000) / 1000 - 1;
  });
  const Array<float, 3> array = Array<float>(device(), values).reshape<3>({n, n, n});
  const VolumeSurface surface = to_mesh(array);
  expect_closed(surface.indices.to_vector());
  EXPECT_GT(volume_inside(surface.points.to_vector(), surface.indices.to_vector()), 0);
  // The same values in a volume give the same surface, though its leaves lie at other places.
  const Volume volume = Volume::from_dense<float>(device(), values, {n, n, n}, {-13, 5, 100}, 1.f);
  const VolumeSurface same = to_mesh(volume);
  expect_closed(same.indices.to_vector());
  EXPECT_EQ(same.indices.size(), surface.indices.size());
  EXPECT_EQ(same.points.size(), surface.points.size());
  const auto inside = [](const VolumeSurface& s) { return volume_inside(s.points.to_vector(), s.indices.to_vector()); };
  EXPECT_NEAR(inside(same), inside(surface), 1e-2 * inside(surface));
}

template <class T>
void expect_level_set(const Device& device, double tolerance) {
  // A narrow band: three voxels on both sides, and beyond it the background, which is outside, and inside a tile of
  // leaves that are filled.
  std::vector<T> values;
  constexpr int n = 40;
  for (const float d : block(n, [](int x, int y, int z) { return ball(x - 20, y - 20, z - 20, 15); }))
    values.push_back(T(std::clamp(d, -3.f, 3.f)));
  VolumeOptions options{.grid_class = VolumeClass::level_set};
  options.matrix = mat33d::identity() * 0.1;
  options.translation = {-2, -2, -2};
  const Volume volume = Volume::from_dense<T>(device, values, {n, n, n}, {}, T(3), options);
  const VolumeSurface surface = to_mesh(volume, -0.5);
  const std::vector<vec3> points = surface.points.to_vector();
  expect_closed(surface.indices.to_vector());
  for (const vec3& p : points) EXPECT_NEAR(ball(p.x, p.y, p.z, 1.45), 0, tolerance);
  EXPECT_NEAR(volume_inside(points, surface.indices.to_vector()), 4. / 3 * kPi * std::pow(1.45, 3), 0.15);
}

TEST_P(VolumeSurfaceTest, of_a_level_set_lies_in_world_space) {
  if (on_reference()) GTEST_SKIP() << "takes too long";
  expect_level_set<float>(device(), 1e-3);
  expect_level_set<half>(device(), 2e-3);
  expect_level_set<double>(device(), 1e-3);
}

TEST_P(VolumeSurfaceTest, of_nothing_is_empty) {
  const VolumeSurface none = to_mesh(Volume::allocate_by_voxels<float>(device(), {}, 1.f));
  EXPECT_EQ(none.points.size(), 0);
  EXPECT_EQ(none.indices.size(), 0);
  const Array<float, 3> flat = Array<float>(device(), std::vector<float>(27, 2.f)).reshape<3>({3, 3, 3});
  EXPECT_EQ(to_mesh(flat).points.size(), 0);
  // NaNs are greater, and the points beside them lie in the middle.
  std::vector<float> values(27, std::nanf(""));
  values[13] = -1;
  const VolumeSurface dot = to_mesh(Array<float>(device(), values).reshape<3>({3, 3, 3}));
  expect_closed(dot.indices.to_vector());
  EXPECT_EQ(dot.points.size(), 6);
  EXPECT_NEAR(volume_inside(dot.points.to_vector(), dot.indices.to_vector()), 1. / 6, 1e-6);
}

TEST_P(VolumeSurfaceTest, refuses_by_name) {
  expect_contains(error_of([&] { to_mesh(Array<float, 3>()); }), "a null array");
  expect_contains(error_of([&] { to_mesh(Volume()); }), "a null volume");
  const std::vector<vec3i> voxels{{0, 0, 0}};
  expect_contains(error_of([&] { to_mesh(Volume::allocate_by_voxels<int>(device(), voxels, 1)); }),
                  "of type int32, whose values are no real numbers");
  const Volume volume = Volume::allocate_by_voxels<float>(device(), voxels, 1.f);
  expect_contains(error_of([&] { capture(device(), [&] { to_mesh(volume); }); }), "in a capture");
  Array<float, 3> values = Array<float>(device(), std::vector<float>(27, 2.f)).reshape<3>({3, 3, 3});
  values.requires_grad();
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { to_mesh(values); }); }), "to_mesh()");
}

}  // namespace
