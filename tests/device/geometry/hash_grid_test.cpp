// Hash grids: their queries against all points looked at one by one.
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/geometry/hash_grid_query.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../full_sizes.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

class HashGridTest : public test::GeometryTest {};
ON_EVERY_DEVICE(HashGridTest);

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Multiples of 1/1024, so that distances are exact in floats and some points lie exactly at the radius.
std::vector<vec3> lattice_points(std::size_t n, int extent, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<vec3> p(n);
  const auto number = [&] { return float(int(random() % unsigned(2 * extent)) - extent) / 1024; };
  for (vec3& v : p) v = {number(), number(), number()};
  return p;
}

/// A digest of a set of numbers: its size and two sums, which change if a number is missing or occurs twice.
struct Digest {
  unsigned count = 0, sum = 0, mixed = 0;
  bool operator==(const Digest&) const = default;
};
WEFT_STRUCT(Digest, count, sum, mixed);
void add(Digest& d, unsigned i) { ++d.count, d.sum += i, d.mixed += (i * 2654435761u) ^ (i >> 7); }

const auto digest_within = kernel("digest_within", [](Var<HashGridArrays> grid, Arr<const vec3> points,
                                                      Arr<const vec3> asked, Float radius, Arr<Digest> out) {
  Int t = tid();
  Vec3 p = asked[t];
  UInt count = 0u, sum = 0u, mixed = 0u;
  for (auto i : hash_grid_query(grid, p, radius)) {
    Vec3 d = points[i] - p;
    If (dot(d, d) <= radius * radius) {
      count += 1u;
      sum += UInt(i);
      mixed += (UInt(i) * 2654435761u) ^ (UInt(i) >> 7u);
    }
  }
  out[t].count = count;
  out[t].sum = sum;
  out[t].mixed = mixed;
});

/// Finds the digests by going along x, without a grid.
std::vector<Digest> digests_by_sweep(const std::vector<vec3>& points, const std::vector<vec3>& asked, float radius) {
  std::vector<unsigned> order(points.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](unsigned i) { return points[i].x; });
  std::vector<float> xs;
  for (const unsigned i : order) xs.push_back(points[i].x);
  std::vector<Digest> out(asked.size());
  for (std::size_t t = 0; t < asked.size(); ++t) {
    const vec3 p = asked[t];
    const auto first = std::ranges::lower_bound(xs, p.x - radius) - xs.begin();
    const auto last = std::ranges::upper_bound(xs, p.x + radius) - xs.begin();
    for (auto k = first; k < last; ++k) {
      const vec3 d = points[order[std::size_t(k)]] - p;
      if (dot(d, d) <= radius * radius) add(out[t], order[std::size_t(k)]);
    }
  }
  return out;
}

void expect_digests(const Device& device, const HashGrid& grid, const std::vector<vec3>& points,
                    const std::vector<vec3>& asked, float radius, const std::vector<Digest>& expected) {
  const Array<Digest> out = zeros<Digest>(device, std::int64_t(asked.size()));
  launch(digest_within, out.size(), grid, Array<vec3>(device, points), Array<vec3>(device, asked), radius, out);
  const std::vector<Digest> got = out.to_vector();
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < asked.size(); ++t)
    if (got[t] != expected[t] && wrong++ == 0)
      ADD_FAILURE() << "query " << t << " at " << asked[t].x << ", " << asked[t].y << ", " << asked[t].z << " finds "
                    << got[t].count << " points, not " << expected[t].count;
  EXPECT_EQ(wrong, 0u);
}
void expect_neighbours(const Device& device, const HashGrid& grid, const std::vector<vec3>& points,
                       const std::vector<vec3>& asked, float radius) {
  expect_digests(device, grid, points, asked, radius, digests_by_sweep(points, asked, radius));
}

TEST_P(HashGridTest, neighbours_are_those_that_looking_at_all_points_finds) {
  const bool small = brief();
  const std::vector<vec3> points = lattice_points(small ? 3000 : 100000, 1024, 1);
  const Array<vec3> p(device(), points);
  const std::vector<vec3> asked(points.begin(), points.begin() + (small ? 300 : 30000));
  const float radius = small ? 128.f / 1024 : 40.f / 1024;
  const std::vector<Digest> expected = digests_by_sweep(points, asked, radius);
  // There are enough neighbours for the test to mean something.
  EXPECT_GT(std::ranges::max(expected, {}, &Digest::count).count, 9u);
  // The widths are at, below and above the radius; points wrap around some dimensions many times, and others never.
  for (const HashGridOptions& options : {HashGridOptions{}, {.deterministic = true}}) {
    HashGrid grid(device(), 64, 64, 64, options);
    grid.build(p, radius);
    expect_digests(device(), grid, points, asked, radius, expected);
    EXPECT_EQ(grid.ignored(), 0);
  }
  const std::vector<vec3> some(asked.begin(), asked.begin() + 300);
  HashGrid odd(device(), 5, 17, 3);
  odd.build(p, 0.7f * radius);
  expect_digests(device(), odd, points, some, radius, expected);
  odd.build(p, 3.3f * radius);
  expect_digests(device(), odd, points, some, radius, expected);
}

