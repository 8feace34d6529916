// Volumes on devices against NanoVDB's own library on the host: voxels bit by bit, values between them, and slopes.
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>

#include <cmath>
#include <random>

#include "../../common/volume_grids.h"
#include "../device_test.h"
#include "../full_sizes.h"
#ifdef WEFT_NANOVDB
#include <nanovdb/util/Primitives.h>
#include <nanovdb/util/SampleFromVoxels.h>
#endif

using namespace weft;

namespace {

DEVICE_TEST(VolumeNanovdb);

#ifdef WEFT_NANOVDB

/// A copy of a grid where the library may read it: aligned to 32 bytes.
class HostGrid {
 public:
  explicit HostGrid(std::span<const std::byte> grid) : buffer_(nanovdb::HostBuffer::create(grid.size())) {
    std::memcpy(buffer_.data(), grid.data(), grid.size());
  }
  template <class N>
  const nanovdb::NanoGrid<N>& as() const {
    return *reinterpret_cast<const nanovdb::NanoGrid<N>*>(buffer_.data());
  }

 private:
  nanovdb::HostBuffer buffer_;
};

template <class T>
struct Host {
  using type = T;
};
template <class T, int N>
using HostVector = std::conditional_t<N == 3, nanovdb::Vec3<T>, nanovdb::Vec4<T>>;
template <class T, int N>
struct Host<vec<N, T>> {
  using type = HostVector<T, N>;
};

template <class T>
bool same_bits(const T& a, const typename Host<T>::type& b) {
  static_assert(sizeof a == sizeof b);
  return std::memcmp(&a, &b, sizeof a) == 0;
}
template <class V>
double component(const V& v, int c) {
  if constexpr (std::is_arithmetic_v<V>)
    return double(v);
  else
    return double(v[c]);
}

std::vector<vec3> asked_points(const VolumeInfo& info, int count) {
  std::mt19937 random(3);
  std::vector<vec3> points(static_cast<std::size_t>(count));
  for (vec3& p : points)
    for (int k = 0; k < 3; ++k) {
      const double lower = std::max(info.lower[k], -60) - 3, upper = std::min(info.upper[k], 60) + 3;
      p[k] = float(lower + (upper - lower) * double(random()) / 4294967296.0);
      if (p[k] - std::floor(p[k]) == 0.5f) p[k] += 0.01f;  // the library rounds halves to even numbers
    }
  return points;
}

template <class T>
auto voxels_kernel() {
  return kernel("voxels", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<T> looked_up, Arr<T> closest) {
    Int i = tid();
    const Vec3 p = points[i];
    looked_up[i] = volume_lookup<T>(volume, Vec3i(Int(floor(p.x)), Int(floor(p.y)), Int(floor(p.z))));
    closest[i] = volume_sample<T>(volume, p, VolumeSampling::closest);
  });
}
template <class T>
auto between_kernel() {
  return kernel("between", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<T> linear, Arr<T> cubic) {
    Int i = tid();
    linear[i] = volume_sample<T>(volume, points[i]);
    cubic[i] = volume_sample<T>(volume, points[i], VolumeSampling::cubic);
  });
}

