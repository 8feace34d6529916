// Volumes in kernels: every voxel of a known grid, values between voxels, space, stores and numbers of voxels.
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "../../common/volume_grids.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeTest);

Volume some_volume(const Device& device, VolumeType type) {
  return Volume::load(device, test::file_of({test::some_grid(type)}, VolumeCodec::none));
}

/// All voxels of the grid, voxels beside it, and some far away.
std::vector<vec3i> asked_voxels() {
  std::vector<vec3i> asked = test::some_voxels();
  for (std::size_t k = 0, n = asked.size(); k < n; k += 5)
    asked.push_back({int(unsigned(asked[k].x) + 1), int(unsigned(asked[k].y) - 2), int(unsigned(asked[k].z) + 3)});
  std::mt19937 random(5);
  for (int k = 0; k < 500; ++k) asked.push_back({int(random()), int(random()), int(random())});
  return asked;
}

bool is_filled(const vec3i& at) {
  static const std::vector<vec3i> voxels = test::some_voxels();
  const auto inside = [](int x) { return x >= -10 && x <= 10; };
  if (inside(at.x) && inside(at.y) && inside(at.z)) return true;
  return std::find(voxels.end() - 5, voxels.end(), at) != voxels.end();
}
double expected_value(const vec3i& at, int component = 0) {
  return is_filled(at) ? test::number_of(at, component) : test::kBackground + component;
}

template <class T>
double scalar(const T& value, int c) {
  if constexpr (requires { value[c]; })
    return double(value[c]);
  else
    return double(value);
}

template <class T>
auto lookup_kernel() {
  return kernel("lookup", [](Var<VolumeArrays> volume, Arr<const vec3i> voxels, Arr<T> out) {
    Int i = tid();
    out[i] = volume_lookup<T>(volume, voxels[i]);
  });
}

template <class T>
void expect_lookups(const Device& device, bool brief) {
  const Volume volume = some_volume(device, detail::VolumeValueOf<T>::type);
  std::vector<vec3i> asked = asked_voxels();
  if (brief) {
    std::shuffle(asked.begin(), asked.end(), std::mt19937(6));
    asked.resize(800);
  }
  const Array<vec3i> voxels(device, asked);
  const Array<T> out = zeros<T>(device, voxels.size());
  launch(lookup_kernel<T>(), voxels.size(), volume, voxels, out);
  const std::vector<T> got = out.to_vector();
  for (std::size_t k = 0; k < got.size(); ++k)
    for (int c = 0; c < Flat<T>::count; ++c) {
      double expected = expected_value(asked[k], c);
      if constexpr (std::is_same_v<T, unsigned>) expected = double(unsigned(int(expected)));
      ASSERT_EQ(scalar(got[k], c), expected) << asked[k].x << ", " << asked[k].y << ", " << asked[k].z;
    }
}

TEST_P(VolumeTest, has_the_value_of_every_voxel) {
  expect_lookups<float>(device(), on_reference());
  expect_lookups<double>(device(), on_reference());
  expect_lookups<int>(device(), on_reference());
  expect_lookups<unsigned>(device(), on_reference());
  expect_lookups<std::int64_t>(device(), on_reference());
  expect_lookups<half>(device(), on_reference());
  expect_lookups<vec3>(device(), on_reference());
  expect_lookups<vec3d>(device(), on_reference());
  expect_lookups<vec4>(device(), on_reference());
  expect_lookups<vec4d>(device(), on_reference());
}