// Far from the origin floats are coarse: no neighbour is lost, whatever is rounded, even if cells have no numbers.
TEST_P(HashGridTest, coordinates_may_be_huge) {
  for (const float at : {-1e4f, 3e6f, -2e7f, 1e10f, -1e30f, 3.4e38f}) {
    SCOPED_TRACE(at);
    const float step = std::nextafter(std::abs(at), 0.f) - std::abs(at);
    std::mt19937 random(7);
    std::vector<vec3> points(300);
    for (vec3& v : points)
      for (int k = 0; k < 3; ++k) v[k] = at + (at > 0 ? step : -step) * float(random() % 20);
    HashGrid grid(device(), 16, 16, 16);
    grid.build(Array<vec3>(device(), points), 0.1f);
    const Array<int> found = zeros<int>(device(), 300);
    const float radius = std::abs(step) * 6;
    const auto count =
        kernel("count_far", [](Var<HashGridArrays> grid, Arr<const vec3> points, Float radius, Arr<int> found) {
          Int t = tid(), n = 0;
          for (auto i : hash_grid_query(grid, points[t], radius)) {
            Vec3 d = abs(points[i] - points[t]);
            n += select((d.x <= radius) & (d.y <= radius) & (d.z <= radius), 1, 0);
          }
          found[t] = n;
        });
    launch(count, 300, grid, Array<vec3>(device(), points), radius, found);
    std::vector<int> expected(300);
    for (std::size_t t = 0; t < 300; ++t)
      for (const vec3& q : points) {
        bool near = true;
        for (int k = 0; k < 3; ++k) near &= std::abs(q[k] - points[t][k]) <= radius;
        expected[t] += near;
      }
    EXPECT_EQ(found.to_vector(), expected);
  }
}

// A distance is rounded down to the radius, and the sum of place and radius is rounded down too, to below the cell.
TEST_P(HashGridTest, no_neighbour_is_lost_by_rounding) {
  const std::vector<vec3> points = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 0}};
  std::mt19937 random(15);
  std::vector<vec3> asked;
  std::vector<float> radii;
  std::vector<int> wanted;
  while (asked.size() < 500) {
    const int k = 1 + int(random() % 3);
    const float p = -8 * float(random() % 16777216) / 16777216, x = float(k), radius = x - p;
    if (double(x) - double(p) <= double(radius) || p + radius >= x) continue;
    asked.push_back({p, 0, 0});
    radii.push_back(radius);
    wanted.push_back(k);
  }
  HashGrid grid(device(), 64, 2, 2);
  grid.build(Array<vec3>(device(), points), 1);
  const Array<int> found = zeros<int>(device(), 500);
  const auto find = kernel("find", [](Var<HashGridArrays> grid, Arr<const vec3> points, Arr<const vec3> asked,
                                      Arr<const float> radii, Arr<const int> wanted, Arr<int> found) {
    Int t = tid();
    for (auto i : hash_grid_query(grid, asked[t], radii[t])) {
      If ((i == wanted[t]) & (length(points[i] - asked[t]) <= radii[t])) {
        found[t] += 1;
      }
    }
  });
  launch(find, 500, grid, Array<vec3>(device(), points), Array<vec3>(device(), asked), Array<float>(device(), radii),
         Array<int>(device(), wanted), found);
  EXPECT_EQ(found.to_vector(), std::vector<int>(500, 1));
}

/// The cells along an axis that the interval around x touches.
std::set<int> touched(float x, float radius, float width, int dim) {
  std::set<int> cells;
  const double margin = (std::abs(x) + radius) * 0x1p-21;
  const auto first = std::int64_t(std::floor((x - radius - margin) / width));
  const auto last = std::int64_t(std::floor((x + radius + margin) / width));
  for (std::int64_t c = first; c <= std::min(last, first + dim - 1); ++c) cells.insert(int((c % dim + dim) % dim));
  return cells;
}

