// Hierarchies of boxes: every build is a valid tree of its boxes, tight, the same each time, and good.
#include <weft/runtime/geometry/bvh_query.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "../device_test.h"
#include "../full_sizes.h"
#include "../mesh/real_meshes.h"
#include "../subgroup_sizes.h"
#include "bvh_soups.h"

using namespace weft;
using weft::test::Boxes;
using weft::test::cost_of;
using weft::test::cost_of_binned_build;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::expect_valid;
using weft::test::HostBvh;

namespace {

class BvhBuild : public test::GeometryTest {};
ON_EVERY_DEVICE(BvhBuild);

constexpr BvhBuilder kBuilders[] = {BvhBuilder::lbvh, BvhBuilder::hploc};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Bvh build(const Device& device, const Boxes& boxes, const BvhOptions& options) {
  return Bvh(device, Array<vec3>(device, boxes.lowers), Array<vec3>(device, boxes.uppers), options);
}
// The options of every builder, with leaves of one and of several primitives.
std::vector<BvhOptions> all_options() {
  std::vector<BvhOptions> all;
  for (BvhBuilder builder : kBuilders)
    for (int leaf_size : {1, 2, 4, 8}) all.push_back({builder, leaf_size});
  all.push_back({BvhBuilder::lbvh, 1, 60});
  all.push_back({BvhBuilder::hploc, 3, 60});
  return all;
}
std::string name_of(const BvhOptions& o) {
  return (o.builder == BvhBuilder::lbvh ? "LBVH, leaves of " : "H-PLOC, leaves of ") + std::to_string(o.leaf_size) +
         ", bits " + std::to_string(o.curve_bits);
}
Boxes moved(const Boxes& boxes, float phase) {
  Boxes to;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const vec3 by{std::sin(phase + 9 * boxes.lowers[i].y), std::cos(2 * phase + 5 * boxes.lowers[i].x), phase};
    to.add(boxes.lowers[i] + by, boxes.uppers[i] + by);
  }
  return to;
}

TEST_P(BvhBuild, every_primitive_is_in_one_leaf_and_all_boxes_are_tight) {
  std::vector<int> sizes{1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 64, 100, 257};
  if (!brief()) sizes.insert(sizes.end(), {1000, 4096, 4097, 30001});
  for (const BvhOptions& options : all_options())
    for (int n : sizes) {
      SCOPED_TRACE(name_of(options) + ", " + std::to_string(n) + " boxes");
      const Boxes boxes = test::random_soup(n, unsigned(n));
      expect_valid(build(device(), boxes, options), boxes);
    }
}

TEST_P(BvhBuild, subgroups_of_every_size_build) {
  test::on_all_sizes(device(), on_reference(), [](const Device& sized) {
    for (const BvhOptions& options :
         {BvhOptions{}, BvhOptions{.leaf_size = 4}, BvhOptions{.leaf_size = 8}, BvhOptions{.curve_bits = 60}})
      for (int n : {2, 8, 9, 16, 17, 33, 200}) {
        SCOPED_TRACE(name_of(options) + ", " + std::to_string(n) + " boxes");
        const Boxes boxes = test::random_soup(n, unsigned(n));
        expect_valid(build(sized, boxes, options), boxes);
      }
  });
}

TEST_P(BvhBuild, meshes_give_valid_trees) {
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    const Boxes sphere = test::icosphere(brief() ? 2 : 5), torus = test::torus(brief() ? 16 : 200, 20);
    expect_valid(build(device(), sphere, options), sphere);
    expect_valid(build(device(), torus, options), torus);
    for (const test::RealMesh& mesh : test::real_meshes_for(on_reference())) {
      SCOPED_TRACE(mesh.name);
      const Boxes boxes = test::boxes_of(mesh.data);
      expect_valid(build(device(), boxes, options), boxes);
    }
  }
}

TEST_P(BvhBuild, nothing_has_a_tree_too) {
  for (const BvhOptions& options : all_options()) {
    Bvh bvh(device(), empty<vec3>(device(), 0), empty<vec3>(device(), 0), options);
    expect_valid(bvh, {});
    bvh.refit();
    bvh.rebuild();
    expect_valid(bvh, {});
  }
}

