// Volumes of spheres and of points, against sums and distances on the host.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_from.h>
#include <weft/runtime/volume/volume_query.h>
#include <weft/runtime/volume/volume_surface.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeFrom);

struct Spheres {
  std::vector<vec3> centers;
  std::vector<float> radii;
};
Spheres some_spheres(int count) {
  std::mt19937 random(21);
  std::uniform_real_distribution<float> number(-1, 1);
  Spheres s;
  for (int k = 0; k < count; ++k) {
    s.centers.push_back({number(random) * 3, number(random), number(random) - 5});
    s.radii.push_back(0.2f + 0.15f * number(random));
  }
  s.centers.push_back({100, -200, 300});
  s.radii.push_back(0.01f);
  return s;
}

/// The values of all voxels of leaves, by voxel.
std::map<std::tuple<int, int, int>, float> values_of(const Volume& volume) {
  const auto voxels = empty<vec3i>(volume.device(), volume.info().leaves * 512);
  launch(kernel("voxels",
                [](Var<VolumeArrays> volume, Arr<vec3i> voxels) {
                  Int i = tid();
                  const Int leaf = volume.leaf + (i >> 9) * volume.leaf_words;
                  for (int k = 0; k < 3; ++k)
                    voxels[i][k] = (bitcast<int>(volume.words[leaf + k]) & ~7) + ((i >> (6 - 3 * k)) & 7);
                }),
         voxels.size(), volume, voxels);
  const std::vector<vec3i> at = voxels.to_vector();
  const std::vector<float> values = volume.values<float>().contiguous().reshape<1>({-1}).to_vector();
  std::map<std::tuple<int, int, int>, float> map;
  for (std::size_t k = 0; k < at.size(); ++k) map[{at[k].x, at[k].y, at[k].z}] = values[k];
  return map;
}

TEST_P(VolumeFrom, spheres_have_the_distance_from_the_nearest) {
  const Spheres s = some_spheres(on_reference() ? 6 : 40);
  const VolumeFromOptions options{.voxel_size = 0.05f, .half_width = 2.5f, .name = "spheres"};
  const Volume volume = volume_from_spheres(Array<vec3>(device(), s.centers), Array<float>(device(), s.radii), options);
  EXPECT_EQ(volume.info().name, "spheres");
  EXPECT_EQ(volume.info().grid_class, VolumeClass::level_set);
  const double limit = 2.5 * 0.05;
  EXPECT_NEAR(volume.info().background.x, limit, 1e-7);
  const auto distance = [&](const vec3d& p) {
    double least = limit;
    for (std::size_t k = 0; k < s.centers.size(); ++k)
      least = std::min(least, length(p - vec3d(s.centers[k])) - double(s.radii[k]));
    return std::max(least, -limit);
  };
  std::int64_t active = 0, unsure = 0;  // those at the limit itself may be either
  const auto values = values_of(volume);
  for (const auto& [at, value] : values) {
    const vec3d p = vec3d(std::get<0>(at), std::get<1>(at), std::get<2>(at)) * double(0.05f);
    const double expected = distance(p);
    ASSERT_NEAR(double(value), expected, 1e-4);
    if (std::abs(std::abs(expected) - limit) < 1e-4 && std::abs(expected) < limit)
      ++unsure;
    else
      active += std::abs(expected) < limit;
  }
  EXPECT_GE(volume.info().voxels, active);
  EXPECT_LE(volume.info().voxels, active + unsure);
  // Outside of the leaves there is nothing but the outside.
  std::mt19937 random(3);
  for (int k = 0; k < 20000; ++k) {
    const vec3i v{int(random() % 160) - 80, int(random() % 60) - 30, int(random() % 60) - 130};
    if (!values.contains({v.x, v.y, v.z})) {
      EXPECT_NEAR(distance(vec3d(v) * double(0.05f)), limit, 1e-6);
    }
  }
  // It is a grid that NanoVDB would read, and a surface without holes.
  const std::vector<std::byte> bytes = volume.bytes();
  std::vector<std::uint8_t> copied(bytes.size());
  std::memcpy(copied.data(), bytes.data(), bytes.size());
  EXPECT_EQ(Volume(Array<std::uint8_t>(device(), copied)).info().voxels, volume.info().voxels);
}