TEST_P(HashGridTest, each_point_in_a_cell_that_the_box_touches_is_given_once) {
  const float width = 0.25f;
  const vec3i dims{3, 5, 2};
  const std::vector<vec3> points = lattice_points(400, 3000, 2);
  const std::vector<vec3> asked = lattice_points(40, 3000, 3);
  HashGrid grid(device(), dims.x, dims.y, dims.z);
  grid.build(Array<vec3>(device(), points), width);
  const auto count_each = kernel("count_each", [](Var<HashGridArrays> grid, Vec3 p, Float radius, Arr<int> times) {
    for (auto i : hash_grid_query(grid, p, radius)) times[i] += 1;
  });
  // The radii cover up to several periods of the grid in all axes, and all of space.
  for (const float radius : {0.f, 0.01f, 0.2f, 0.3f, 0.6f, 1.1f, 4.f, kInf})
    for (const vec3& p : asked) {
      const Array<int> times = zeros<int>(device(), 400);
      launch(count_each, 1, grid, p, radius, times);
      std::vector<int> expected(400);
      std::set<int> cells[3];
      for (int k = 0; k < 3; ++k) cells[k] = touched(p[k], std::min(radius, 1e5f), width, dims[k]);
      for (std::size_t i = 0; i < 400; ++i) {
        bool in = true;
        for (int k = 0; k < 3; ++k) {
          const int c = int(std::floor(points[i][k] / width)) % dims[k];
          in &= cells[k].contains(c < 0 ? c + dims[k] : c);
        }
        expected[i] = in;
      }
      ASSERT_EQ(times.to_vector(), expected) << radius << " around " << p.x << ", " << p.y << ", " << p.z;
    }
}

TEST_P(HashGridTest, a_cell_may_hold_all_points) {
  const int n = brief() ? 5000 : 1'000'000;
  const std::vector<vec3> points(std::size_t(n), vec3{-0.3f, 0.1f, 7.f});
  const Array<vec3> p(device(), points), asked(device(), {vec3{-0.3f, 0.1f, 7.f}, vec3{-0.3f, 3.1f, 7.f}});
  for (const bool deterministic : {false, true}) {
    HashGrid grid(device(), 64, 64, 64, {.deterministic = deterministic});
    grid.build(p, 1);
    const Array<Digest> out = zeros<Digest>(device(), 2);
    launch(digest_within, 2, grid, p, asked, 0.5f, out);
    Digest all;
    for (int i = 0; i < n; ++i) add(all, unsigned(i));
    EXPECT_TRUE(out.at(0) == all) << out.at(0).count;
    EXPECT_TRUE(out.at(1) == Digest());
  }
}

// ---- Order

std::vector<int> stable_order(const std::vector<vec3>& points, float width, const vec3i& dims,
                              const std::vector<int>& groups = {}) {
  const auto cell = [&](int i) {
    int c[3];
    for (int k = 0; k < 3; ++k) {
      c[k] = int(std::floor(points[std::size_t(i)][k] / width)) % dims[k];
      if (c[k] < 0) c[k] += dims[k];
    }
    return c[0] + dims.x * (c[1] + dims.y * c[2]);
  };
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    const int ca = cell(a), cb = cell(b);
    return ca != cb ? ca < cb : !groups.empty() && groups[std::size_t(a)] < groups[std::size_t(b)];
  });
  return order;
}

const auto read_order = kernel("read_order", [](Var<HashGridArrays> grid, Arr<int> ids) {
  Int k = tid();
  ids[k] = hash_grid_point_id(grid, k);
});

TEST_P(HashGridTest, a_deterministic_grid_keeps_the_order_of_numbers_in_each_cell) {
  const std::vector<vec3> points = lattice_points(3000, 2048, 4);
  const Array<vec3> p(device(), points);
  const Array<int> ids = zeros<int>(device(), 3000);
  HashGrid ordered(device(), 4, 3, 5, {.deterministic = true, .keep_positions = true});
  ordered.build(p, 0.5f);
  launch(read_order, 3000, ordered, ids);
  const std::vector<int> order = stable_order(points, 0.5f, {4, 3, 5});
  EXPECT_EQ(ids.to_vector(), order);
  const std::vector<vec3> by_place = ordered.kernel_argument().positions.to_vector();
  for (std::size_t k = 0; k < order.size(); ++k) ASSERT_EQ(by_place[k], points[std::size_t(order[k])]);
  // In a grid that is not deterministic each cell has the same points, in any order.
  HashGrid counted(device(), 4, 3, 5);
  counted.build(p, 0.5f);
  EXPECT_EQ(counted.kernel_argument().begins.to_vector(), ordered.kernel_argument().begins.to_vector());
  launch(read_order, 3000, counted, ids);
  std::vector<int> got = ids.to_vector();
  const std::vector<int> begins = counted.kernel_argument().begins.to_vector();
  ASSERT_EQ(begins.size(), 62u);
  for (std::size_t c = 0; c + 2 < begins.size(); ++c) std::sort(got.begin() + begins[c], got.begin() + begins[c + 1]);
  EXPECT_EQ(got, order);
}