TEST_P(BvhBuild, equal_boxes_and_boxes_without_extent_are_boxes) {
  const int n = brief() ? 300 : 5000;
  Boxes same, points, line, far;
  for (int i = 0; i < n; ++i) {
    same.add({1, 2, 3}, {2, 3, 4});
    points.add({5, 5, 5}, {5, 5, 5});
    line.add({0, float(i) * 0.25f, 0}, {0, float(i) * 0.25f + 1, 0});
    far.add({-3e38f, -1, -1}, {3e38f, float(i), 1e-40f});
  }
  for (const BvhOptions& options : all_options())
    for (const Boxes* boxes : {&same, &points, &line, &far}) {
      SCOPED_TRACE(name_of(options) + ", " + std::to_string(boxes->lowers[0].x));
      const Bvh bvh = build(device(), *boxes, options);
      expect_valid(bvh, *boxes);
      if (boxes != &line) {
        EXPECT_LT(bvh.depth(), 64) << "equal boxes are told apart by their numbers";
      }
    }
}

// Each box is twice as large as the one before and beside it, so that merging the nearest gives a chain.
TEST_P(BvhBuild, deep_trees_know_their_depth) {
  Boxes boxes;
  for (int i = -100; i < 100; ++i) boxes.add({std::ldexp(1.f, i), 0, 0}, {std::ldexp(1.5f, i), 0, 0});
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    expect_valid(build(device(), boxes, options), boxes);
  }
}

TEST_P(BvhBuild, two_builds_are_equal_bit_by_bit) {
  const Boxes boxes = test::random_soup(brief() ? 500 : 20000);
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    Bvh bvh = build(device(), boxes, options);
    const HostBvh first(bvh);
    for (int round = 0; round < (brief() ? 1 : 4); ++round) {
      // The content that an earlier tree left in the arrays does not matter either.
      bvh.rebuild(Array<vec3>(device(), moved(boxes, 1).lowers), Array<vec3>(device(), moved(boxes, 1).uppers));
      bvh.rebuild(Array<vec3>(device(), boxes.lowers), Array<vec3>(device(), boxes.uppers));
      const HostBvh again(bvh);
      EXPECT_EQ(again.primitives, first.primitives);
      EXPECT_EQ(again.parents, first.parents);
      for (std::size_t i = 0; i < first.nodes.size(); ++i)
        if (first.parents[i] >= -1) {
          ASSERT_EQ(std::memcmp(&again.nodes[i], &first.nodes[i], sizeof(BvhNode)), 0) << "node " << i;
        }
    }
  }
}

TEST_P(BvhBuild, lbvh_gives_the_same_tree_on_every_device) {
  const Device reference("reference");
  std::vector<Boxes> inputs{test::random_soup(700), test::icosphere(2), test::torus(11, 17)};
  for (const test::RealMesh& mesh : test::real_meshes_for(true)) inputs.push_back(test::boxes_of(mesh.data));
  for (const BvhOptions& options :
       {BvhOptions{BvhBuilder::lbvh, 1}, BvhOptions{BvhBuilder::lbvh, 4}, BvhOptions{BvhBuilder::lbvh, 1, 60}})
    for (const Boxes& boxes : inputs) {
      const HostBvh here(build(device(), boxes, options)), there(build(reference, boxes, options));
      EXPECT_EQ(here.primitives, there.primitives);
      EXPECT_EQ(here.parents, there.parents);
      for (std::size_t i = 0; i < here.nodes.size(); ++i) {
        if (here.parents[i] < -1) continue;
        const BvhNode &a = here.nodes[i], &b = there.nodes[i];
        ASSERT_EQ(std::bit_cast<int>(a.lower0.w), std::bit_cast<int>(b.lower0.w)) << i;
        ASSERT_EQ(std::bit_cast<int>(a.lower1.w), std::bit_cast<int>(b.lower1.w)) << i;
        ASSERT_EQ(std::bit_cast<int>(a.upper0.w), std::bit_cast<int>(b.upper0.w)) << i;
        ASSERT_EQ(std::bit_cast<int>(a.upper1.w), std::bit_cast<int>(b.upper1.w)) << i;
        for (int k = 0; k < 3; ++k) {
          ASSERT_EQ(a.lower0[k], b.lower0[k]);
          ASSERT_EQ(a.lower1[k], b.lower1[k]);
          ASSERT_EQ(a.upper0[k], b.upper0[k]);
          ASSERT_EQ(a.upper1[k], b.upper1[k]);
        }
      }
    }
}

