// A hierarchy built on the host by halving along the longest axis: an independent check of what devices build, and a
// tree on which queries are tested.
#pragma once
#include <weft/runtime/array_create.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <random>

#include "../../../runtime/geometry/bvh/bvh_node.h"

namespace weft::test {

struct Box {
  vec3 lower, upper;
};

inline Box empty_box() {
  const float inf = std::numeric_limits<float>::infinity();
  return {vec3{inf, inf, inf}, vec3{-inf, -inf, -inf}};
}
inline void grow(Box& box, const Box& by) {
  for (int k = 0; k < 3; ++k) {
    box.lower[k] = std::min(box.lower[k], by.lower[k]);
    box.upper[k] = std::max(box.upper[k], by.upper[k]);
  }
}

class HostTree {
 public:
  /// \param chain  each node splits off one leaf, so that the tree is as deep as can be
  HostTree(const std::vector<Box>& boxes, int leaf_size, bool chain = false)
      : boxes_(boxes), leaf_size_(leaf_size), chain_(chain) {
    order.resize(boxes.size());
    std::iota(order.begin(), order.end(), 0);
    const int n = int(boxes.size());
    if (n <= leaf_size) {
      add_node(-1);
      set_child(0, 0, 0, n);
    } else {
      add_node(-1);
      split(0, 0, n);
    }
  }

  std::vector<BvhNode> nodes;
  std::vector<int> order, parents;

  BvhData upload(const Device& device) const {
    std::vector<vec3> lowers, uppers;
    for (const Box& b : boxes_) lowers.push_back(b.lower), uppers.push_back(b.upper);
    std::vector<int> places = order;
    // A launch takes no empty arrays.
    if (places.empty()) places = {0}, lowers = {{}}, uppers = {{}};
    return as_data(device, nodes, places, parents, lowers, uppers, leaf_size_);
  }
  static BvhData as_data(const Device& device, const std::vector<BvhNode>& nodes, const std::vector<int>& primitives,
                         const std::vector<int>& parents, const std::vector<vec3>& lowers,
                         const std::vector<vec3>& uppers, int leaf_size) {
    return {detail::kBvhTag,
            int(primitives.size()),
            leaf_size,
            Array<BvhNode>(device, nodes),
            Array<int>(device, primitives),
            Array<int>(device, parents),
            Array<vec3>(device, lowers),
            Array<vec3>(device, uppers),
            zeros<unsigned>(device, 2),
            zeros<int>(device, 1),
            full<int>(device, 1, kBvhNothing)};
  }

 private:
  int add_node(int parent) {
    BvhNode node{};
    const Box none = empty_box();
    const float no_child = std::bit_cast<float>(-1), no_primitives = std::bit_cast<float>(0);
    node.lower0 = node.lower1 = vec4{none.lower.x, none.lower.y, none.lower.z, no_child};
    node.upper0 = node.upper1 = vec4{none.upper.x, none.upper.y, none.upper.z, no_primitives};
    nodes.push_back(node);
    parents.push_back(parent);
    return int(nodes.size()) - 1;
  }
  void set_child(int node, int side, int begin, int end) {
    Box box = empty_box();
    for (int i = begin; i < end; ++i) grow(box, boxes_[std::size_t(order[std::size_t(i)])]);
    int child = ~begin, count = end - begin;
    if (count > leaf_size_) {
      child = add_node(2 * node + side);
      split(child, begin, end);
      count = 0;
    } else if (count == 0) {
      child = -1;
    }
    BvhNode& n = nodes[std::size_t(node)];
    (side ? n.lower1 : n.lower0) = vec4{box.lower.x, box.lower.y, box.lower.z, std::bit_cast<float>(child)};
    (side ? n.upper1 : n.upper0) = vec4{box.upper.x, box.upper.y, box.upper.z, std::bit_cast<float>(count)};
  }
  void split(int node, int begin, int end) {
    vec3 lo = boxes_[std::size_t(order[std::size_t(begin)])].lower, hi = lo;
    for (int i = begin; i < end; ++i)
      for (int k = 0; k < 3; ++k) {
        const float x = boxes_[std::size_t(order[std::size_t(i)])].lower[k];
        lo[k] = std::min(lo[k], x), hi[k] = std::max(hi[k], x);
      }
    int axis = 0;
    for (int k = 1; k < 3; ++k)
      if (hi[k] - lo[k] > hi[axis] - lo[axis]) axis = k;
    std::sort(order.begin() + begin, order.begin() + end, [&](int a, int b) {
      const Box &p = boxes_[std::size_t(a)], &q = boxes_[std::size_t(b)];
      const float x = p.lower[axis] + p.upper[axis], y = q.lower[axis] + q.upper[axis];
      return x < y || (x == y && a < b);
    });
    // In a chain the deep child comes first in some nodes and second in others.
    const int middle = !chain_ ? (begin + end) / 2 : (end - begin) % 3 ? end - leaf_size_ : begin + leaf_size_;
    set_child(node, 0, begin, middle);
    set_child(node, 1, middle, end);
  }

  std::vector<Box> boxes_;
  int leaf_size_;
  bool chain_;
};

/// n boxes with centres in [-1, 1]^3 and sides up to `size`, some of them flat.
inline std::vector<Box> random_boxes(int n, float size, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> centre(-1, 1), side(0, size);
  std::vector<Box> boxes;
  for (int i = 0; i < n; ++i) {
    vec3 c{centre(engine), centre(engine), centre(engine)}, s{side(engine), side(engine), side(engine)};
    if (i % 7 == 0) s[i % 3] = 0;
    boxes.push_back({c - s * 0.5f, c + s * 0.5f});
  }
  return boxes;
}

}  // namespace weft::test
