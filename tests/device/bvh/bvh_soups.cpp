// Sets of boxes for tests, and checks of what was built from them.
#include "bvh_soups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace weft::test {

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Box {
  vec3 lower{kInf, kInf, kInf}, upper{-kInf, -kInf, -kInf};
  void add(const Box& b) {
    for (int k = 0; k < 3; ++k) {
      lower[k] = std::min(lower[k], b.lower[k]);
      upper[k] = std::max(upper[k], b.upper[k]);
    }
  }
  double half_area() const {
    const double x = double(upper.x) - lower.x, y = double(upper.y) - lower.y, z = double(upper.z) - lower.z;
    return x >= 0 ? x * y + y * z + z * x : 0;
  }
  bool operator==(const Box&) const = default;
};

Box box_at(const Boxes& boxes, std::size_t i) {
  const vec3 &lower = boxes.lowers[i], &upper = boxes.uppers[i];
  for (int k = 0; k < 3; ++k)
    if (!(lower[k] <= upper[k] && lower[k] >= -FLT_MAX && upper[k] <= FLT_MAX)) return {};
  return {lower, upper};
}

void add_triangle(Boxes& boxes, const vec3& a, const vec3& b, const vec3& c) {
  vec3 lower, upper;
  for (int k = 0; k < 3; ++k) {
    lower[k] = std::min({a[k], b[k], c[k]});
    upper[k] = std::max({a[k], b[k], c[k]});
  }
  boxes.add(lower, upper);
}

struct Child {
  Box box;
  int link, count;
};
std::array<Child, 2> children(const BvhNode& n) {
  const auto child = [](const vec4& lower, const vec4& upper) {
    return Child{{{lower.x, lower.y, lower.z}, {upper.x, upper.y, upper.z}},
                 std::bit_cast<int>(lower.w),
                 std::bit_cast<int>(upper.w)};
  };
  return {child(n.lower0, n.upper0), child(n.lower1, n.upper1)};
}

// Splits [begin, end) of `order` where the bins say, and returns the cost of the tree below.
double binned(const Boxes& boxes, std::vector<int>& order, std::size_t begin, std::size_t end, std::size_t leaf_size) {
  constexpr int kBins = 16;
  Box all, centers;
  const auto center = [&](int i) { return (boxes.lowers[std::size_t(i)] + boxes.uppers[std::size_t(i)]) * 0.5f; };
  for (std::size_t i = begin; i < end; ++i) {
    all.add(box_at(boxes, std::size_t(order[i])));
    const vec3 c = center(order[i]);
    centers.add({c, c});
  }
  if (end - begin == 1) return all.half_area();
  const double as_leaf = end - begin <= leaf_size ? all.half_area() * double(end - begin) : DBL_MAX;
  double best = DBL_MAX;
  int best_axis = -1, best_bin = 0;
  const auto bin_of = [&](int i, int axis) {
    const float extent = centers.upper[axis] - centers.lower[axis];
    return std::min(kBins - 1, int(float(kBins) * (center(i)[axis] - centers.lower[axis]) / extent));
  };
  for (int axis = 0; axis < 3; ++axis) {
    if (!(centers.upper[axis] > centers.lower[axis])) continue;
    std::array<Box, kBins> bins{};
    std::array<int, kBins> counts{};
    for (std::size_t i = begin; i < end; ++i) {
      const auto b = std::size_t(bin_of(order[i], axis));
      bins[b].add(box_at(boxes, std::size_t(order[i])));
      ++counts[b];
    }
    std::array<double, kBins> below{};
    Box sum;
    int n = 0;
    for (std::size_t b = 0; b + 1 < kBins; ++b) {
      sum.add(bins[b]);
      n += counts[b];
      below[b] = n ? sum.half_area() * n : DBL_MAX;
    }
    sum = {};
    n = 0;
    for (std::size_t b = kBins - 1; b > 0; --b) {
      sum.add(bins[b]);
      n += counts[b];
      if (n == 0 || below[b - 1] == DBL_MAX) continue;
      if (const double cost = below[b - 1] + sum.half_area() * n; cost < best)
        best = cost, best_axis = axis, best_bin = int(b);
    }
  }
  std::size_t middle = begin + (end - begin) / 2;
  const auto at = [&](std::size_t i) { return order.begin() + std::ptrdiff_t(i); };
  if (best_axis >= 0)
    middle = std::size_t(std::partition(at(begin), at(end), [&](int i) { return bin_of(i, best_axis) < best_bin; }) -
                         order.begin());
  return std::min(as_leaf, all.half_area() + binned(boxes, order, begin, middle, leaf_size) +
                               binned(boxes, order, middle, end, leaf_size));
}

}  // namespace