TEST_P(HashGridTest, places_number_what_is_found) {
  const std::vector<vec3> points = lattice_points(500, 512, 5);
  const Array<vec3> p(device(), points);
  HashGrid grid(device(), 8, 8, 8, {.keep_positions = true});
  grid.build(p, 0.25f);
  const Array<int> wrong = zeros<int>(device(), 1), found = zeros<int>(device(), 1);
  const auto check =
      kernel("check_places", [](Var<HashGridArrays> grid, Arr<const vec3> points, Arr<int> wrong, Arr<int> found) {
        auto query = hash_grid_query(grid, points[tid()], 0.2f);
        for (auto i : query) {
          Int place = query.place();
          If ((grid.points[place] != i) | (grid.positions[place] != points[i])) {
            atomic_add(wrong[0], 1);
          }
          atomic_add(found[0], 1);
        }
      });
  launch(check, 500, grid, p, wrong, found);
  EXPECT_EQ(wrong.at(0), 0);
  EXPECT_GT(found.at(0), 1000);
}

// ---- Groups

TEST_P(HashGridTest, a_query_finds_one_group_or_all) {
  const std::size_t n = brief() ? 1000 : 20000;
  const std::vector<vec3> points = lattice_points(n, 1024, 6);
  std::mt19937 random(8);
  std::vector<int> groups(n);
  const int names[] = {-2147483647, -1, 0, 3, 2147483647};
  for (int& g : groups) g = names[random() % 5];
  const Array<vec3> p(device(), points);
  const Array<int> g(device(), groups);
  HashGrid grid(device(), 6, 7, 8);
  grid.build(p, 0.3f, g);
  const float radius = 0.25f;
  expect_neighbours(device(), grid, points, {points.begin(), points.begin() + 200}, radius);
  const auto of_group = kernel(
      "of_group", [](Var<HashGridArrays> grid, Arr<const vec3> points, Int group, Float radius, Arr<Digest> out) {
        Int t = tid();
        for (auto i : hash_grid_query(grid, points[t], radius, group)) {
          Vec3 d = points[i] - points[t];
          If (dot(d, d) <= radius * radius) {
            out[t].count += 1u;
            out[t].sum += UInt(i);
            out[t].mixed += (UInt(i) * 2654435761u) ^ (UInt(i) >> 7u);
          }
        }
      });
  for (const int group : {-2147483647, -1, 0, 1, 3, 2147483647}) {
    std::vector<vec3> members;
    std::vector<unsigned> numbers;
    for (std::size_t i = 0; i < n; ++i)
      if (groups[i] == group) members.push_back(points[i]), numbers.push_back(unsigned(i));
    const Array<Digest> out = zeros<Digest>(device(), 200);
    launch(of_group, 200, grid, p, group, radius, out);
    const std::vector<Digest> got = out.to_vector();
    for (std::size_t t = 0; t < 200; ++t) {
      Digest expected;
      for (std::size_t k = 0; k < members.size(); ++k)
        if (const vec3 d = members[k] - points[t]; dot(d, d) <= radius * radius) add(expected, numbers[k]);
      ASSERT_TRUE(got[t] == expected) << group << ": " << got[t].count << ", not " << expected.count;
    }
  }
  // A grid without groups finds no group, and still all points.
  grid.build(p, 0.3f);
  const Array<Digest> out = zeros<Digest>(device(), 200);
  launch(of_group, 200, grid, p, 0, radius, out);
  for (const Digest& d : out.to_vector()) ASSERT_EQ(d.count, 0u);
  expect_neighbours(device(), grid, points, {points.begin(), points.begin() + 50}, radius);
}

TEST_P(HashGridTest, groups_are_in_order_within_cells) {
  const std::vector<vec3> points = lattice_points(2000, 1024, 9);
  std::vector<int> groups;
  for (int i = 0; i < 2000; ++i) groups.push_back((i * 7919) % 13 - 6);
  HashGrid grid(device(), 3, 3, 3);
  grid.build(Array<vec3>(device(), points), 0.5f, Array<int>(device(), groups));
  EXPECT_EQ(grid.kernel_argument().points.to_vector(), stable_order(points, 0.5f, {3, 3, 3}, groups));
}

// ---- Several queries