/// A function that cubic interpolation reproduces: of degree 1 along each axis for linear, of degree 2 for cubic.
double smooth(double x, double y, double z, bool cubic) {
  const double linear = 3 + x * 0.5 - y * z * 0.25 + x * y * z * 0.125;
  return cubic ? linear + x * x * 0.25 - y * y * x * 0.0625 : linear;
}
template <class T>
Volume smooth_volume(const Device& device, bool cubic) {
  constexpr int n = 24;
  std::vector<T> values;
  for (int x = 0; x < n; ++x)
    for (int y = 0; y < n; ++y)
      for (int z = 0; z < n; ++z) {
        const double v = smooth(x - 12, y - 12, z - 12, cubic);
        if constexpr (Scalar<T>)
          values.push_back(T(v));
        else
          for (values.push_back(T{}); auto c : {0, 1, 2}) values.back()[c] = typename Flat<T>::scalar(v * (c + 1));
      }
  return Volume::from_dense<T>(device, values, {n, n, n}, {-12, -12, -12}, T{});
}
std::vector<vec3> points_inside(int count) {
  std::mt19937 random(9);
  std::vector<vec3> points{{0, 0, 0}, {-8, 7, 0.5f}, {7.75f, -0.25f, -8}};
  while (int(points.size()) < count) {
    const auto number = [&] { return float(int(random() % 16001) - 8000) / 1000; };
    points.push_back({number(), number(), number()});
  }
  return points;
}

template <class T>
auto slope_kernel(VolumeSampling how) {
  using V = detail::VolumeValueOf<T>;
  return kernel("slope", [how](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<typename V::Sampled> values,
                               Arr<typename V::Sampled> alone, Arr<typename V::Slope> slopes) {
    Int i = tid();
    const VolumeSlope<T> s = volume_sample_slope<T>(volume, points[i], how);
    values[i] = s.value;
    slopes[i] = s.gradient;
    alone[i] = volume_sample<T>(volume, points[i], how);
  });
}

template <class T>
void expect_slopes(const Device& device, VolumeSampling how, double tolerance, int count) {
  using V = detail::VolumeValueOf<T>;
  const bool cubic = how == VolumeSampling::cubic;
  const Volume volume = smooth_volume<T>(device, cubic);
  const std::vector<vec3> points = points_inside(count);
  const std::int64_t n = std::int64_t(points.size());
  const auto values = zeros<typename V::Sampled>(device, n), alone = zeros<typename V::Sampled>(device, n);
  const auto slopes = zeros<typename V::Slope>(device, n);
  launch(slope_kernel<T>(how), n, volume, Array<vec3>(device, points), values, alone, slopes);
  const auto v = values.to_vector(), a = alone.to_vector();
  const auto g = slopes.to_vector();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = points[i].x, y = points[i].y, z = points[i].z, h = 1e-3;
    const double exact[] = {(smooth(x + h, y, z, cubic) - smooth(x - h, y, z, cubic)) / (2 * h),
                            (smooth(x, y + h, z, cubic) - smooth(x, y - h, z, cubic)) / (2 * h),
                            (smooth(x, y, z + h, cubic) - smooth(x, y, z - h, cubic)) / (2 * h)};
    for (int c = 0; c < Flat<typename V::Sampled>::count; ++c) {
      const double value = smooth(x, y, z, cubic) * (c + 1);
      ASSERT_NEAR(scalar(v[i], c), value, tolerance * 200) << i;
      ASSERT_NEAR(scalar(a[i], c), scalar(v[i], c), tolerance * 200) << i;
      for (int k = 0; k < 3; ++k) {
        double got;
        if constexpr (Scalar<T>)
          got = double(g[i][k]);
        else
          got = double(g[i](c, k));
        ASSERT_NEAR(got, exact[k] * (c + 1), tolerance * 500) << i << ", " << k;
      }
    }
  }
}

TEST_P(VolumeTest, samples_reproduce_smooth_functions_and_their_slopes) {
  for (const VolumeSampling how : {VolumeSampling::linear, VolumeSampling::cubic}) {
    SCOPED_TRACE(int(how));
    expect_slopes<float>(device(), how, 1e-5, on_reference() ? 40 : 300);
    expect_slopes<double>(device(), how, 1e-7, on_reference() ? 40 : 300);
    expect_slopes<half>(device(), how, 2e-3, on_reference() ? 40 : 300);
    expect_slopes<vec3>(device(), how, 1e-5, on_reference() ? 40 : 300);
    expect_slopes<vec3d>(device(), how, 1e-7, on_reference() ? 40 : 300);
  }
}

