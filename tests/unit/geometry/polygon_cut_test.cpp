// Polygons cut into triangles: all of the area, nothing twice, nothing backwards, in any plane and of any size.
#include "../../../runtime/geometry/files/polygon_cut.h"

#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <numbers>
#include <numeric>
#include <random>
#include <set>

#include "../../../frontend/support/platform.h"

namespace weft::polygons {
namespace {

using Random = std::mt19937;
/// A point of a grid, where everything can be computed without rounding.
using Cell = std::array<int, 2>;
using Loop = std::vector<Cell>;

long turn(Cell a, Cell b, Cell c) { return long(b[0] - a[0]) * (c[1] - a[1]) - long(b[1] - a[1]) * (c[0] - a[0]); }
int sign(long x) { return (x > 0) - (x < 0); }
bool lies_on(Cell a, Cell b, Cell p) {
  return turn(a, b, p) == 0 && std::min(a[0], b[0]) <= p[0] && p[0] <= std::max(a[0], b[0]) &&
         std::min(a[1], b[1]) <= p[1] && p[1] <= std::max(a[1], b[1]);
}
bool meet(Cell a, Cell b, Cell c, Cell d) {
  if (lies_on(a, b, c) || lies_on(a, b, d) || lies_on(c, d, a) || lies_on(c, d, b)) return true;
  return sign(turn(a, b, c)) * sign(turn(a, b, d)) < 0 && sign(turn(c, d, a)) * sign(turn(c, d, b)) < 0;
}
long twice_area(const Loop& p) {
  long sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += turn({0, 0}, p[i], p[(i + 1) % p.size()]);
  return sum;
}
bool is_simple(const Loop& p) {
  const std::size_t n = p.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Cell a = p[(i + n - 1) % n], b = p[i], c = p[(i + 1) % n];
    if (turn(a, b, c) == 0 && long(a[0] - b[0]) * (c[0] - b[0]) + long(a[1] - b[1]) * (c[1] - b[1]) >= 0) return false;
    for (std::size_t j = i + 2; j < n; ++j)
      if ((j + 1) % n != i && meet(b, c, p[j], p[(j + 1) % n])) return false;
  }
  return true;
}

/// A simple polygon whose corners are any points of a square grid: a random order, with exchanges of edges that meet.
Loop simple_loop(Random& random, int corners, int width) {
  const std::size_t n = std::size_t(corners);
  for (;;) {
    Loop p;
    for (int k = 0; k < width * width; ++k) p.push_back({k % width, k / width});
    std::shuffle(p.begin(), p.end(), random);
    p.resize(n);
    bool changed = true;
    for (int round = 0; round < 100 && changed; ++round) {
      changed = false;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 2; j < n; ++j)
          if ((j + 1) % n != i && meet(p[i], p[i + 1], p[j], p[(j + 1) % n])) {
            std::reverse(p.begin() + std::ptrdiff_t(i) + 1, p.begin() + std::ptrdiff_t(j) + 1);
            changed = true;
          }
    }
    if (is_simple(p)) return p;
  }
}

/// A polygon that does not cross itself and touches itself wherever it can: the outline of triangles of a grid that are
/// connected like a tree.
Loop touching_loop(Random& random, int width) {
  std::vector<std::array<Cell, 3>> triangles;
  for (int x = 0; x < width; ++x)
    for (int y = 0; y < width; ++y) {
      const Cell a{x, y}, b{x + 1, y}, c{x + 1, y + 1}, d{x, y + 1};
      const bool one = random() % 2;
      triangles.push_back(one ? std::array{a, b, c} : std::array{a, b, d});
      triangles.push_back(one ? std::array{a, c, d} : std::array{b, c, d});
    }
  std::map<std::pair<Cell, Cell>, std::size_t> beside;
  for (std::size_t t = 0; t < triangles.size(); ++t)
    for (std::size_t k = 0; k < 3; ++k) beside[{triangles[t][k], triangles[t][(k + 1) % 3]}] = t;
  const std::size_t first = random() % triangles.size(), wanted = 1 + random() % triangles.size();
  std::set<std::size_t> taken{first};
  std::list<Cell> loop(triangles[first].begin(), triangles[first].end());
  std::vector<std::list<Cell>::iterator> edges;
  for (auto corner = loop.begin(); corner != loop.end(); ++corner) edges.push_back(corner);
  while (taken.size() < wanted && !edges.empty()) {
    auto& edge = edges[random() % edges.size()];
    auto end = std::next(edge) == loop.end() ? loop.begin() : std::next(edge);
    const auto found = beside.find({*end, *edge});
    if (found == beside.end() || !taken.insert(found->second).second) {
      edge = edges.back();
      edges.pop_back();
      continue;
    }
    for (const Cell& p : triangles[found->second])
      if (p != *edge && p != *end) {
        edges.push_back(loop.insert(std::next(edge), p));
        break;
      }
  }
  return {loop.begin(), loop.end()};
}

