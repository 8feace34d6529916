// Groups of a hierarchy: each is a subtree of its own, and queries may look at one alone.
#include <weft/runtime/geometry/bvh_query.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "../device_test.h"
#include "../full_sizes.h"
#include "../subgroup_sizes.h"
#include "bvh_soups.h"

using namespace weft;
using weft::test::Boxes;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::expect_valid;
using weft::test::HostBvh;

namespace {

class BvhGroup : public test::GeometryTest {};
ON_EVERY_DEVICE(BvhGroup);

constexpr int kNoSuchGroup = 12345;

Bvh build(const Device& device, const Boxes& boxes, BvhOptions options, const std::vector<int>& groups) {
  options.groups = Array<int>(device, groups);
  return Bvh(device, Array<vec3>(device, boxes.lowers), Array<vec3>(device, boxes.uppers), options);
}

std::vector<BvhOptions> all_options() {
  std::vector<BvhOptions> all;
  for (BvhBuilder builder : {BvhBuilder::lbvh, BvhBuilder::hploc})
    for (int leaf_size : {1, 4, 8}) all.push_back({builder, leaf_size});
  all.push_back({BvhBuilder::lbvh, 8, 60});
  all.push_back({BvhBuilder::hploc, 1, 60});
  return all;
}
std::string name_of(const BvhOptions& o) {
  return (o.builder == BvhBuilder::lbvh ? "LBVH, leaves of " : "H-PLOC, leaves of ") + std::to_string(o.leaf_size) +
         ", bits " + std::to_string(o.curve_bits);
}

// Ways to divide n primitives.
std::vector<std::pair<std::string, std::vector<int>>> divisions(int n) {
  std::vector<std::pair<std::string, std::vector<int>>> all{{"one", {}},    {"each its own", {}}, {"five", {}},
                                                            {"sparse", {}}, {"pairs", {}},        {"one large", {}}};
  for (int i = 0; i < n; ++i) {
    all[0].second.push_back(-7);
    all[1].second.push_back((i * 37) % n);
    all[2].second.push_back(i % 5);
    const int far[] = {-2147483647 - 1, 2147483647, -1, 0, 1 << 20};
    all[3].second.push_back(far[(i / 3) % 5]);
    all[4].second.push_back((i + 1) / 2);
    all[5].second.push_back(i % 11 == 0 ? i : 3);
  }
  return all;
}

// Expects that the root of each group has all of that group below it, and nothing else.
void expect_grouped(const Bvh& bvh, const std::vector<int>& groups) {
  const HostBvh tree(bvh);
  const std::vector<int> by_place = bvh.data().groups.to_vector(), roots = bvh.data().group_roots.to_vector();
  ASSERT_EQ(by_place.size(), groups.size());
  ASSERT_TRUE(std::is_sorted(by_place.begin(), by_place.end()));
  std::map<int, std::multiset<int>> members;
  for (std::size_t i = 0; i < groups.size(); ++i) members[groups[i]].insert(int(i));
  for (const auto& [group, expected] : members) {
    const auto place = std::lower_bound(by_place.begin(), by_place.end(), group) - by_place.begin();
    const int name = roots.at(std::size_t(place));
    ASSERT_GE(name, kBvhWhole) << "group " << group;
    std::multiset<int> found;
    std::vector<int> stack;
    const auto take = [&](int child) {
      const BvhNode& n = tree.nodes.at(std::size_t(child / 2));
      const int link = std::bit_cast<int>(child % 2 ? n.lower1.w : n.lower0.w);
      const int count = std::bit_cast<int>(child % 2 ? n.upper1.w : n.upper0.w);
      if (link >= 0) stack.push_back(link);
      for (int k = 0; k < count; ++k) found.insert(tree.primitives.at(std::size_t(~link + k)));
    };
    if (name == kBvhWhole)
      stack.push_back(0);
    else
      take(name);
    while (!stack.empty()) {
      const int node = stack.back();
      stack.pop_back();
      take(2 * node);
      take(2 * node + 1);
    }
    ASSERT_EQ(found, expected) << "group " << group << ", root " << name;
  }
}

TEST_P(BvhGroup, every_group_is_a_subtree) {
  std::vector<int> sizes{1, 2, 3, 17, 40, 100};
  if (!brief()) sizes.insert(sizes.end(), {1000, 20000});
  for (const BvhOptions& options : all_options())
    for (int n : sizes)
      for (const auto& [name, groups] : divisions(n)) {
        SCOPED_TRACE(name_of(options) + ", " + std::to_string(n) + " boxes, groups: " + name);
        const Boxes boxes = test::random_soup(n, unsigned(n));
        const Bvh bvh = build(device(), boxes, options, groups);
        expect_valid(bvh, boxes);
        expect_grouped(bvh, groups);
        if (options.builder == BvhBuilder::lbvh) {
          EXPECT_LE(bvh.depth(), 32 + 60 + 15) << "bits of groups, of keys, and of places";
        }
      }
}

TEST_P(BvhGroup, subgroups_of_every_size_keep_groups_apart) {
  test::on_all_sizes(device(), on_reference(), [](const Device& sized) {
    const Boxes boxes = test::random_soup(90);
    for (int leaf_size : {1, 4})
      for (const auto& [name, groups] : divisions(90)) {
        SCOPED_TRACE(name + ", leaves of " + std::to_string(leaf_size));
        const Bvh bvh = build(sized, boxes, {.leaf_size = leaf_size}, groups);
        expect_valid(bvh, boxes);
        expect_grouped(bvh, groups);
      }
  });
}

// Counts and lists what queries of group `groups[i]` find around box i.
const auto ask = kernel("ask", [](Var<BvhData> bvh, Arr<const int> groups, Arr<vec2i> found) {
  Int i = tid();
  const Int n = found.shape(0) / 4;
  const Int root = bvh_group_root(bvh, groups[i]);
  const Vec3 lower = bvh.lowers[i], upper = bvh.uppers[i], middle = (lower + upper) * 0.5f;
  const auto add = [&](int query, const Int& k) { found[query * n + i] += Vec2i(1, (k + 1) * (k + 3)); };
  for (auto k : bvh_query_aabb(bvh, lower - Vec3(vec3(0.1f)), upper + Vec3(vec3(0.1f)), root)) add(0, k);
  for (auto k : bvh_query_sphere(bvh, middle, 0.2f, root)) add(1, k);
  for (auto k : bvh_query_ray(bvh, middle, Vec3(1, 0.5f, 0.25f), 10.f, root)) add(2, k);
  for (auto k : bvh_query_capsule(bvh, middle, Vec3(0, 0, 0), 0.1f, root)) add(3, k);
});
// Finds the same with queries of everything, and leaves out the boxes of other groups.
const auto ask_all =
    kernel("ask_all", [](Var<BvhData> bvh, Arr<const int> groups, Arr<const int> of, Arr<vec2i> found) {
      Int i = tid();
      const Int n = found.shape(0) / 4;
      const Vec3 lower = bvh.lowers[i], upper = bvh.uppers[i], middle = (lower + upper) * 0.5f;
      const auto add = [&](int query, const Int& k) {
        If (of[k] == groups[i]) {
          found[query * n + i] += Vec2i(1, (k + 1) * (k + 3));
        }
      };
      for (auto k : bvh_query_aabb(bvh, lower - Vec3(vec3(0.1f)), upper + Vec3(vec3(0.1f)))) add(0, k);
      for (auto k : bvh_query_sphere(bvh, middle, 0.2f)) add(1, k);
      for (auto k : bvh_query_ray(bvh, middle, Vec3(1, 0.5f, 0.25f), 10.f)) add(2, k);
      for (auto k : bvh_query_capsule(bvh, middle, Vec3(0, 0, 0), 0.1f)) add(3, k);
    });

// Compares the answers of both kernels. \return  the number of boxes that were found at all
int expect_equal_answers(const Bvh& bvh, const std::vector<int>& asked, const std::vector<int>& groups) {
  const Device device = bvh.device();
  const Array<int> ask_for(device, asked), of(device, groups);
  Array<vec2i> part = zeros<vec2i>(device, 4 * bvh.size()), filtered = zeros<vec2i>(device, 4 * bvh.size());
  launch(ask, bvh.size(), bvh, ask_for, part);
  launch(ask_all, bvh.size(), bvh, ask_for, of, filtered);
  const std::vector<vec2i> a = part.to_vector(), b = filtered.to_vector();
  int sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].x, b[i].x) << "query " << i / asked.size() << ", box " << i % asked.size();
    EXPECT_EQ(a[i].y, b[i].y);
    if (a[i].x != b[i].x) break;
    sum += a[i].x;
  }
  return sum;
}