template <class T>
void expect_like_host(const Device& device, std::span<const std::byte> grid, int count) {
  using N = typename Host<T>::type;
  SCOPED_TRACE(to_string(detail::VolumeValueOf<T>::type));
  const HostGrid host(grid);
  std::vector<std::uint8_t> bytes(grid.size());
  std::memcpy(bytes.data(), grid.data(), grid.size());
  const Volume volume(Array<std::uint8_t>(device, bytes));
  EXPECT_EQ(volume.info().bytes, host.as<N>().gridSize());
  const std::vector<vec3> points = asked_points(volume.info(), count);
  const Array<vec3> p(device, points);
  const Array<T> a = zeros<T>(device, count), b = zeros<T>(device, count);
  launch(voxels_kernel<T>(), count, volume, p, a, b);
  std::vector<T> looked_up = a.to_vector(), closest = b.to_vector();
  const auto accessor = host.as<N>().getAccessor();
  using Accessor = std::remove_const_t<decltype(accessor)>;
  const auto nearest = nanovdb::createSampler<0>(accessor);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const vec3 at = points[i];
    const nanovdb::Vec3f x(at.x, at.y, at.z);
    ASSERT_TRUE(same_bits(looked_up[i], accessor.getValue(nanovdb::Coord::Floor(x)))) << i;
    ASSERT_TRUE(same_bits(closest[i], nearest(x))) << i;
  }
  if constexpr (RealScalar<typename Flat<T>::scalar>) {
    launch(between_kernel<T>(), count, volume, p, a, b);
    const std::vector<T> linear = a.to_vector(), cubic = b.to_vector();
    const nanovdb::SampleFromVoxels<Accessor, 1, false> linear_host(accessor);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const nanovdb::Vec3f x(points[i].x, points[i].y, points[i].z);
      const N expected = linear_host(x);
      for (int c = 0; c < Flat<T>::count; ++c)
        ASSERT_NEAR(component(linear[i], c), component(expected, c), 1e-6 * 1000) << i;  // of the largest values
      if constexpr (Flat<T>::count == 1) {
        const nanovdb::SampleFromVoxels<Accessor, 3, false> cubic_host(accessor);
        ASSERT_NEAR(component(cubic[i], 0), component(cubic_host(x), 0), 1e-5 * 1000) << i;
      }
    }
  }
}

TEST_P(VolumeNanovdb, voxels_are_the_same_bits_and_values_between_close) {
  const int count = test::full_sizes() ? 1000000 : on_reference() ? 500 : 20000;
  const auto grid = [](VolumeType type) { return test::some_grid(type); };
  expect_like_host<float>(device(), grid(VolumeType::float32), count);
  expect_like_host<double>(device(), grid(VolumeType::float64), count);
  expect_like_host<std::int32_t>(device(), grid(VolumeType::int32), count);
  expect_like_host<std::int64_t>(device(), grid(VolumeType::int64), count);
  expect_like_host<std::uint32_t>(device(), grid(VolumeType::uint32), count);
  expect_like_host<vec3>(device(), grid(VolumeType::vec3f), count);
  expect_like_host<vec3d>(device(), grid(VolumeType::vec3d), count);
  expect_like_host<vec4>(device(), grid(VolumeType::vec4f), count);
  expect_like_host<vec4d>(device(), grid(VolumeType::vec4d), count);
}

const auto slope_kernel = kernel("slope", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<vec3> slopes) {
  Int i = tid();
  slopes[i] = volume_sample_slope<float>(volume, points[i]).gradient;
});

TEST_P(VolumeNanovdb, a_level_set_with_tiles_is_the_same) {
  const int count = test::full_sizes() ? 1000000 : on_reference() ? 500 : 20000;
  const auto handle = nanovdb::createLevelSetSphere<float>(30);
  const std::span<const std::byte> grid(reinterpret_cast<const std::byte*>(handle.data()), handle.size());
  expect_like_host<float>(device(), grid, count);
  std::vector<std::uint8_t> bytes(grid.size());
  std::memcpy(bytes.data(), grid.data(), grid.size());
  const Volume volume(Array<std::uint8_t>(device(), bytes));
  const std::vector<vec3> points = asked_points(volume.info(), count);
  const Array<vec3> slopes = zeros<vec3>(device(), count);
  launch(slope_kernel, count, volume, Array<vec3>(device(), points), slopes);
  const std::vector<vec3> got = slopes.to_vector();
  const auto accessor = handle.grid<float>()->getAccessor();
  const nanovdb::SampleFromVoxels<std::remove_const_t<decltype(accessor)>, 1, false> host(accessor);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const nanovdb::Vec3f expected = host.gradient(nanovdb::Vec3f(points[i].x, points[i].y, points[i].z));
    for (int k = 0; k < 3; ++k) ASSERT_NEAR(got[i][k], expected[k], 1e-4) << i;
  }
}

#else

TEST_P(VolumeNanovdb, needs_the_library) { GTEST_SKIP() << "NanoVDB's headers are not installed"; }

#endif

}  // namespace
