// Volumes that are made on their device, and made again: against those that the host lays out, byte by byte.
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_query.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeMake);

/// Clouds around several places, in several tiles of the root, in no order, some voxels twice.
std::vector<vec3i> cloud(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto within = [&](int n) { return int(random() % unsigned(2 * n + 1)) - n; };
  const vec3i middles[] = {{0, 0, 0}, {-4100, 90, 4096}, {130, -1000000, 1000000}};
  std::vector<vec3i> voxels;
  for (int k = 0; k < count; ++k) {
    const vec3i m = middles[random() % 3];
    voxels.push_back({m.x + within(20), m.y + within(9), m.z + within(150)});
    if (random() % 7 == 0) voxels.push_back(voxels[random() % voxels.size()]);
  }
  constexpr int last = (1 << 20) - 1;
  voxels.push_back({last, -last - 1, last});
  return voxels;
}

constexpr int kCloud = 700;

template <class T>
void expect_as_the_host_has_it(const Device& device, const T& background) {
  const std::vector<vec3i> voxels = cloud(3, kCloud);
  const Array<vec3i> on_device(device, voxels);
  VolumeOptions options{.name = "cloud", .translation = {1, 2, 3}};
  options.matrix = mat33d(0.5, 0, 0, 0, 0.25, 0.125, 0, 0, 2);
  EXPECT_EQ(Volume::allocate_by_voxels<T>(on_device, background, options).bytes(),
            Volume::allocate_by_voxels<T>(device, voxels, background, options).bytes());
  EXPECT_EQ(Volume::allocate_by_tiles<T>(on_device, background, options).bytes(),
            Volume::allocate_by_tiles<T>(device, voxels, background, options).bytes());
}

TEST_P(VolumeMake, has_the_bytes_of_the_hosts_grid_in_every_type) {
  expect_as_the_host_has_it<float>(device(), 2.5f);
  expect_as_the_host_has_it<half>(device(), half(-3.f));
  expect_as_the_host_has_it<vec3>(device(), {1, 2, 3});
  if (on_reference()) return;  // the others differ in the sizes of their parts alone
  expect_as_the_host_has_it<double>(device(), 0.1);
  expect_as_the_host_has_it<int>(device(), -7);
  expect_as_the_host_has_it<unsigned>(device(), 7u);
  expect_as_the_host_has_it<std::int64_t>(device(), std::int64_t(-7));
  expect_as_the_host_has_it<vec3d>(device(), {1, 2, 3});
  expect_as_the_host_has_it<vec4>(device(), {1, 2, 3, 4});
  expect_as_the_host_has_it<vec4d>(device(), {1, 2, 3, 4});
}

TEST_P(VolumeMake, of_no_voxels_is_the_background_everywhere) {
  const Volume none = Volume::allocate_by_voxels<float>(Array<vec3i>(device(), std::vector<vec3i>()), 7.f);
  EXPECT_EQ(none.info().leaves, 0);
  EXPECT_EQ(none.bytes(), Volume::allocate_by_voxels<float>(device(), {}, 7.f).bytes());
}

template <class T>
void expect_dense_as_the_host_has_it(const Device& device, const std::vector<T>& values, const T& background) {
  const Array<T> flat(device, values);
  const Array<T, 3> block = flat.template reshape<3>({5, 20, 10});
  EXPECT_EQ(Volume::from_dense<T>(block, {-3, 100, -5000}, background).bytes(),
            Volume::from_dense<T>(device, values, {5, 20, 10}, {-3, 100, -5000}, background).bytes());
}

TEST_P(VolumeMake, of_a_dense_block_has_the_bytes_of_the_hosts_grid) {
  std::vector<float> numbers(1000, 3.f);
  std::vector<vec3> vectors(1000, vec3{1, 2, 3});
  std::mt19937 random(8);
  for (int k = 0; k < 60; ++k) {
    numbers[random() % 1000] = float(random() % 100);
    vectors[random() % 1000].z = float(random() % 100);
  }
  expect_dense_as_the_host_has_it<float>(device(), numbers, 3.f);
  expect_dense_as_the_host_has_it<vec3>(device(), vectors, {1, 2, 3});
}

// ---- Made again

const auto& list_kernel() {
  static const auto k =
      kernel("list voxels", [](Var<VolumeArrays> volume, Arr<vec3i> voxels, Arr<int> count, Arr<float> values) {
        Int i = tid();
        voxels[i] = volume_voxel(volume, i);
        count[0] = volume_voxel_count(volume);
        values[i] = volume_lookup<float>(volume, voxels[i]);
      });
  return k;
}