const auto closest_kernel = kernel("closest", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<int> out) {
  Int i = tid();
  out[i] = volume_sample<int>(volume, points[i], VolumeSampling::closest);
});

TEST_P(VolumeTest, the_closest_voxel_is_half_away_from_zero) {
  const Volume volume = some_volume(device(), VolumeType::int32);
  const std::vector<vec3> points = {
      {0.5f, 0, 0}, {-0.5f, 0, 0}, {2.49f, 1.5f, -2.5f}, {9.5f, -9.5f, 10.4f}, {10.5f, 0, 0}};
  const std::vector<vec3i> voxels = {{1, 0, 0}, {-1, 0, 0}, {2, 2, -3}, {10, -10, 10}, {11, 0, 0}};
  const Array<int> out = zeros<int>(device(), std::int64_t(points.size()));
  launch(closest_kernel, out.size(), volume, Array<vec3>(device(), points), out);
  const std::vector<int> got = out.to_vector();
  for (std::size_t k = 0; k < voxels.size(); ++k) EXPECT_EQ(got[k], int(expected_value(voxels[k]))) << k;
}

const auto linear_kernel = kernel("linear", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<float> out) {
  Int i = tid();
  out[i] = volume_sample<float>(volume, points[i]);
});

TEST_P(VolumeTest, points_that_are_no_numbers_or_far_away_are_no_fault) {
  const Volume volume = some_volume(device(), VolumeType::float32);
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<vec3> points = {{nan, 0, 0},   {0, nan, nan}, {inf, 0, 0}, {0, -inf, 0},
                                    {1e30f, 0, 0}, {0, 0, -3e9f}, {0, 2e9f, 0}};
  const Array<float> out = zeros<float>(device(), std::int64_t(points.size()));
  launch(linear_kernel, out.size(), volume, Array<vec3>(device(), points), out);
  const std::vector<float> got = out.to_vector();
  for (const int k : {0, 1, 2, 3}) EXPECT_TRUE(std::isnan(got[std::size_t(k)])) << k;
  EXPECT_EQ(got[6], float(test::kBackground));
}

const auto march_kernel =
    kernel("march", [](Var<VolumeArrays> volume, Arr<const vec3> from, Vec3 step, Arr<float> out) {
      Int i = tid();
      VolumeAccessor<float> values(volume);
      Float sum = 0;
      for (auto k : range(60)) {
        const Vec3 p = from[i] + step * Float(k);
        sum += values.sample(p) * 0.5f + values.lookup(Vec3i(Int(floor(p.x)), Int(floor(p.y)), Int(floor(p.z))));
      }
      out[i] = sum;
    });
const auto march_once_kernel =
    kernel("march_once", [](Var<VolumeArrays> volume, Arr<const vec3> from, Vec3 step, Arr<float> out) {
      Int i = tid();
      Float sum = 0;
      for (auto k : range(60)) {
        const Vec3 p = from[i] + step * Float(k);
        sum += volume_sample<float>(volume, p) * 0.5f +
               volume_lookup<float>(volume, Vec3i(Int(floor(p.x)), Int(floor(p.y)), Int(floor(p.z))));
      }
      out[i] = sum;
    });

TEST_P(VolumeTest, an_accessor_finds_what_single_calls_find) {
  const Volume volume = some_volume(device(), VolumeType::float32);
  const Array<vec3> from(device(), points_inside(40));
  const Array<float> a = zeros<float>(device(), 40), b = zeros<float>(device(), 40);
  launch(march_kernel, 40, volume, from, vec3{0.31f, -0.17f, 0.5f}, a);
  launch(march_once_kernel, 40, volume, from, vec3{0.31f, -0.17f, 0.5f}, b);
  // Sums of thousands may be rounded differently.
  const std::vector<float> x = a.to_vector(), y = b.to_vector();
  for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 0.5f) << k;
}