TEST_P(BvhGroup, queries_of_a_group_find_what_all_queries_find_of_it) {
  const int n = brief() ? 60 : 1500;
  const Boxes boxes = test::random_soup(n);
  for (const BvhOptions& options : all_options())
    for (const auto& [name, groups] : divisions(n)) {
      SCOPED_TRACE(name_of(options) + ", groups: " + name);
      const Bvh bvh = build(device(), boxes, options, groups);
      EXPECT_GE(expect_equal_answers(bvh, groups, groups), 3 * n) << "each box finds itself";
      std::vector<int> others = groups;
      std::rotate(others.begin(), others.begin() + n / 3, others.end());
      for (int i = 0; i < n; i += 4) others[std::size_t(i)] = kNoSuchGroup;
      expect_equal_answers(bvh, others, groups);
    }
}

TEST_P(BvhGroup, deep_groups_lose_nothing) {
  // Each box is twice as large as the one before: a chain, deeper than a walk's stack, in each of three groups.
  Boxes boxes;
  std::vector<int> groups;
  const int reach = brief() ? 40 : 100;
  for (int i = -reach; i < reach; ++i)
    for (int group = 0; group < 3; ++group) {
      boxes.add({std::ldexp(-1.f, i), 0, 0}, {std::ldexp(1.5f, i), 0, 0});
      groups.push_back(group);
    }
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    const Bvh bvh = build(device(), boxes, options, groups);
    expect_valid(bvh, boxes);
    expect_grouped(bvh, groups);
    expect_equal_answers(bvh, groups, groups);
  }
}