std::vector<int> first_numbers(std::size_t n) {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// The fault of the triangles of a loop, found in whole numbers; empty if there is none.
std::string fault(const Loop& p, std::span<const vec3> points) {
  std::vector<int> t{7};  // an element from before, which stays
  if (!Cutter().cut(points, first_numbers(p.size()), t)) return "refused";
  t.erase(t.begin());
  const long area = twice_area(p);
  long sum = 0;
  if (t.size() != 3 * (p.size() - 2)) return std::to_string(t.size() / 3) + " triangles";
  for (std::size_t k = 0; k < t.size(); k += 3) {
    const long one = turn(p[std::size_t(t[k])], p[std::size_t(t[k + 1])], p[std::size_t(t[k + 2])]);
    if (sign(one) == -sign(area) && area != 0) return "a triangle lies backwards";
    sum += std::abs(one);
  }
  if (sum != std::abs(area)) return std::to_string(sum) + " instead of " + std::to_string(std::abs(area));
  return {};
}
std::vector<vec3> in_xy(const Loop& p) {
  std::vector<vec3> points;
  for (const Cell& c : p) points.push_back({float(c[0]), float(c[1]), 0});
  return points;
}
/// The loop in a plane anywhere in space, at a scale from 1e-6 to 1e6.
std::vector<vec3> in_space(Random& random, const Loop& p) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-6, 6);
  auto direction = [&] { return vec3d(normal(random), normal(random), normal(random)); };
  const vec3d u = normalize(direction()), v = normalize(cross(u, direction())), place = direction();
  const double scale = std::pow(10, exponent(random));
  std::vector<vec3> points;
  for (const Cell& c : p) points.push_back(vec3((place + u * double(c[0]) + v * double(c[1])) * scale));
  return points;
}

std::string print(const Loop& p) {
  std::string text;
  for (const Cell& c : p) text += " (" + std::to_string(c[0]) + "," + std::to_string(c[1]) + ")";
  return text;
}

TEST(PolygonCut, covers_a_quadrilateral_with_a_reflex_last_corner_once) {
  const Loop p = {{1, 2}, {2, 5}, {3, 0}, {2, 2}};
  EXPECT_EQ(std::abs(twice_area(p)), 6);
  EXPECT_EQ(fault(p, in_xy(p)), "");
}

TEST(PolygonCut, covers_simple_polygons_of_a_grid_once) {
  Random random(3);
  for (int corners : {4, 5, 6, 7, 8, 9, 12, 13, 16, 24, 30})
    for (int k = 0; k < (corners < 10 ? 2000 : 150); ++k) {
      Loop p = simple_loop(random, corners, 7);
      if (k % 2) std::reverse(p.begin(), p.end());
      ASSERT_EQ(fault(p, in_xy(p)), "") << print(p);
      ASSERT_EQ(fault(p, in_space(random, p)), "") << "in space" << print(p);
    }
}