const auto space_kernel = kernel("space", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<vec3> out) {
  Int i = tid();
  const Vec3 p = points[i];
  out[4 * i] = volume_index_to_world(volume, p);
  out[4 * i + 1] = volume_world_to_index(volume, volume_index_to_world(volume, p));
  out[4 * i + 2] = volume_index_to_world_dir(volume, p);
  out[4 * i + 3] = volume_world_to_index_dir(volume, volume_index_to_world_dir(volume, p));
});

TEST_P(VolumeTest, index_and_world_space_are_the_transform_apart) {
  const Volume volume = some_volume(device(), VolumeType::float32);
  const std::vector<vec3> points = points_inside(20);
  const Array<vec3> out = zeros<vec3>(device(), 80);
  launch(space_kernel, 20, volume, Array<vec3>(device(), points), out);
  const std::vector<vec3> got = out.to_vector();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const vec3 p = points[i], dir{p.x * 0.5f, p.y * 0.25f + p.z * 0.125f, p.z * 2};
    EXPECT_LT(length(got[4 * i] - (dir + vec3{1, -2, 3})), 1e-5f);
    EXPECT_LT(length(got[4 * i + 1] - p), 1e-5f);
    EXPECT_LT(length(got[4 * i + 2] - dir), 1e-5f);
    EXPECT_LT(length(got[4 * i + 3] - p), 1e-5f);
  }
}

TEST_P(VolumeTest, a_transform_that_is_written_is_part_of_the_grid) {
  const Volume volume = some_volume(device(), VolumeType::float32);
  const std::vector<std::byte> before = volume.bytes();
  Array<float> transform = volume.transform();
  std::vector<float> map(21);
  map[0] = 2, map[4] = 4, map[8] = 8;
  map[9] = 0.5, map[13] = 0.25, map[17] = 0.125;
  map[18] = -1, map[19] = -2, map[20] = -3;
  transform.assign(map);
  const auto file = [&] { return test::file_of({volume.bytes()}, VolumeCodec::none); };
  const Volume again = Volume::load(device(), file());
  EXPECT_EQ(again.info().matrix(1, 1), 4);
  EXPECT_EQ(again.info().matrix(0, 1), 0);
  EXPECT_EQ(again.info().translation, vec3d(-1, -2, -3));
  EXPECT_EQ(again.info().voxel_size, vec3d(2, 4, 8));
  EXPECT_EQ(again.transform().to_vector(), map);
  EXPECT_NE(again.bytes(), before);
  map[4] = 0;
  transform.assign(map);
  expect_contains(error_of([&] { volume.bytes(); }), "has no inverse");
}

const auto store_kernel =
    kernel("store", [](Var<VolumeArrays> volume, Arr<const vec3i> voxels, Arr<const vec3> values) {
      Int i = tid();
      volume_store<vec3>(volume, voxels[i], values[i]);
    });

TEST_P(VolumeTest, a_store_sets_voxels_of_leaves_alone) {
  const Volume volume = some_volume(device(), VolumeType::vec3f);
  // The last two lie in an empty part of a leaf, and in no leaf.
  const std::vector<vec3i> voxels = {{0, 0, 0}, {5000, -4097, 3}, {-10, 10, -10}, {15, 15, 15}, {40, 0, 0}};
  const std::vector<vec3> values = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}, {13, 14, 15}};
  const std::int64_t n = std::int64_t(voxels.size());
  const Array<vec3i> at(device(), voxels);
  launch(store_kernel, n, volume, at, Array<vec3>(device(), values));
  const Array<vec3> out = zeros<vec3>(device(), n);
  launch(lookup_kernel<vec3>(), n, volume, at, out);
  const std::vector<vec3> got = out.to_vector();
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(got[k], values[k]) << k;
  EXPECT_EQ(got[4], vec3(test::kBackground, test::kBackground + 1, test::kBackground + 2));
  // What was stored is part of the grid, whose checksums are right, and nothing became active.
  const Volume again = Volume::load(device(), test::file_of({volume.bytes()}, VolumeCodec::zip));
  EXPECT_EQ(again.info().voxels, volume.info().voxels);
  launch(lookup_kernel<vec3>(), n, again, at, out);
  EXPECT_EQ(out.to_vector(), got);
  EXPECT_EQ(again.values<vec3>().to_vector(), volume.values<vec3>().to_vector());
}