TEST_P(BvhGroup, a_tree_without_groups_has_none_to_find) {
  const Boxes boxes = test::random_soup(30);
  const Bvh bvh(device(), boxes.lowers, boxes.uppers);
  EXPECT_TRUE(bvh.options().groups.is_null());
  const std::vector<int> zero(30, 0), nobody(30, kNoSuchGroup);
  EXPECT_EQ(expect_equal_answers(bvh, zero, nobody), 0);
  const Bvh nothing(device(), empty<vec3>(device(), 0), empty<vec3>(device(), 0), {.groups = empty<int>(device(), 0)});
  EXPECT_FALSE(nothing.options().groups.is_null());
  EXPECT_EQ(nothing.data().group_roots.to_vector(), std::vector<int>{kBvhNothing});
}

TEST_P(BvhGroup, names_that_are_no_roots_find_nothing) {
  // With leaves of four boxes, some numbers name no node.
  const int n = 40;
  Boxes boxes;
  for (int i = 0; i < n; ++i) boxes.add({float(i / 4), 0, 0}, {float(i / 4) + 0.5f, 1, 1});
  const Bvh bvh = build(device(), boxes, {.leaf_size = 4}, std::vector<int>(n, 0));
  const std::vector<int> parents = bvh.data().parents.to_vector();
  const int nodes = int(bvh.data().nodes.size());
  std::vector<int> roots{kBvhWhole, 2 * nodes, 2 * nodes + 1, 12345, 0x7fffffff, -3, -7};
  for (int node = 0; node < nodes; ++node)
    if (parents[std::size_t(node)] == -2) roots.insert(roots.end(), {2 * node, 2 * node + 1});
  ASSERT_GT(roots.size(), 12u) << "no number names no node";
  std::vector<int> expected(roots.size(), 0);
  expected[0] = n;
  for (bool debug : {false, true}) {
    Array<int> counts = zeros<int>(device(), int(roots.size()));
    const auto count = kernel(
        "count",
        [](Var<BvhData> bvh, Arr<const int> roots, Arr<int> counts) {
          Int i = tid();
          BvhRoot root;
          root.name = Int(roots[i]);
          for ([[maybe_unused]] auto k : bvh_query_aabb(bvh, Vec3(-9.f, -9.f, -9.f), Vec3(99.f, 9.f, 9.f), root)) {
            counts[i] += 1;
          }
        },
        {.debug = debug});
    launch(count, roots.size(), bvh, Array<int>(device(), roots), counts);
    EXPECT_EQ(counts.to_vector(), expected);
  }
}