TEST_P(HashGridTest, queries_may_be_open_at_once) {
  const std::vector<vec3> points = lattice_points(300, 400, 10);
  const Array<vec3> p(device(), points);
  HashGrid coarse(device(), 4, 4, 4), fine(device(), 16, 16, 16);
  coarse.build(p, 0.4f);
  fine.build(p, 0.1f);
  const Array<int> triples = zeros<int>(device(), 300), turns = zeros<int>(device(), 300);
  // The kernel finds neighbours of neighbours, and advances two queries by turns.
  const auto both = kernel("both", [](Var<HashGridArrays> coarse, Var<HashGridArrays> fine, Arr<const vec3> p,
                                      Arr<int> triples, Arr<int> turns) {
    Int t = tid(), n = 0;
    const auto near = [&](const Int& a, const Int& b, float r) {
      Vec3 d = p[a] - p[b];
      return dot(d, d) <= r * r;
    };
    for (auto i : hash_grid_query(coarse, p[t], 0.25f)) {
      If (!near(t, i, 0.25f)) {
        Continue();
      }
      for (auto k : hash_grid_query(fine, p[i], 0.125f)) {
        If (near(i, k, 0.125f)) {
          n += 1;
        }
      }
    }
    triples[t] = n;
    auto a = hash_grid_query(coarse, p[t], 0.25f);
    auto b = hash_grid_query(fine, p[t], 0.25f);
    Int i = -1, k = -1, sum = 0;
    Bool more = true;
    While (more) {
      Bool one = a.next(i);
      Bool other = b.next(k);
      If (one) {
        sum += select(near(t, i, 0.25f), i + 1, 0);
      }
      If (other) {
        sum -= select(near(t, k, 0.25f), k + 1, 0);
      }
      more = one | other;
    }
    turns[t] = sum;
  });
  launch(both, 300, coarse, fine, p, triples, turns);
  const auto near = [&](std::size_t a, std::size_t b, float r) {
    const vec3 d = points[a] - points[b];
    return dot(d, d) <= r * r;
  };
  const std::vector<int> got = triples.to_vector();
  for (std::size_t t = 0; t < 300; ++t) {
    int expected = 0;
    for (std::size_t i = 0; i < 300; ++i)
      for (std::size_t k = 0; near(t, i, 0.25f) && k < 300; ++k) expected += near(i, k, 0.125f);
    ASSERT_EQ(got[t], expected);
  }
  EXPECT_EQ(turns.to_vector(), std::vector<int>(300, 0));
}

TEST_P(HashGridTest, a_loop_over_neighbours_can_be_left) {
  // There are several cells with several points each.
  std::vector<vec3> points;
  for (int i = 0; i < 100; ++i) points.push_back({0.5f + float(i % 4), 0.5f, 0.5f + float(i / 4 % 2)});
  HashGrid grid(device(), 16, 16, 16, {.deterministic = true});
  grid.build(Array<vec3>(device(), points), 1);
  const Array<int> found = zeros<int>(device(), 60), skipped = zeros<int>(device(), 60),
                   after = zeros<int>(device(), 60);
  const auto some = kernel("some", [](Var<HashGridArrays> grid, Arr<int> found, Arr<int> skipped, Arr<int> after) {
    Int t = tid(), limit = t >> 1, n = 0, odd = 0;
    for (auto i : hash_grid_query(grid, Vec3(2, 0.5f, 1), 2.5f)) {
      If ((i & 1) == 1) {
        odd += 1;
        skipped[t] = odd;
        Continue();
      }
      n += 1;
      found[t] = n;
      If (n == limit) {
        If ((t & 1) == 1) {
          Return();
        }
        Break();
      }
    }
    after[t] = 1;
  });
  launch(some, 60, grid, found, skipped, after);
  const std::vector<int> order = stable_order(points, 1, {16, 16, 16}), got = found.to_vector(),
                         odd = skipped.to_vector(), ended = after.to_vector();
  for (std::size_t t = 0; t < 60; ++t) {
    int n = 0, passed = 0;
    bool returned = false;
    for (const int i : order) {
      if (i % 2) {
        ++passed;
        continue;
      }
      if (++n == int(t / 2)) {
        returned = t % 2;
        break;
      }
    }
    EXPECT_EQ(got[t], n) << t;
    EXPECT_EQ(odd[t], passed) << t;
    EXPECT_EQ(ended[t], !returned) << t;
  }
}

// ---- Points that are none, and mistakes