Boxes random_soup(int n, unsigned seed) {
  std::mt19937 random(seed);
  const auto uniform = [&] { return float(random() >> 8) / float(1 << 24); };
  Boxes boxes;
  for (int i = 0; i < n; ++i) {
    const vec3 at{uniform(), uniform(), uniform()};
    const auto corner = [&] { return at + vec3{uniform(), uniform(), uniform()} * 0.02f; };
    const vec3 a = corner(), b = corner(), c = corner();
    add_triangle(boxes, a, b, c);
  }
  return boxes;
}

Boxes icosphere(int levels) {
  const float p = (1 + std::sqrt(5.f)) / 2;
  std::vector<vec3> points{{-1, p, 0},  {1, p, 0},  {-1, -p, 0}, {1, -p, 0}, {0, -1, p},  {0, 1, p},
                           {0, -1, -p}, {0, 1, -p}, {p, 0, -1},  {p, 0, 1},  {-p, 0, -1}, {-p, 0, 1}};
  std::vector<std::array<int, 3>> faces{{0, 11, 5}, {0, 5, 1},  {0, 1, 7},   {0, 7, 10}, {0, 10, 11},
                                        {1, 5, 9},  {5, 11, 4}, {11, 10, 2}, {10, 7, 6}, {7, 1, 8},
                                        {3, 9, 4},  {3, 4, 2},  {3, 2, 6},   {3, 6, 8},  {3, 8, 9},
                                        {4, 9, 5},  {2, 4, 11}, {6, 2, 10},  {8, 6, 7},  {9, 8, 1}};
  for (vec3& v : points) v = normalize(v);
  for (int level = 0; level < levels; ++level) {
    std::map<std::pair<int, int>, int> middles;
    const auto middle = [&](int a, int b) {
      const auto [found, added] = middles.try_emplace(std::minmax(a, b), int(points.size()));
      if (added) points.push_back(normalize(points[std::size_t(a)] + points[std::size_t(b)]));
      return found->second;
    };
    std::vector<std::array<int, 3>> finer;
    for (const auto& [a, b, c] : faces) {
      const int ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
      finer.insert(finer.end(), {{a, ab, ca}, {b, bc, ab}, {c, ca, bc}, {ab, bc, ca}});
    }
    faces = finer;
  }
  Boxes boxes;
  for (const auto& f : faces)
    add_triangle(boxes, points[std::size_t(f[0])], points[std::size_t(f[1])], points[std::size_t(f[2])]);
  return boxes;
}

Boxes torus(int around, int along) {
  const auto point = [&](int i, int j) {
    const float a = float(i % around) * 6.2831853f / float(around), b = float(j % along) * 6.2831853f / float(along);
    const float r = 1 + 0.3f * std::cos(b);
    return vec3{r * std::cos(a), r * std::sin(a), 0.3f * std::sin(b)};
  };
  Boxes boxes;
  for (int i = 0; i < around; ++i)
    for (int j = 0; j < along; ++j) {
      add_triangle(boxes, point(i, j), point(i + 1, j), point(i + 1, j + 1));
      add_triangle(boxes, point(i, j), point(i + 1, j + 1), point(i, j + 1));
    }
  return boxes;
}

Boxes boxes_of(const MeshData& mesh) {
  Boxes boxes;
  const auto point = [&](std::size_t k) { return mesh.points[std::size_t(mesh.indices[k])]; };
  for (std::size_t k = 0; k < mesh.indices.size(); k += 3) add_triangle(boxes, point(k), point(k + 1), point(k + 2));
  return boxes;
}