TEST(PolygonCut, keeps_the_direction_of_polygons_in_space) {
  Random random(4);
  for (int k = 0; k < 2000; ++k) {
    const Loop p = simple_loop(random, 4 + int(k % 8 ? random() % 9 : random() % 27), 7);
    const std::vector<vec3> points = in_space(random, p);
    auto point = [&](int i) { return vec3d(points[std::size_t(i)]); };
    auto area = [&](int a, int b, int c) { return cross(point(b) - point(a), point(c) - point(a)) * 0.5; };
    vec3d whole(0, 0, 0);
    for (int i = 1; i + 1 < int(p.size()); ++i) whole += area(0, i, i + 1);
    std::vector<int> t;
    ASSERT_TRUE(Cutter().cut(points, first_numbers(p.size()), t));
    double sum = 0;
    for (std::size_t i = 0; i < t.size(); i += 3) {
      const vec3d one = area(t[i], t[i + 1], t[i + 2]);
      // Slivers, which rounding may turn to any side, do not occur, though many corners are on straight edges.
      ASSERT_GT(dot(one, whole), 0.99 * length(one) * length(whole)) << print(p);
      sum += length(one);
    }
    // Each coordinate is rounded to 24 bits, at a size of up to 15 times the grid's width.
    ASSERT_NEAR(sum / length(whole), 1, 1e-4) << print(p);
  }
}

TEST(PolygonCut, covers_polygons_that_touch_themselves_once) {
  Random random(5);
  for (int width : {1, 2, 3, 4, 6, 12})
    for (int k = 0; k < (width < 6 ? 1000 : 60); ++k) {
      Loop p = touching_loop(random, width);
      std::rotate(p.begin(), p.begin() + std::ptrdiff_t(random() % p.size()), p.end());
      if (k % 2) std::reverse(p.begin(), p.end());
      ASSERT_EQ(fault(p, in_xy(p)), "") << print(p);
      for (int again = 0; again < 3; ++again) {
        const auto at = p.begin() + std::ptrdiff_t(random() % p.size());
        p.insert(at, *at);
      }
      ASSERT_EQ(fault(p, in_xy(p)), "") << "with corners twice" << print(p);
    }
}

TEST(PolygonCut, makes_no_flat_triangle_where_there_is_another_way) {
  // The polygons are a triangle with corners on all three edges, and a strip with corners on both long edges.
  Loop strip;
  for (int x = 0; x <= 40; ++x) strip.push_back({x, 0});
  for (int x = 40; x >= 0; --x) strip.push_back({x, 1});
  for (const Loop& p : {Loop{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {2, 1}, {1, 2}, {0, 3}, {0, 2}, {0, 1}}, strip}) {
    std::vector<int> t;
    ASSERT_TRUE(Cutter().cut(in_xy(p), first_numbers(p.size()), t));
    for (std::size_t k = 0; k < t.size(); k += 3)
      EXPECT_GT(turn(p[std::size_t(t[k])], p[std::size_t(t[k + 1])], p[std::size_t(t[k + 2])]), 0);
  }
}

TEST(PolygonCut, tells_sides_exactly_whatever_the_exponents) {
  const double huge = 0x1p127, tiny = 0x1p-149;
  EXPECT_GT(orientation({-huge, 0}, {huge, 0}, {0, tiny}), 0);
  EXPECT_LT(orientation({-huge, 0}, {huge, 0}, {huge, -tiny}), 0);
  EXPECT_EQ(orientation({-huge, -tiny}, {0, 0}, {huge, tiny}), 0);
  // The points are nearly on a line: the products differ by a few parts in 2^48.
  for (int i = -2; i <= 2; ++i)
    for (int k = -2; k <= 2; ++k) {
      const std::int64_t px = (1 << 24) - 3 + i, py = (1 << 24) - 5 + k, qx = (1 << 24) - 7, qy = (1 << 24) - 9;
      const std::int64_t exact = px * qy - py * qx;
      const double found = orientation({0, 0}, {double(px), double(py)}, {double(qx), double(qy)});
      EXPECT_EQ((found > 0) - (found < 0), (exact > 0) - (exact < 0)) << i << " " << k;
    }
}