TEST_P(HashGridTest, points_that_are_not_finite_are_in_no_cell) {
  std::vector<vec3> points = lattice_points(200, 512, 11);
  points[3].y = kNan, points[77].x = kInf, points[199].z = -kInf;
  const Array<vec3> p(device(), points);
  for (const bool deterministic : {false, true}) {
    HashGrid grid(device(), 4, 4, 4, {.deterministic = deterministic});
    grid.build(p, 0.5f);
    EXPECT_EQ(grid.size(), 200);
    EXPECT_EQ(grid.ignored(), 3);
    const Array<int> times = zeros<int>(device(), 200), ids = zeros<int>(device(), 200);
    const auto count_each = kernel("count_each", [](Var<HashGridArrays> grid, Vec3 p, Float r, Arr<int> times) {
      for (auto i : hash_grid_query(grid, p, r)) times[i] += 1;
    });
    launch(count_each, 1, grid, vec3{}, kInf, times);
    std::vector<int> expected(200, 1);
    expected[3] = expected[77] = expected[199] = 0;
    EXPECT_EQ(times.to_vector(), expected);
    // A query at such a place finds nothing either.
    for (const vec3& at : {points[3], points[77], points[199]}) launch(count_each, 1, grid, at, kInf, times);
    for (const float r : {-1.f, -kInf, kNan}) launch(count_each, 1, grid, vec3{}, r, times);
    EXPECT_EQ(times.to_vector(), expected);
    // Each point has a place in the order.
    launch(read_order, 200, grid, ids);
    std::vector<int> order = ids.to_vector();
    EXPECT_EQ((std::set<int>(order.end() - 3, order.end())), (std::set<int>{3, 77, 199}));
    std::ranges::sort(order);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(order[std::size_t(i)], i);
  }
}

TEST_P(HashGridTest, debug_mode_reports_points_that_are_ignored) {
  const Array<vec3> p(device(), {vec3{1, 2, 3}, vec3{4, kNan, 6}});
  HashGrid grid(device(), 4, 4, 4);
  set_debug(true);
  grid.build(p, 0.5f);
  set_debug(false);
  const std::string text = error_of([&] { (void)grid.ignored(); });
  expect_contains(text, "a hash grid ignores point 1");
}

TEST_P(HashGridTest, debug_mode_reports_queries_that_make_no_sense) {
  HashGrid grid(device(), 4, 4, 4);
  grid.build(Array<vec3>(device(), {vec3{1, 2, 3}}), 0.5f);
  const Array<int> found = zeros<int>(device(), 1);
  const auto ask = kernel("ask",
                          [](Var<HashGridArrays> grid, Float radius, Arr<int> found) {
                            for (auto i : hash_grid_query(grid, Vec3(1, 2, 3), radius)) found[i] = 1;
                          },
                          {.debug = true});
  launch(ask, 1, grid, -0.5f, found);
  expect_contains(error_of([&] { found.to_vector(); }), "hash_grid_query: the radius is -0.5");
  launch(ask, 1, grid, kNan, found);
  expect_contains(error_of([&] { found.to_vector(); }), "hash_grid_query: the radius is");
  for (const float radius : {-0.5f, kNan}) {
    const auto ask_number = kernel("ask_number",
                                   [radius](Var<HashGridArrays> grid, Arr<int> found) {
                                     for (auto i : hash_grid_query(grid, Vec3(1, 2, 3), radius)) found[i] = 1;
                                   },
                                   {.debug = true});
    launch(ask_number, 1, grid, found);
    expect_contains(error_of([&] { found.at(0); }), "hash_grid_query: the radius is");
  }
  launch(ask, 1, grid, 0.f, found);
  EXPECT_EQ(found.at(0), 1) << "a radius of 0 is one";
  const auto ask_group = kernel("ask_group",
                                [](Var<HashGridArrays> grid, Arr<int> found) {
                                  for (auto i : hash_grid_query(grid, Vec3(1, 2, 3), 1.f, 5)) found[i] = 1;
                                },
                                {.debug = true});
  launch(ask_group, 1, grid, found);
  expect_contains(error_of([&] { found.to_vector(); }), "the grid was built without groups");
}