using Voxels = std::set<std::tuple<int, int, int>>;
Voxels set_of(const std::vector<vec3i>& voxels) {
  Voxels set;
  for (const vec3i& v : voxels) set.insert({v.x, v.y, v.z});
  return set;
}

/// The active voxels as kernels find them, all of which have the background's value.
Voxels active(const Volume& volume, float background) {
  constexpr int most = 2000;
  const auto voxels = empty<vec3i>(volume.device(), most);
  const auto count = zeros<int>(volume.device(), 1);
  const auto values = zeros<float>(volume.device(), most);
  launch(list_kernel(), most, volume, voxels, count, values);
  std::vector<vec3i> found = voxels.to_vector();
  const int n = count.at(0);
  for (int k = 0; k < n; ++k) EXPECT_EQ(values.at(k), background);
  EXPECT_EQ(found.at(std::size_t(n)), vec3i(0x7fffffff));
  found.resize(std::size_t(n));
  EXPECT_EQ(set_of(found).size(), found.size());
  return set_of(found);
}

/// Room for any of the clouds.
VolumeOptions roomy() {
  VolumeOptions options;
  options.room = {.leaves = 900, .lower_nodes = 60, .upper_nodes = 30};
  return options;
}

TEST_P(VolumeMake, is_made_again_where_it_is) {
  const std::vector<vec3i> first = cloud(3, 300), second = cloud(4, 400);
  const Volume volume = Volume::allocate_by_voxels<float>(Array<vec3i>(device(), first), 1.5f, roomy());
  EXPECT_EQ(active(volume, 1.5f), set_of(first));
  volume.values<float>().fill(9.f);
  Volume(volume).rebuild_by_voxels(Array<vec3i>(device(), second));
  EXPECT_EQ(active(volume, 1.5f), set_of(second));
  const Volume fresh = Volume::allocate_by_voxels<float>(device(), second, 1.5f);
  EXPECT_EQ(volume.info().leaves, fresh.info().leaves);
  EXPECT_EQ(volume.info().voxels, fresh.info().voxels);
  EXPECT_EQ(volume.info().lower, fresh.info().lower);
  EXPECT_EQ(volume.info().upper, fresh.info().upper);
  EXPECT_EQ(volume.values<float>().shape(0), fresh.info().leaves);

  // What it is read back as is a grid, which has the room between its levels.
  const std::vector<std::byte> bytes = volume.bytes();
  std::vector<std::uint8_t> copied(bytes.size());
  std::memcpy(copied.data(), bytes.data(), bytes.size());
  EXPECT_EQ(active(Volume(Array<std::uint8_t>(device(), copied)), 1.5f), set_of(second));

  Volume(volume).rebuild_by_voxels(Array<vec3i>(device(), std::vector<vec3i>()));
  EXPECT_EQ(active(volume, 1.5f), Voxels());
}

TEST_P(VolumeMake, is_made_again_by_a_graph) {
  const std::vector<vec3i> first = cloud(5, 200);
  Array<vec3i> voxels(device(), first);
  Volume volume = Volume::allocate_by_voxels<float>(voxels, 1.f, roomy());
  const Array<float> seen = zeros<float>(device(), 1);
  const auto look = kernel("look", [](UInt64 volume, Arr<const vec3i> voxels, Arr<float> seen) {
    seen[0] = Float(volume_voxel_count(volume)) + volume_lookup<float>(volume, voxels[0]);
  });
  const std::uint64_t id = volume.id();
  const Graph graph = capture(device(), [&] {
    volume.rebuild_by_voxels(voxels);
    launch(look, 1, id, voxels, seen);
  });
  for (unsigned seed = 6; seed < 9; ++seed) {
    std::vector<vec3i> next = cloud(seed, 300);
    next.resize(first.size());
    voxels.assign(next);
    graph.launch();
    EXPECT_EQ(active(volume, 1.f), set_of(next));
    EXPECT_EQ(seen.at(0), float(set_of(next).size()) + 1.f);
    EXPECT_EQ(volume.info().left_out, 0);
  }
  // More leaves than there is room for, and a voxel that is too far away.
  std::vector<vec3i> spread = first;
  for (std::size_t k = 0; k < spread.size(); ++k) spread[k] = {0, 0, int(8 * k)};
  spread.back() = {1 << 20, 0, 0};
  Volume small = Volume::allocate_by_voxels<float>(Array<vec3i>(device(), {vec3i{}}), 1.f);
  small.rebuild_by_voxels(voxels.slice(0, 0));
  EXPECT_EQ(small.info().leaves, 0);
  voxels.assign(spread);
  graph.launch();
  EXPECT_EQ(volume.info().left_out, 1);
  EXPECT_EQ(volume.info().leaves, std::int64_t(spread.size()) - 1);
}