TEST_P(BvhBuild, a_refitted_tree_has_the_bounds_of_the_moved_boxes) {
  struct Input {
    std::string name;
    Boxes boxes;
    int rounds;
  };
  std::vector<Input> inputs{{"soup", test::random_soup(brief() ? 200 : 3000), brief() ? 3 : 100}};
  for (const test::RealMesh& mesh : test::real_meshes_for(on_reference()))
    inputs.push_back({mesh.name, test::boxes_of(mesh.data), test::full_sizes() ? 100 : 2});
  for (const auto& [name, boxes, rounds] : inputs)
    for (const BvhOptions& options : all_options()) {
      SCOPED_TRACE(name + ", " + name_of(options));
      Bvh bvh = build(device(), boxes, options);
      const std::vector<int> parents = bvh.data().parents.to_vector();
      const std::uint64_t id = bvh.id();
      for (int round = 1; round <= rounds; ++round) {
        const Boxes now = moved(boxes, float(round) * 0.1f);
        bvh.refit(Array<vec3>(device(), now.lowers), Array<vec3>(device(), now.uppers));
        if (round == 1 || round % 10 == 0 || round == rounds) expect_valid(bvh, now);
      }
      EXPECT_EQ(bvh.data().parents.to_vector(), parents);
      EXPECT_EQ(bvh.id(), id);
    }
}

TEST_P(BvhBuild, refits_to_what_was_written_to_its_arrays) {
  const Boxes boxes = test::random_soup(100), now = moved(boxes, 2);
  Array<vec3> lowers(device(), boxes.lowers), uppers(device(), boxes.uppers);
  Bvh bvh(device(), lowers, uppers);
  lowers.assign(now.lowers);
  uppers.assign(now.uppers);
  bvh.refit();
  expect_valid(bvh, now);
}

TEST_P(BvhBuild, views_with_strides_are_boxes) {
  const Boxes boxes = test::random_soup(90);
  std::vector<vec3> both;
  for (std::size_t i = 0; i < boxes.size(); ++i) both.insert(both.end(), {boxes.lowers[i], boxes.uppers[i]});
  const Array<vec3> all(device(), both);
  Bvh bvh(device(), all.slice(0, 180, 2), all.slice(1, 180, 2));
  expect_valid(bvh, boxes);
  bvh.refit();
  expect_valid(bvh, boxes);
}

TEST_P(BvhBuild, a_rebuilt_tree_may_have_another_number_of_boxes) {
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    Bvh bvh = build(device(), test::random_soup(50), options);
    const std::uint64_t id = bvh.id();
    for (int n : {120, 0, 1, 30, 30}) {
      const Boxes boxes = test::random_soup(n, unsigned(n) + 7);
      bvh.rebuild(Array<vec3>(device(), boxes.lowers), Array<vec3>(device(), boxes.uppers));
      expect_valid(bvh, boxes);
      EXPECT_EQ(bvh.id(), id);
    }
  }
}