TEST_P(HashGridTest, mistakes_are_refused_by_name) {
  const Array<vec3> p = zeros<vec3>(device(), 10), null;
  const Array<int> found = zeros<int>(device(), 10);
  expect_contains(error_of([&] { HashGrid(device(), 0, 1, 1); }), "a hash grid of 0 x 1 x 1 cells");
  expect_contains(error_of([&] { HashGrid(device(), 8, 8, -8); }), "a hash grid of 8 x 8 x -8 cells");
  expect_contains(error_of([&] { HashGrid(device(), 1, 1 << 23, 1); }), "1 to 4194304 along each axis");
  expect_contains(error_of([&] { HashGrid(device(), 2048, 2048, 2048); }), "1073741824 in all are possible");
  HashGrid grid(device(), 4, 4, 4), none;
  expect_contains(error_of([&] { launch(read_order, 10, grid, found); }), "a hash grid is used before it was built");
  for (const float width : {0.f, -0.f, -1.f, kNan, kInf, 1e-39f})
    expect_contains(error_of([&] { grid.build(p, width); }), "a hash grid is given cells of width");
  expect_contains(error_of([&] { grid.build(null, 1); }), "a hash grid is given a null array of points");
  expect_contains(error_of([&] { grid.build(p, 1, zeros<int>(device(), 9)); }),
                  "a hash grid of 10 points is given 9 groups");
  const Device other = Device::open("reference");
  expect_contains(error_of([&] { grid.build(zeros<vec3>(other, 10), 1); }), "is given points on device reference");
  expect_contains(error_of([&] { grid.build(p, 1, zeros<int>(other, 10)); }), "is given groups on device reference");
  expect_contains(error_of([&] { grid.reserve(-1); }), "memory for -1 points");
  expect_contains(error_of([&] { none.build(p, 1); }), "a null hash grid is used");
  expect_contains(error_of([&] { launch(read_order, 10, none, found); }), "a null hash grid is used");
  // After all these mistakes the grid is as good as new.
  EXPECT_EQ(grid.size(), 0);
  grid.build(p, 1);
  launch(read_order, 10, grid, found);
  std::vector<int> ids = found.to_vector();
  std::ranges::sort(ids);
  EXPECT_EQ(ids, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// ---- Memory

TEST_P(HashGridTest, builds_of_no_more_points_allocate_nothing) {
  const Array<vec3> p(device(), lattice_points(1000, 512, 12));
  const Array<int> groups = zeros<int>(device(), 1000);
  for (const bool deterministic : {false, true})
    for (const bool grouped : {false, true}) {
      HashGrid grid(device(), 16, 16, 16, {.deterministic = deterministic, .keep_positions = true});
      const auto build = [&](std::int64_t n) {
        grid.build(p.slice(0, n), 0.1f, grouped ? groups.slice(0, n) : Array<int>());
      };
      build(1000);
      const std::uint64_t before = device().state()->allocated;
      for (const std::int64_t n : {1000, 1, 999, 1000}) build(n);
      EXPECT_EQ(device().state()->allocated, before);
      grid.reserve(2000);
      EXPECT_GT(device().state()->allocated, before);  // shows that the counter counts
    }
}

TEST_P(HashGridTest, any_number_of_points_is_built_in_turn) {
  const std::vector<vec3> points = lattice_points(2000, 512, 13);
  const Array<vec3> all(device(), points);
  HashGrid grid(device(), 8, 8, 8);
  for (const std::size_t n : {1000u, 0u, 1u, 2000u, 3u}) {
    grid.build(all.slice(0, std::int64_t(n)), 0.125f);
    EXPECT_EQ(grid.size(), std::int64_t(n));
    expect_neighbours(
        device(), grid, {points.begin(), points.begin() + std::ptrdiff_t(std::max<std::size_t>(n, 1))},
        n ? std::vector<vec3>(points.begin(), points.begin() + std::ptrdiff_t(std::min<std::size_t>(n, 100)))
          : std::vector<vec3>{vec3{9, 9, 9}},
        0.1f);
  }
  // A view of every second point is built in place.
  std::vector<vec3> some;
  for (std::size_t i = 0; i < 2000; i += 2) some.push_back(points[i]);
  grid.build(all.slice(0, 2000, 2), 0.125f);
  expect_neighbours(device(), grid, some, {some.begin(), some.begin() + 100}, 0.1f);
}

// ---- Handles

TEST_P(HashGridTest, structs_and_arrays_hold_grids) {
  const std::vector<vec3> points = lattice_points(400, 512, 14);
  const Array<vec3> p(device(), points);
  std::vector<HashGrid> grids;
  std::vector<std::uint64_t> ids;
  for (int k = 0; k < 3; ++k) {
    grids.emplace_back(device(), 4 + k, 5, 6);
    ids.push_back(grids.back().id());
    EXPECT_EQ(grids.back().id(), ids.back());
  }
  ids.push_back(0);
  const Array<int> counts = full<int>(device(), 4, -1);
  const auto count = kernel("count", [](Arr<const std::uint64_t> ids, Arr<const vec3> p, Arr<int> counts) {
    Int t = tid(), n = 0;
    for (auto i : hash_grid_query(ids[t], Vec3(0, 0, 0), 0.25f)) n += select(dot(p[i], p[i]) <= 0.0625f, 1, 0);
    counts[t] = n;
  });
  const Array<std::uint64_t> handles(device(), ids);
  launch(count, 4, handles, p, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{0, 0, 0, 0})) << "nothing is built yet";
  const auto expected = int(std::ranges::count_if(points, [](const vec3& v) { return dot(v, v) <= 0.0625f; }));
  ASSERT_GT(expected, 5);
  for (int k = 0; k < 3; ++k) grids[std::size_t(k)].build(p, 0.1f * float(k + 1));
  launch(count, 4, handles, p, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{expected, expected, expected, 0}));
  // The handle of a grid stays the same after another build, with more points than the grid had memory for.
  std::vector<vec3> more = points;
  more.insert(more.end(), 1000, vec3{0.125f, 0.125f, 0});
  const Array<vec3> q(device(), more);
  grids[1].build(q, 0.2f);
  launch(count, 2, handles.slice(1), q, counts.slice(1));
  EXPECT_EQ(counts.at(1), expected + 1000);
  EXPECT_EQ(counts.at(2), expected);
  grids[1] = HashGrid();
  launch(count, 4, handles, p, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{expected, 0, expected, 0})) << "one is no more";
}