TEST_P(BvhGroup, groups_are_found_through_handles) {
  const Boxes boxes = test::random_soup(50);
  std::vector<int> groups;
  for (int i = 0; i < 50; ++i) groups.push_back(i % 3);
  const Bvh bvh = build(device(), boxes, {}, groups);
  Array<int> counts = zeros<int>(device(), 5);
  launch(kernel("count_group",
                [](UInt64 id, Arr<int> counts) {
                  Int group = tid();
                  const Int root = bvh_group_root(id, group - 1);
                  for (auto k : bvh_query_aabb(id, Vec3(-1.f, -1.f, -1.f), Vec3(2.f, 2.f, 2.f), root)) {
                    counts[group] += select(k >= 0, 1, 0);
                  }
                }),
         5, bvh.id(), counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{0, 17, 17, 16, 0}));
}

TEST_P(BvhGroup, refits_and_rebuilds_keep_groups) {
  const int n = brief() ? 60 : 1000;
  const Boxes boxes = test::random_soup(n), now = test::random_soup(n, 5);
  for (const BvhOptions& options : all_options()) {
    SCOPED_TRACE(name_of(options));
    std::vector<int> groups;
    for (int i = 0; i < n; ++i) groups.push_back(i % 4);
    Bvh bvh = build(device(), boxes, options, groups);
    const Array<vec3> lowers(device(), now.lowers), uppers(device(), now.uppers);
    bvh.refit(lowers, uppers);
    expect_valid(bvh, now);
    expect_grouped(bvh, groups);
    expect_equal_answers(bvh, groups, groups);
    // The same array gets other numbers.
    for (int i = 0; i < n; ++i) groups[std::size_t(i)] = i / 7 - 3;
    Array<int>(bvh.options().groups).assign(groups);
    bvh.rebuild();
    expect_valid(bvh, now);
    expect_grouped(bvh, groups);
    // Now another array with another number of boxes; then none, and then some again.
    const std::vector<int> three{2, 1, 2};
    bvh.rebuild(lowers.slice(0, 3), uppers.slice(0, 3), Array<int>(device(), three));
    expect_grouped(bvh, three);
    bvh.rebuild(lowers, uppers, Array<int>());
    EXPECT_TRUE(bvh.options().groups.is_null());
    expect_valid(bvh, now);
    bvh.rebuild(lowers, uppers, Array<int>(device(), groups));
    expect_valid(bvh, now);
    expect_grouped(bvh, groups);
  }
}

TEST_P(BvhGroup, two_builds_with_groups_are_equal) {
  const int n = brief() ? 120 : 5000;
  const Boxes boxes = test::random_soup(n);
  for (const auto& [name, groups] : divisions(n)) {
    SCOPED_TRACE(name);
    Bvh bvh = build(device(), boxes, {.leaf_size = 2}, groups);
    const HostBvh first(bvh);
    const std::vector<int> roots = bvh.data().group_roots.to_vector();
    bvh.rebuild();
    const HostBvh again(bvh);
    EXPECT_EQ(again.primitives, first.primitives);
    EXPECT_EQ(again.parents, first.parents);
    const std::vector<int> roots_again = bvh.data().group_roots.to_vector();
    const std::vector<int> places = bvh.data().groups.to_vector();
    for (std::size_t i = 0; i < places.size(); ++i)
      if (i == 0 || places[i] != places[i - 1]) {
        ASSERT_EQ(roots_again[i], roots[i]);
      }
  }
}

TEST_P(BvhGroup, mistakes_are_named) {
  const Array<vec3> ten = zeros<vec3>(device(), 10);
  const Array<int> nine = zeros<int>(device(), 9);
  expect_contains(error_of([&] { Bvh(device(), ten, ten, {.groups = nine}); }), "10 boxes is given 9 groups");
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { Bvh(device(), ten, ten, {.groups = zeros<int>(other, 10)}); }),
                  "is given groups on device reference");
  Bvh bvh(device(), ten, ten, {.groups = zeros<int>(device(), 10)});
  const Array<vec3> twelve = zeros<vec3>(device(), 12);
  expect_contains(error_of([&] { bvh.rebuild(twelve, twelve); }), "12 boxes is given 10 groups");
}

}  // namespace