TEST_P(VolumeMake, leaves_out_what_there_is_no_room_for_in_a_graph) {
  Array<vec3i> voxels(device(), std::vector<vec3i>(40, vec3i{}));
  VolumeOptions options;
  options.room.leaves = 10;
  options.room.lower_nodes = 2;
  Volume volume = Volume::allocate_by_voxels<float>(voxels, 1.f, options);
  const Graph graph = capture(device(), [&] { volume.rebuild_by_voxels(voxels); });
  std::vector<vec3i> row;
  for (int k = 0; k < 40; ++k) row.push_back({0, 0, 8 * k});  // three lower nodes
  voxels.assign(row);
  graph.launch();
  EXPECT_EQ(volume.info().leaves, 10);
  EXPECT_EQ(volume.info().left_out, 30);
  row.resize(10);
  EXPECT_EQ(active(volume, 1.f), set_of(row));
  // Of four leaves in each lower node, those of the third have no room.
  row.clear();
  for (int k = 0; k < 40; ++k) row.push_back({0, 0, 128 * (k % 3) + 8 * (k % 4)});
  voxels.assign(row);
  graph.launch();
  EXPECT_EQ(volume.info().leaves, 8);
  EXPECT_EQ(volume.info().left_out, 4);
}

TEST_P(VolumeMake, refuses_by_name) {
  const Array<vec3i> voxels(device(), {vec3i{1, 2, 3}}), two(device(), {vec3i{}, vec3i{8, 0, 0}});
  expect_contains(error_of([&] { Volume::allocate_by_voxels<float>(Array<vec3i>(), 0.f); }), "a null array");
  expect_contains(error_of([&] { Volume::from_dense<float>(Array<float, 3>(), {}, 0.f); }), "a null array");
  expect_contains(error_of([&] {
                    Volume::allocate_by_tiles<float>(Array<vec3i>(device(), {vec3i{}, vec3i{0, 0, 1 << 20}}), 0.f);
                  }),
                  "1 voxels of a volume lie beyond the coordinates from -1048576 to 1048575");
  expect_contains(error_of([&] { Volume::allocate_by_voxels<float>(voxels, 0.f, {.matrix = mat33d()}); }),
                  "has no inverse");
  Volume volume = Volume::allocate_by_voxels<float>(voxels, 0.f);
  expect_contains(error_of([&] { volume.rebuild_by_voxels(two); }), "is rebuilt with 1 leaves more than fit");
  EXPECT_EQ(active(volume, 0.f), set_of({{1, 2, 3}}));
  expect_contains(error_of([&] { volume.rebuild_by_voxels(Array<vec3i>()); }), "a null array");
  const Device other = Device::open(device().name());
  expect_contains(error_of([&] { volume.rebuild_by_voxels(Array<vec3i>(other, {vec3i{}})); }),
                  " is given voxels on device " + device().name() + " (another Device of that name)");
  EXPECT_EQ(active(volume, 0.f), set_of({{1, 2, 3}}));
  expect_contains(error_of([&] {
                    volume.rebuild_by_voxels(Array<vec3i>(device(), {vec3i{0, 1 << 20, 0}}));
                  }),
                  "1 voxels of a volume lie beyond");
  Volume loaded = Volume::allocate_by_voxels<float>(device(), voxels.to_vector(), 0.f);
  expect_contains(error_of([&] { loaded.rebuild_by_tiles(voxels); }), "was not made on its device");
  expect_contains(error_of([&] { capture(device(), [&] { Volume::allocate_by_voxels<float>(voxels, 0.f); }); }),
                  "a volume is made in a capture");
  Volume fresh = Volume::allocate_by_voxels<float>(voxels, 0.f);
  expect_contains(error_of([&] { capture(device(), [&] { fresh.rebuild_by_voxels(two); }); }),
                  "is rebuilt of 2 voxels in a capture, and has memory for 1");
}

}  // namespace