HostBvh::HostBvh(const Bvh& bvh)
    : nodes(bvh.data().nodes.to_vector()),
      primitives(bvh.data().primitives.to_vector()),
      parents(bvh.data().parents.to_vector()) {}

void expect_valid(const Bvh& bvh, const Boxes& boxes) {
  const HostBvh tree(bvh);
  const std::size_t n = boxes.size();
  ASSERT_EQ(bvh.size(), std::int64_t(n));
  std::vector<int> found(n, 0);
  std::size_t nodes = 0, leaves = 0;
  int deepest = 0;
  struct Visit {
    int node, parent, depth;
  };
  std::vector<Visit> order{{0, -1, 1}}, stack = order;
  // Parents come before their children, so that boxes can be compared from the end.
  order.clear();
  while (!stack.empty()) {
    const Visit v = stack.back();
    stack.pop_back();
    ASSERT_GE(v.node, 0);
    ASSERT_LT(std::size_t(v.node), tree.nodes.size());
    ASSERT_EQ(tree.parents[std::size_t(v.node)], v.parent);
    ASSERT_EQ(std::size_t(v.node), nodes) << "nodes lie as a walk meets them, first children first";
    ASSERT_LE(++nodes, tree.nodes.size()) << "a node is linked to twice";
    deepest = std::max(deepest, v.depth);
    order.push_back(v);
    const auto both = children(tree.nodes[std::size_t(v.node)]);
    for (int side : {1, 0}) {
      const auto& [box, link, count] = both[std::size_t(side)];
      if (link >= 0) {
        ASSERT_EQ(count, 0);
        stack.push_back({link, v.node * 2 + side, v.depth + 1});
      } else if (count == 0) {
        ASSERT_LT(n, 2u) << "only a tree of less than two has children that are not there";
        ASSERT_EQ(link, -1);
        ASSERT_EQ(box, Box());
      } else {
        ++leaves;
        ASSERT_LE(count, bvh.options().leaf_size);
        Box around;
        for (int k = 0; k < count; ++k) {
          const auto p = std::size_t(tree.primitives.at(std::size_t(~link + k)));
          ASSERT_LT(p, n);
          ++found[p];
          around.add(box_at(boxes, p));
        }
        ASSERT_EQ(box, around) << "leaf at " << ~link;
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(found[i], 1) << "primitive " << i;
  for (std::size_t k = nodes; k < tree.parents.size(); ++k) ASSERT_EQ(tree.parents[k], -2) << k << " names no node";
  int place = 0;
  for (const Visit& v : order)
    for (const Child& c : children(tree.nodes[std::size_t(v.node)]))
      if (c.count > 0) {
        ASSERT_EQ(~c.link, place) << "leaves lie in the order of their nodes";
        place += c.count;
      }
  if (n > 1) {
    EXPECT_EQ(nodes, leaves - 1);
  }
  if (bvh.options().leaf_size == 1) {
    EXPECT_EQ(nodes, std::max<std::size_t>(n, 2) - 1);
  }
  EXPECT_EQ(bvh.depth(), deepest);
  std::vector<Box> whole(tree.nodes.size());
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto node = std::size_t(order[i].node);
    for (const Child& c : children(tree.nodes[node])) {
      if (c.link >= 0) {
        ASSERT_EQ(c.box, whole[std::size_t(c.link)]) << "node " << c.link;
      }
      whole[node].add(c.box);
    }
  }
}

double cost_of(const Bvh& bvh) {
  const HostBvh tree(bvh);
  Box root;
  for (const Child& c : children(tree.nodes[0])) root.add(c.box);
  double sum = root.half_area();
  std::vector<int> stack{0};
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    for (const Child& c : children(tree.nodes[std::size_t(node)])) {
      sum += c.box.half_area() * (c.link >= 0 ? 1 : c.count);
      if (c.link >= 0) stack.push_back(c.link);
    }
  }
  return sum / root.half_area();
}

double cost_of_binned_build(const Boxes& boxes, int leaf_size) {
  std::vector<int> order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  Box root;
  for (std::size_t i = 0; i < boxes.size(); ++i) root.add(box_at(boxes, i));
  return binned(boxes, order, 0, order.size(), std::size_t(leaf_size)) / root.half_area();
}

}  // namespace weft::test