TEST_P(HashGridTest, launches_by_handles_are_ordered_with_builds) {
  const Array<vec3> p(device(), std::vector<vec3>(2000, vec3{0.5f, 0.5f, 0.5f}));
  HashGrid grid(device(), 16, 16, 16);
  const Array<std::uint64_t> id(device(), {grid.id()});
  const Array<int> counts = zeros<int>(device(), 40);
  const auto count = kernel("count", [](Arr<const std::uint64_t> id, Arr<int> counts) {
    Int n = 0;
    for (auto i : hash_grid_query(id[0], Vec3(0.5f, 0.5f, 0.5f), 0.1f)) n += select(i >= 0, 1, 0);
    counts[tid()] = n;
  });
  const Stream other = device().create_stream();
  for (int k = 0; k < 40; ++k) {
    // Each answer is that of its moment, whichever stream the query runs on.
    grid.build(p.slice(0, 50 * k), 0.1f);
    if (k % 2)
      launch(other, count, 1, id, counts.slice(k, k + 1));
    else
      launch(count, 1, id, counts.slice(k, k + 1));
  }
  const std::vector<int> got = counts.to_vector();
  for (int k = 0; k < 40; ++k) EXPECT_EQ(got[std::size_t(k)], 50 * k);
}

TEST_P(HashGridTest, debug_mode_reports_a_handle_of_nothing) {
  HashGrid grid(device(), 4, 4, 4);
  const Array<std::uint64_t> id(device(), {grid.id()});
  const Array<int> out = zeros<int>(device(), 10);
  const auto checked = kernel("checked",
                              [](Arr<const std::uint64_t> id, Arr<int> out) {
                                for (auto i : hash_grid_query(id[0], Vec3(0, 0, 0), 1.f)) out[i] += 1;
                              },
                              {.debug = true});
  launch(checked, 1, id, out);
  expect_contains(error_of([&] { out.to_vector(); }), "names no hash grid, or one that was not built or is no more");
  grid.build(zeros<vec3>(device(), 10), 1);
  launch(checked, 1, id, out);
  EXPECT_EQ(out.to_vector(), std::vector<int>(10, 1));
}

TEST_P(HashGridTest, positions_that_are_not_kept_are_read_by_nobody) {
  HashGrid grid(device(), 4, 4, 4), keeping(device(), 4, 4, 4, {.keep_positions = true});
  const Array<vec3> points = full<vec3>(device(), 10, vec3(1, 2, 3));
  grid.build(points, 1);
  keeping.build(points, 1);
  const Array<float> out = zeros<float>(device(), 1);
  const auto first =
      kernel("first position", [](Var<HashGridArrays> grid, Arr<float> out) { out[0] = grid.positions[0].y; });
  launch(first, 1, keeping, out);
  EXPECT_EQ(out.at(0), 2);
  const std::string error = error_of([&] { launch(first, 1, grid, out); });
  expect_contains(error, "argument 1.positions is an empty array");
  expect_contains(error, "\"first position\"");
  const Array<std::uint64_t> id(device(), {grid.id()});
  const auto by_id =
      kernel("position by id",
             [](Arr<const std::uint64_t> id, Arr<float> out) { out[0] = hash_grid_at(id[0]).positions[0].y; },
             {.debug = true});
  launch(by_id, 1, id, out);
  expect_contains(error_of([&] { out.at(0); }), "position by id");
}

}  // namespace