TEST_P(VolumeFrom, points_have_the_density_of_their_kernels) {
  Spheres s = some_spheres(on_reference() ? 10 : 200);
  const float radius = 0.3f;
  const VolumeFromOptions options{.voxel_size = 0.1f};
  const Array<vec3> points(device(), s.centers);
  const Volume volume = volume_from_points(points, radius, options);
  EXPECT_EQ(volume.info().grid_class, VolumeClass::fog);
  double sum = 0;
  for (const auto& [at, value] : values_of(volume)) {
    const vec3d p = vec3d(std::get<0>(at), std::get<1>(at), std::get<2>(at)) * double(0.1f);
    double expected = 0;
    for (const vec3& c : s.centers) {
      const vec3d apart = p - vec3d(c);
      const double near = 1 - dot(apart, apart) / (double(radius) * double(radius));
      if (near > 0) expected += 315 / (64 * 3.14159265358979 * std::pow(double(radius), 3)) * near * near * near;
    }
    ASSERT_NEAR(double(value), expected, 2e-3 * (1 + expected));
    sum += double(value);
  }
  EXPECT_NEAR(sum * 1e-3, double(s.centers.size()), 0.01 * double(s.centers.size()));
  // The order of sums does not depend on threads.
  EXPECT_EQ(volume_from_points(points, radius, options).bytes(), volume.bytes());
}

/// Distances of a mesh on a grid of points in and around it, and of its tiles.
void expect_distances(const Device& device, const MeshData& data, MeshSign sign, float voxel, double tolerance) {
  const Mesh mesh(device, data, {.winding_number = sign == MeshSign::winding});
  const VolumeFromOptions options{.voxel_size = voxel, .half_width = 3};
  const Volume volume = volume_from_mesh(mesh, sign, options);
  const float limit = 3 * voxel;
  vec3 lower = data.points[0], upper = data.points[0];
  for (const vec3& p : data.points) lower = min(lower, p), upper = max(upper, p);
  std::vector<vec3i> asked;
  const auto first = [&](int k) { return int(std::floor(lower[k] / voxel)) - 10; };
  const auto end = [&](int k) { return int(std::ceil(upper[k] / voxel)) + 10; };
  const int step = (end(0) - first(0)) / 22 + 1;
  for (int x = first(0); x < end(0); x += step)
    for (int y = first(1); y < end(1); y += step)
      for (int z = first(2); z < end(2); z += step) asked.push_back({x, y, z});
  const Array<vec3i> voxels(device, asked);
  const auto got = zeros<float>(device, voxels.size()), wanted = zeros<float>(device, voxels.size());
  launch(kernel("compare",
                [sign](Var<VolumeArrays> volume, Var<MeshArrays> mesh, Arr<const vec3i> voxels, Arr<float> got,
                       Arr<float> wanted, Float size) {
                  Int i = tid();
                  const Vec3i v = voxels[i];
                  got[i] = volume_lookup<float>(volume, v);
                  const MeshPointHit hit =
                      mesh_query_point(mesh, Vec3(Float(v.x), Float(v.y), Float(v.z)) * size, INFINITY, sign);
                  wanted[i] = hit.sign * hit.distance;
                }),
         voxels.size(), volume, mesh, voxels, got, wanted, voxel);
  const std::vector<float> values = got.to_vector(), distances = wanted.to_vector();
  int inside = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    ASSERT_NEAR(double(values[k]), double(std::clamp(distances[k], -limit, limit)), tolerance)
        << asked[k].x << ", " << asked[k].y << ", " << asked[k].z;
    inside += values[k] == -limit;
  }
  if (sign != MeshSign::none) {
    EXPECT_GT(inside, 20);
  }
  // A surface of it is closed and as large as the mesh.
  const std::vector<std::byte> bytes = volume.bytes();
  std::vector<std::uint8_t> copied(bytes.size());
  std::memcpy(copied.data(), bytes.data(), bytes.size());
  EXPECT_EQ(Volume(Array<std::uint8_t>(device, copied)).info().voxels, volume.info().voxels);
}