TEST_P(BvhBuild, what_is_no_box_is_counted_and_bounds_nothing) {
  Boxes boxes = test::random_soup(60);
  boxes.lowers[3].y = kNan;
  boxes.uppers[10].x = kInf;
  boxes.lowers[20].z = -kInf;
  std::swap(boxes.lowers[44], boxes.uppers[44]);
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    Bvh bvh = build(device(), boxes, options);
    EXPECT_EQ(bvh.ignored(), 4);
    expect_valid(bvh, boxes);
    bvh.refit();
    expect_valid(bvh, boxes);
  }
  // The last case has no box that is one.
  for (vec3& v : boxes.uppers) v.x = kNan;
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    const Bvh bvh = build(device(), boxes, options);
    EXPECT_EQ(bvh.ignored(), 60);
    expect_valid(bvh, boxes);
  }
}

TEST_P(BvhBuild, debug_mode_reports_what_is_no_box) {
  Boxes boxes = test::random_soup(60);
  boxes.lowers[17].y = kNan;
  set_debug(true);
  const std::string text = error_of([&] { build(device(), boxes, {}).data().nodes.to_vector(); });
  set_debug(false);
  expect_contains(text, "primitive 17");
  expect_contains(text, "its box is none");
}

TEST_P(BvhBuild, boxes_of_the_host_are_looked_at) {
  Boxes boxes = test::random_soup(40);
  expect_valid(Bvh(device(), boxes.lowers, boxes.uppers), boxes);
  boxes.uppers[12].z = kNan;
  expect_contains(error_of([&] { Bvh(device(), boxes.lowers, boxes.uppers); }), "box 12 of a hierarchy goes from");
  boxes.uppers[12].z = -5;
  expect_contains(error_of([&] { Bvh(device(), boxes.lowers, boxes.uppers); }), "to -5 along axis 2");
  boxes.uppers.pop_back();
  expect_contains(error_of([&] { Bvh(device(), boxes.lowers, boxes.uppers); }), "40 lower bounds and 39 upper ones");
}

TEST_P(BvhBuild, mistakes_are_named) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), nine = zeros<vec3>(device(), 9);
  expect_contains(error_of([&] { Bvh(device(), ten, nine); }), "10 lower bounds and 9 upper ones");
  expect_contains(error_of([&] { Bvh(device(), ten, Array<vec3>()); }), "null array");
  for (int size : {0, -1, 9})
    expect_contains(error_of([&] { Bvh(device(), ten, ten, {.leaf_size = size}); }),
                    "with " + std::to_string(size) + " primitives in a leaf");
  expect_contains(error_of([&] { Bvh(device(), ten, ten, {.builder = BvhBuilder(7)}); }), "builder 7");
  for (int bits : {0, 31, 64})
    expect_contains(error_of([&] { Bvh(device(), ten, ten, {.curve_bits = bits}); }),
                    "with " + std::to_string(bits) + " bits along the curve");
  Bvh bvh(device(), ten, ten);
  expect_contains(error_of([&] { bvh.refit(nine, nine); }), "of 10 boxes is refitted to 9");
  // An array that shows one element many times.
  struct Many : Array<vec3> {
    explicit Many(const Array<vec3>& a) {
      storage_ = a.storage(), address_ = a.address(), shape_ = {(1ll << 29) + 1}, stride_ = {0};
    }
  };
  const Array<vec3> many = Many(ten);
  expect_contains(error_of([&] { Bvh(device(), many, many); }), "536870913 boxes; 2^29 are possible");
  const Device other = Device::open("reference");
  const Array<vec3> elsewhere = zeros<vec3>(other, 10);
  expect_contains(error_of([&] { Bvh(device(), ten, elsewhere); }), "is given boxes on device reference");
  expect_contains(error_of([&] { bvh.refit(elsewhere, elsewhere); }), "is given boxes on device reference");
  expect_contains(error_of([&] { Bvh().refit(); }), "null hierarchy");
  expect_contains(error_of([&] { Bvh().depth(); }), "null hierarchy");
}