const auto voxels_kernel =
    kernel("voxels", [](Var<VolumeArrays> volume, Arr<vec3i> out, Arr<int> counts, Arr<int> numbers) {
      Int i = tid();
      const Vec3i at = volume_voxel(volume, i);
      out[i] = at;
      counts[i] = volume_voxel_count(volume);
      numbers[i] = volume_lookup_index(volume, at);
    });

TEST_P(VolumeTest, voxels_have_numbers) {
  for (const VolumeType type : {VolumeType::float32, VolumeType::vec4d, VolumeType::index, VolumeType::on_index}) {
    SCOPED_TRACE(to_string(type));
    const Volume volume = some_volume(device(), type);
    std::vector<vec3i> expected = test::some_voxels();
    const std::int64_t n = std::int64_t(expected.size());
    ASSERT_EQ(volume.info().voxels, n);
    const Array<vec3i> out = zeros<vec3i>(device(), n + 2);
    const Array<int> counts = zeros<int>(device(), n + 2), numbers = zeros<int>(device(), n + 2);
    launch(voxels_kernel, n + 2, volume, out, counts, numbers);
    std::vector<vec3i> got = out.to_vector();
    const std::vector<int> number = numbers.to_vector();
    EXPECT_EQ(counts.at(0), int(n));
    EXPECT_EQ(got[std::size_t(n)], vec3i(0x7fffffff, 0x7fffffff, 0x7fffffff));
    EXPECT_EQ(number[std::size_t(n + 1)], -1);
    if (type == VolumeType::on_index)
      for (int k = 0; k < int(n); ++k) ASSERT_EQ(number[std::size_t(k)], k);
    else
      for (std::size_t k = 1; k < std::size_t(n); ++k) {
        ASSERT_LT(number[k - 1], number[k]);
        ASSERT_LT(number[k], 512 * volume.info().leaves);
      }
    got.resize(std::size_t(n));
    const auto by_place = [](const vec3i& a, const vec3i& b) {
      return std::tie(a.x, a.y, a.z) < std::tie(b.x, b.y, b.z);
    };
    std::sort(got.begin(), got.end(), by_place);
    std::sort(expected.begin(), expected.end(), by_place);
    EXPECT_EQ(got, expected);
  }
}

const auto index_sample_kernel = kernel(
    "index_sample", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<const float> values, Arr<float> out) {
      Int i = tid();
      out[2 * i] = volume_sample_index(volume, points[i], VolumeSampling::linear, values, 500.f);
      out[2 * i + 1] = volume_sample_index(volume, points[i], VolumeSampling::closest, values, 500.f);
    });
const auto both_kernel = kernel("both", [](Var<VolumeArrays> volume, Arr<const vec3> points, Arr<float> out) {
  Int i = tid();
  out[2 * i] = volume_sample<float>(volume, points[i]);
  out[2 * i + 1] = volume_sample<float>(volume, points[i], VolumeSampling::closest);
});