TEST_P(VolumeFrom, a_mesh_has_its_distance_inside_and_out) {
  const MeshData torus = shapes::torus(1, 0.4f, 40, 24);
  expect_distances(device(), torus, MeshSign::normal, 0.05f, 2e-6);
  if (on_reference()) return;
  expect_distances(device(), torus, MeshSign::winding, 0.04f, 2e-6);
  expect_distances(device(), torus, MeshSign::none, 0.05f, 2e-6);
}

TEST_P(VolumeFrom, a_large_mesh_has_tiles_inside) {
  if (on_reference()) GTEST_SKIP() << "takes too long";
  // A box of few large triangles: its middle is whole tiles of lower and upper nodes.
  MeshData box = shapes::box({20, 15, 10});
  for (vec3& p : box.points) p += vec3{3, -2, 1};
  expect_distances(device(), box, MeshSign::normal, 0.05f, 2e-5);
}

TEST_P(VolumeFrom, nothing_is_a_volume_of_the_background) {
  const Volume none = volume_from_points(Array<vec3>(device(), std::vector<vec3>()), 1);
  EXPECT_EQ(none.info().leaves, 0);
  EXPECT_EQ(none.info().background.x, 0);
}

TEST_P(VolumeFrom, refuses_by_name) {
  const Array<vec3> one(device(), {vec3{1, 2, 3}});
  const Array<float> radius(device(), {0.5f});
  const auto spheres = [&](const Array<vec3>& c, const Array<float>& r, const VolumeFromOptions& o = {}) {
    return error_of([&] { volume_from_spheres(c, r, o); });
  };
  expect_contains(spheres(Array<vec3>(), radius), "a null array");
  expect_contains(spheres(one, Array<float>(device(), {1.f, 2.f})), "a volume of 1 spheres is given 2 radii");
  expect_contains(spheres(one, radius, {.voxel_size = 0}), "voxels of side 0");
  expect_contains(spheres(one, radius, {.half_width = 0.5f}), "a band of 0.5 voxels");
  expect_contains(spheres(one, Array<float>(device(), {-1.f})), "1 of 1 spheres have no radius");
  expect_contains(spheres(one, Array<float>(device(), {std::nanf("")})), "1 of 1 spheres have no radius");
  expect_contains(spheres(Array<vec3>(device(), {vec3{1e9f, 0, 0}}), radius), "beyond 2^20 voxels");
  expect_contains(spheres(Array<vec3>(device(), {vec3{INFINITY, 0, 0}}), radius), "are not finite");
  expect_contains(spheres(one, Array<float>(device(), {200.f})), "more than 1000 voxels");
  expect_contains(error_of([&] { volume_from_mesh(Mesh()); }), "a null mesh");
  const Mesh mesh(device(), shapes::box({1, 1, 1}));
  expect_contains(error_of([&] { volume_from_mesh(mesh, MeshSign::winding); }), "MeshOptions::winding_number");
  expect_contains(error_of([&] { volume_from_mesh(mesh, MeshSign::normal, {.voxel_size = 1e-4f}); }),
                  "extend over more than 2000 voxels");
  expect_contains(error_of([&] { volume_from_points(one, -1); }), "points of radius -1");
  expect_contains(error_of([&] { volume_from_points(Array<vec3>(), 1); }), "a null array");
  expect_contains(error_of([&] { capture(device(), [&] { volume_from_points(one, 1); }); }), "in a capture");
  Array<vec3> moving(device(), {vec3{1, 2, 3}});
  moving.requires_grad();
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { volume_from_points(moving, 1); }); }), "a volume of points");
}

}  // namespace