// Counts, with a stack, the leaves that a point is in.
const auto count_around = kernel("count_around", [](Var<BvhData> bvh, Arr<const vec3> points, Arr<int> counts) {
  Int i = tid();
  Vec3 p = points[i];
  auto stack = private_array<int>(64);
  Int top = 1, found = 0;
  stack[0] = 0;
  While (top > 0) {
    top -= 1;
    Var<BvhNode> node = bvh.nodes[stack[top]];
    const Vec4 lowers[] = {node.lower0, node.lower1}, uppers[] = {node.upper0, node.upper1};
    for (int side = 0; side < 2; ++side) {
      const Vec4 &lower = lowers[side], &upper = uppers[side];
      Bool inside =
          lower.x <= p.x && p.x <= upper.x && lower.y <= p.y && p.y <= upper.y && lower.z <= p.z && p.z <= upper.z;
      If (inside && bitcast<int>(lower.w) >= 0) {
        stack[top] = bitcast<int>(lower.w);
        top += 1;
      }
      found += select(inside, bitcast<int>(upper.w), 0);
    }
  }
  counts[i] = found;
});
// Counts the nodes of hierarchies by their handles.
const auto count_nodes = kernel("count_nodes", [](Arr<const std::uint64_t> ids, Arr<int> counts) {
  Int i = tid();
  const Var<BvhData> tree = bvh_at(ids[i]);
  Int node = 0, depth = 0;
  While (node >= 0) {
    depth += 1;
    node = bitcast<int>(Float(tree.nodes[node].lower0.w));
  }
  counts[i] = depth + 1000 * tree.count;
});

TEST_P(BvhBuild, kernels_take_a_hierarchy_as_an_argument) {
  const Boxes boxes = test::random_soup(brief() ? 100 : 2000);
  for (BvhBuilder builder : kBuilders) {
    Bvh bvh = build(device(), boxes, {builder});
    std::vector<vec3> points;
    for (std::size_t i = 0; i < boxes.size(); i += 3) points.push_back((boxes.lowers[i] + boxes.uppers[i]) * 0.5f);
    const Array<vec3> at(device(), points);
    Array<int> counts = zeros<int>(device(), at.size());
    launch(count_around, at.size(), bvh, at, counts);
    const std::vector<int> got = counts.to_vector();
    for (std::size_t i = 0; i < points.size(); ++i) {
      int expected = 0;
      for (std::size_t b = 0; b < boxes.size(); ++b)
        expected += all(less_equal(boxes.lowers[b], points[i])) && all(less_equal(points[i], boxes.uppers[b]));
      ASSERT_EQ(got[i], expected) << i;
    }
    launch(count_nodes, 1, Array<std::uint64_t>(device(), {bvh.id()}), counts);
    EXPECT_GE(counts.at(0), 1001 + 1000 * (int(boxes.size()) - 1));
    EXPECT_LE(counts.at(0), 1000 * int(boxes.size()) + bvh.depth());
  }
}

TEST_P(BvhBuild, trees_are_about_as_good_as_those_of_a_host_by_surface_areas) {
  if (brief()) GTEST_SKIP() << "the trees of other devices are as large as this takes";
  std::vector<std::pair<std::string, Boxes>> inputs{
      {"sphere", test::icosphere(5)}, {"torus", test::torus(150, 60)}, {"soup", test::random_soup(20000)}};
  for (const test::RealMesh& mesh : test::real_meshes()) inputs.emplace_back(mesh.name, test::boxes_of(mesh.data));
  for (const auto& [name, boxes] : inputs) {
    SCOPED_TRACE(name + ", " + std::to_string(boxes.size()) + " triangles");
    const double binned = cost_of_binned_build(boxes), binned4 = cost_of_binned_build(boxes, 4);
    const double lbvh = cost_of(build(device(), boxes, {BvhBuilder::lbvh})) / binned;
    const double hploc = cost_of(build(device(), boxes, {BvhBuilder::hploc})) / binned;
    const double lbvh4 = cost_of(build(device(), boxes, {BvhBuilder::lbvh, 4})) / binned4;
    const double hploc4 = cost_of(build(device(), boxes, {BvhBuilder::hploc, 4})) / binned4;
    RecordProperty(name + "_leaves_of_4_lbvh", std::to_string(lbvh4));
    RecordProperty(name + "_leaves_of_4_hploc", std::to_string(hploc4));
    EXPECT_LT(hploc4, lbvh4);
    RecordProperty(name + "_lbvh", std::to_string(lbvh));
    RecordProperty(name + "_hploc", std::to_string(hploc));
    EXPECT_LE(lbvh, 1.5);
    EXPECT_LE(hploc, 1.15);
    EXPECT_LE(lbvh4, 1.5);
    EXPECT_LE(hploc4, 1.15);
  }
}