TEST_P(VolumeTest, values_of_an_array_are_sampled_by_an_index_grid) {
  const Volume volume = some_volume(device(), VolumeType::float32), index = some_volume(device(), VolumeType::on_index);
  const std::int64_t n = volume.info().voxels;
  const Array<vec3i> at = zeros<vec3i>(device(), n);
  launch(voxels_kernel, n, index, at, zeros<int>(device(), n), zeros<int>(device(), n));
  const Array<float> values = zeros<float>(device(), n);
  launch(lookup_kernel<float>(), n, volume, at, values);
  std::vector<vec3> asked = points_inside(100);
  for (int k = 0; k < 50; ++k) asked.push_back(asked[std::size_t(k)] * 1.6f);  // some beyond the border
  const Array<vec3> points(device(), asked);
  const Array<float> a = zeros<float>(device(), 300), b = zeros<float>(device(), 300);
  launch(index_sample_kernel, 150, index, points, values, a);
  launch(both_kernel, 150, volume, points, b);
  const std::vector<float> x = a.to_vector(), y = b.to_vector();
  for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-3) << k;
  // Numbers beyond the array have the background, not what lies there.
  launch(index_sample_kernel, 150, index, points, values.slice(0, 1), a);
  const std::vector<float> short_of = a.to_vector();
  for (std::size_t k = 1; k < short_of.size(); k += 2)
    ASSERT_TRUE(short_of[k] == 500.f || short_of[k] == values.at(0)) << short_of[k];
}

const auto by_handle_kernel =
    kernel("by_handle", [](Arr<const std::uint64_t> ids, Arr<const vec3i> voxels, Arr<float> out) {
      Int i = tid();
      out[i] = volume_lookup<float>(ids[i], voxels[i]) + volume_index_to_world(ids[i], Vec3(0.f, 0.f, 0.f)).x * 1000.f;
    });

TEST_P(VolumeTest, is_found_by_its_handle_and_nothing_by_others) {
  Volume gone = some_volume(device(), VolumeType::float32);
  const Volume volume = some_volume(device(), VolumeType::float32), ints = some_volume(device(), VolumeType::int32);
  const std::vector<std::uint64_t> ids = {volume.id(), ints.id(), 0, gone.id()};
  gone = {};
  const Array<float> out = zeros<float>(device(), 4);
  launch(by_handle_kernel, 4, Array<std::uint64_t>(device(), ids),
         Array<vec3i>(device(), std::vector<vec3i>(4, vec3i{1, 2, 3})), out);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{float(test::number_of({1, 2, 3})) + 1000, 1000, 0, 0}));
}

TEST_P(VolumeTest, debug_mode_reports_handles_of_other_things) {
  const auto take = kernel("take",
                           [](Arr<const std::uint64_t> ids, Arr<float> out) {
                             out[tid()] = volume_lookup<float>(ids[tid()], Vec3i(1, 2, 3));
                           },
                           {.debug = true});
  const auto report_of = [&](std::uint64_t id) {
    const Array<float> out = zeros<float>(device(), 1);
    launch(take, 1, Array<std::uint64_t>(device(), {id}), out);
    return error_of([&] { out.to_vector(); });
  };
  Volume gone = some_volume(device(), VolumeType::float32);
  const std::uint64_t id = gone.id();
  gone = {};
  expect_contains(report_of(id), std::to_string(id) + " names no volume, or one that is no more");
  HashGrid grid(device(), 4, 4, 4);
  grid.build(zeros<vec3>(device(), 3), 1);
  expect_contains(report_of(grid.id()), "is that of a hash grid, but used for a volume");
}

TEST_P(VolumeTest, of_another_type_or_none_is_refused) {
  const Volume volume = some_volume(device(), VolumeType::int32);
  const Array<vec3i> voxels(device(), {vec3i{1, 2, 3}});
  expect_contains(error_of([&] { launch(lookup_kernel<float>(), 1, volume, voxels, zeros<float>(device(), 1)); }),
                  "float32_values is an empty array");
  expect_contains(error_of([&] { volume.values<float>(); }),
                  "values of type float32 are asked of a volume of type int32");
  expect_contains(error_of([&] { volume.requires_grad(); }), "whose values are no reals");
  expect_contains(error_of([&] { Volume().info(); }), "a null volume");
  expect_contains(error_of([&] {
                    const auto linear = kernel("between", [](Var<VolumeArrays> v, Arr<int> out) {
                      out[tid()] = volume_sample<int>(v, Vec3(0.f, 0.f, 0.f));
                    });
                    launch(linear, 1, volume, zeros<int>(device(), 1));
                  }),
                  "integers have no values between");
  expect_contains(error_of([&] {
                    const auto store = kernel("by_id", [](UInt64 id, Arr<int> out) {
                      volume_store<int>(id, Vec3i(0, 0, 0), 1);
                      out[tid()] = 0;
                    });
                    launch(store, 1, volume.id(), zeros<int>(device(), 1));
                  }),
                  "read-only");
}