TEST(PolygonCut, takes_what_crosses_itself_and_lines_up_to_a_size) {
  Random random(6);
  auto cut = [](const std::vector<vec3>& points) {
    std::vector<int> t;
    const bool done = Cutter().cut(points, first_numbers(points.size()), t);
    EXPECT_EQ(t.size(), done ? 3 * (points.size() - 2) : 0u);
    return done;
  };
  for (std::size_t n : {std::size_t(4), std::size_t(9), Cutter::kMostCrossed, Cutter::kMostCrossed + 200}) {
    std::vector<vec3> anywhere(n), line(n), same(n, vec3(1, 2, 3)), eight(n);
    const float range[] = {1, 1e-30f, 3e38f};
    for (std::size_t k = 0; k < n; ++k) {
      for (int axis = 0; axis < 3; ++axis) anywhere[k][axis] = range[random() % 3] * (float(random() % 1000) / 500 - 1);
      line[k] = vec3(1, -2, 3) * float(random() % 50);
      const double angle = 2 * std::numbers::pi * double(k) / double(n);
      eight[k] = vec3(float(std::sin(angle)), float(std::sin(2 * angle)), 0);
    }
    EXPECT_EQ(cut(anywhere), n <= Cutter::kMostCrossed);
    EXPECT_TRUE(cut(eight) || n > Cutter::kMostCrossed);
    EXPECT_TRUE(cut(line));
    EXPECT_TRUE(cut(same));
  }
}

using Curve = vec3d (*)(int k, int n);
constexpr double kPi = std::numbers::pi;
const std::pair<const char*, Curve> kLarge[] = {
    {"circle", [](int k, int n) { return vec3d(std::cos(2 * kPi * k / n), std::sin(2 * kPi * k / n), 0); }},
    {"star",
     [](int k, int n) {
       const double r = 0.1 + double(std::uint32_t(k) * 2654435761u) * 0x1p-32;
       return vec3d(std::cos(2 * kPi * k / n), std::sin(2 * kPi * k / n), 0.25) * r;
     }},
    {"comb", [](int k, int n) { return vec3d(k == 0 || k == n - 1 ? -n : 10 * (k % 2) * n + k % 7, k, 0.5 * k); }},
    {"spiral",
     [](int k, int n) {
       const int there = k < n / 2 ? k : n - 1 - k;
       const double angle = 80 * kPi * there / n, r = angle + (k < n / 2 ? 1 : 2);
       return vec3d(r * std::cos(angle), 0, r * std::sin(angle));
     }},
    {"strip", [](int k, int n) { return k < n / 2 ? vec3d(k, 0, 0) : vec3d(n - 1 - k, 1, 1); }},
    {"zigzag",
     [](int k, int n) {
       const int there = k < n / 2 ? k : n - 1 - k;
       return vec3d(there + (k < n / 2 ? 0.5 : 0), there + there % 2 * 100 - (k < n / 2 ? 120 : 0), 0);
     }},
};

TEST(PolygonCut, of_many_corners_costs_little_more_for_each) {
  for (const auto& [name, curve] : kLarge) {
    double seconds[2] = {};
    for (int large = 0; large < 2; ++large) {
      const int n = large ? 32000 : 2000;
      std::vector<vec3> points;
      for (int k = 0; k < n; ++k) points.push_back(vec3(curve(k, n)));
      auto area = [&](int a, int b, int c) {
        const vec3d p = vec3d(points[std::size_t(a)]);
        return cross(vec3d(points[std::size_t(b)]) - p, vec3d(points[std::size_t(c)]) - p);
      };
      vec3d whole(0, 0, 0);
      for (int k = 1; k + 1 < n; ++k) whole += area(0, k, k + 1);
      std::vector<int> t;
      const double before = platform::thread_seconds();
      ASSERT_TRUE(Cutter().cut(points, first_numbers(points.size()), t)) << name;
      seconds[large] = platform::thread_seconds() - before;
      ASSERT_EQ(t.size(), 3 * std::size_t(n - 2)) << name;
      double sum = 0;
      for (std::size_t k = 0; k < t.size(); k += 3)
        sum += std::abs(dot(area(t[k], t[k + 1], t[k + 2]), normalize(whole)));
      EXPECT_NEAR(sum / length(whole), 1, 1e-6) << name;
    }
    // With 16 times the corners, 20 to 60 times the cost was measured; a quadratic cost would be 256 times as large.
    EXPECT_LT(seconds[1], 128 * seconds[0] + 0.01) << name;
  }
}

}  // namespace
}  // namespace weft::polygons