// The numbers of primitives in a tree's leaves, ascending.
std::vector<int> leaves_of(const Bvh& bvh) {
  std::vector<int> counts;
  const HostBvh tree(bvh);
  std::vector<int> stack{0};
  while (!stack.empty()) {
    const BvhNode& node = tree.nodes[std::size_t(stack.back())];
    stack.pop_back();
    for (const auto& [lower, upper] : {std::pair(node.lower0, node.upper0), std::pair(node.lower1, node.upper1)})
      if (const int link = std::bit_cast<int>(lower.w); link >= 0)
        stack.push_back(link);
      else
        counts.push_back(std::bit_cast<int>(upper.w));
  }
  std::ranges::sort(counts);
  return counts;
}

// A leaf with several boxes is searched whole: boxes share a leaf if a node that tells them apart gains nothing.
TEST_P(BvhBuild, boxes_share_a_leaf_where_that_is_no_dearer) {
  // There are two heaps of four boxes, far from each other, and a box alone between them. In the first heap all four
  // boxes are the same; in the second there are two and two.
  Boxes boxes;
  for (int k = 0; k < 4; ++k) boxes.add({0, 0, 0}, {1, 1, 1});
  boxes.add({50, 0, 0}, {51, 1, 1});
  for (int k = 0; k < 4; ++k) boxes.add({100.f + 10 * float(k / 2), 0, 0}, {101.f + 10 * float(k / 2), 1, 1});
  const auto leaves = [&](int leaf_size) { return leaves_of(build(device(), boxes, {BvhBuilder::hploc, leaf_size})); };
  EXPECT_EQ(leaves(1), std::vector<int>(9, 1));
  EXPECT_EQ(leaves(2), (std::vector<int>{1, 2, 2, 2, 2}));
  EXPECT_EQ(leaves(4), (std::vector<int>{1, 2, 2, 4}));
  EXPECT_EQ(leaves(8), (std::vector<int>{1, 2, 2, 4}));
  for (int leaf_size : {1, 2, 4, 8}) expect_valid(build(device(), boxes, {BvhBuilder::hploc, leaf_size}), boxes);
}

// The savings of nodes further down count: there are two small boxes, far apart, and one around both. A node of all
// three costs less than a leaf; it would not if the two small ones shared a leaf.
TEST_P(BvhBuild, what_is_below_decides_whether_boxes_share_a_leaf) {
  const auto along_x = [](Boxes& boxes, float from, float to) { boxes.add({from, 0, 0}, {to, 0.1f, 0.1f}); };
  Boxes boxes;
  along_x(boxes, 0, 0.1f);
  along_x(boxes, 9.9f, 10);
  along_x(boxes, 0, 12);
  EXPECT_EQ(leaves_of(build(device(), boxes, {BvhBuilder::hploc, 4})), std::vector<int>(3, 1));
}

// One box is far away, so the whole cluster lies in one cell of 30 bits.
TEST_P(BvhBuild, sixty_bits_tell_small_parts_of_a_large_scene_apart) {
  Boxes boxes = test::random_soup(brief() ? 300 : 3000);
  boxes.add({5000, 5000, 5000}, {5001, 5001, 5001});
  for (BvhBuilder builder : kBuilders) {
    const Bvh coarse = build(device(), boxes, {builder}), fine = build(device(), boxes, {builder, 1, 60});
    // The cost below the root is the cluster's alone: the root has next to nothing of the area of all.
    const auto below = [](const Bvh& bvh) { return cost_of(bvh) - 1; };
    EXPECT_LT(below(fine), 0.5 * below(coarse));
  }
}

}  // namespace