TEST_P(VolumeTest, is_allocated_by_tiles_and_by_voxels) {
  const std::vector<vec3i> voxels = {{0, 0, 0}, {7, 7, 7}, {8, 0, 0}, {-1, 300, -5000}, {0, 0, 0}};
  const Volume tiles = Volume::allocate_by_tiles<float>(device(), voxels, 2.5f, {.name = "tiles"});
  EXPECT_EQ(tiles.info().leaves, 3);
  EXPECT_EQ(tiles.info().voxels, 3 * 512);
  EXPECT_EQ(tiles.info().name, "tiles");
  EXPECT_EQ(tiles.info().background.x, 2.5);
  const Volume exact =
      Volume::allocate_by_voxels<vec3>(device(), voxels, vec3{1, 2, 3}, {.matrix = mat33d::identity() * 0.5});
  EXPECT_EQ(exact.info().leaves, 3);
  EXPECT_EQ(exact.info().voxels, 4);
  EXPECT_EQ(exact.info().voxel_size.y, 0.5);
  EXPECT_EQ(exact.info().upper, vec3i(8, 300, 7));
  const Volume none = Volume::allocate_by_voxels<float>(device(), {}, 7.f);
  const Array<float> out = zeros<float>(device(), 1);
  launch(lookup_kernel<float>(), 1, none, Array<vec3i>(device(), {vec3i{1, 2, 3}}), out);
  EXPECT_EQ(out.at(0), 7.f);
  expect_contains(error_of([&] { Volume::allocate_by_tiles<float>(device(), voxels, 0.f, {.matrix = mat33d()}); }),
                  "has no inverse");
  expect_contains(
      error_of([&] { Volume::allocate_by_tiles<float>(device(), voxels, 0.f, {.name = std::string(256, 'n')}); }),
      "its name has 256 bytes");
  expect_contains(error_of([&] {
                    Volume::allocate_by_tiles<float>(device(), voxels, 0.f, {.grid_class = VolumeClass::staggered});
                  }),
                  "cannot be of class");
}

TEST_P(VolumeTest, of_a_block_keeps_what_differs_from_the_background) {
  std::vector<int> values(30 * 9 * 5, -1);
  values[0] = 5, values[(20 * 9 + 8) * 5 + 4] = 6;
  const Volume volume = Volume::from_dense<int>(device(), values, {30, 9, 5}, {100, -4, 0}, -1);
  EXPECT_EQ(volume.info().voxels, 2);
  EXPECT_EQ(volume.info().lower, vec3i(100, -4, 0));
  EXPECT_EQ(volume.info().upper, vec3i(120, 4, 4));
  expect_contains(error_of([&] {
                    Volume::from_dense<int>(device(), values, {30, 9, 6}, {}, 0);
                  }),
                  "is given 1350 values");
  expect_contains(error_of([&] { Volume::from_dense<int>(device(), values, {-30, -9, 5}, {}, 0); }), "is to have -30");
}

TEST_P(VolumeTest, is_made_of_an_array_that_holds_a_grid) {
  const std::vector<std::byte> grid = test::some_grid(VolumeType::float64);
  std::vector<std::uint8_t> bytes(grid.size());
  std::memcpy(bytes.data(), grid.data(), grid.size());
  const Volume volume(Array<std::uint8_t>(device(), bytes));
  EXPECT_EQ(volume.info().type, VolumeType::float64);
  EXPECT_EQ(volume.bytes(), grid);
  bytes[40] ^= 1;
  expect_contains(error_of([&] { Volume{Array<std::uint8_t>(device(), bytes)}; }), "checksum");
}

}  // namespace
