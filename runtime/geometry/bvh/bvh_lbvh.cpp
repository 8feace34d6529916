// Hierarchies by common bits of keys, and what is done to a finished tree: its root's number, new bounds.
#include "../../../frontend/language/any_floats.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

// The nodes of a tree as vectors.
class Halves : public Array<vec4> {
 public:
  explicit Halves(const Array<BvhNode>& nodes) {
    storage_ = nodes.storage();
    address_ = nodes.address();
    shape_[0] = 4 * nodes.size();
    stride_[0] = sizeof(vec4);
  }
};

Int link_of(const Arr<vec4>& halves, const Int& child) { return bitcast<int>(Float(halves[child * 2].w)); }
Int count_of(const Arr<vec4>& halves, const Int& child) { return bitcast<int>(Float(halves[child * 2 + 1].w)); }

// Bottom-up, after Apetrei 2014. The places of sorted keys are cut where neighbours differ in the highest bit; node p
// stands for the cut between places p and p + 1, its children are the ranges on both sides that have no higher cut.
// A thread for each place climbs from its leaf: a range ends at the lower one of the cuts beside it, which is its
// parent. It leaves its box in its half of the parent and its far end in arrived[parent]. The first of two that meet
// there leaves; the second takes the far end of the first, and climbs on as the range of both. Nobody waits. Equal keys
// are told apart by their places, so that no two cuts beside one range are equal.
//
//   place    0    1    2    3
//   key     000  001  100  101     cuts: 0|1 at bit 0 (node 0), 1|2 at bit 2 (node 1), 2|3 at bit 0 (node 2)
//   tree    node 1 (root) = {node 0 = {0, 1}, node 2 = {2, 3}}
//
// Groups are told apart before keys, so that each is one of the ranges that come about.
//
// A range of no more than leaf_size places of one group becomes a leaf, and its node none. The height of a node stands
// in place of its number of primitives until its sibling has come.
//
// One place has no cut: its thread writes the root alone.
template <class B>
auto lbvh_kernel(bool packs, bool grouped) {
  return kernel("bvh_lbvh",
                [packs, grouped](Var<BvhData> bvh, Arr<vec4> halves, Arr<int> arrived, Arr<const B> keys, Int n) {
                  const tracing::AnyFloats any;
                  Int i = tid();
                  Int first = i, last = i, height = 0;
                  Half h{box_of(bvh.lowers, bvh.uppers, bvh.primitives[i]), ~i, 1};
                  const Arr<int> groups = bvh.groups;
                  Climb<B> climb({keys, groups, grouped, n}, first, last);
                  While (last - first + 1 < n) {
                    const Bool is_second = climb.is_second();
                    const Int parent = select(is_second, first - 1, last);
                    Int child = parent * 2 + Int(is_second);
                    Bool is_node = h.link >= 0;
                    If (is_node) {
                      bvh.parents[h.link] = child;
                    }
                    store_half(halves, child, {h.box, h.link, select(is_node, -height, h.count)});
                    fence();
                    Int far_end = atomic_exchange(arrived[parent], 1 + select(is_second, last, first));
                    If (far_end == 0) {
                      Break();
                    }
                    fence();
                    Half sibling = load_half(halves, child ^ 1);
                    Bool sibling_is_node = sibling.link >= 0;
                    height = max(height, select(sibling_is_node, -sibling.count, 0)) + 1;
                    // Heights have done their duty.
                    If (is_node) {
                      halves[child * 2 + 1].w = 0.f;
                    }
                    If (sibling_is_node) {
                      halves[(child ^ 1) * 2 + 1].w = 0.f;
                    }
                    arrived[parent] = 0;
                    first = select(is_second, far_end - 1, first);
                    last = select(is_second, last, far_end - 1);
                    climb.join(is_second, first, last);
                    // In the order of the sides: of zeros with different signs the minimum is either.
                    const TracedBox own = h.box;
                    h.box = join(either(is_second, sibling.box, own), either(is_second, own, sibling.box));
                    h.link = parent;
                    h.count = 0;
                    if (packs) {
                      Bool is_leaf = (last - first < bvh.leaf_size) & (last - first + 1 < n);
                      if (grouped) is_leaf &= groups[first] == groups[last];
                      If (is_leaf) {
                        bvh.parents[parent] = -2;
                        h.link = ~first;
                        h.count = last - first + 1;
                        height = 0;
                      }
                    }
                  }
                  If (last - first + 1 == n) {
                    If (n == 1) {
                      store_half(halves, 0, h);
                      store_half(halves, 1, {empty_box(), -1, 0});
                      h.link = 0;
                    }
                    bvh.parents[h.link] = -1;
                    bvh.info[kBvhRoot] = UInt(h.link);
                    bvh.info[kBvhDepth] = UInt(max(height, 1));
                  }
                });
}

template <class B>
void build_from(const BvhBuild& build, const Array<B>& keys) {
  static const decltype(lbvh_kernel<B>(false, false)) kernels[2][2] = {
      {lbvh_kernel<B>(false, false), lbvh_kernel<B>(false, true)},
      {lbvh_kernel<B>(true, false), lbvh_kernel<B>(true, true)}};
  launch(kernels[build.data.leaf_size > 1][build.grouped], build.count(), build.data, halves_of(build.data.nodes),
         build.arrived, keys, build.count());
}

// Exchanges the numbers of node 0 and the root, r: their contents, the link to node 0 (nothing links to the root), and
// what their children and the tree say of their parents.
auto move_root_kernel() {
  return kernel("bvh_move_root", [](Var<BvhData> bvh) {
    const tracing::AnyFloats any;
    Int r = Int(bvh.info[kBvhRoot]);
    If (r != 0) {
      Var<BvhNode> root = bvh.nodes[r], other = bvh.nodes[0];
      Int up = bvh.parents[0];
      bvh.nodes[0] = root;
      bvh.nodes[r] = other;
      const auto adopt = [&](const Var<BvhNode>& node, const Int& number) {
        Int links[] = {bitcast<int>(node.lower0.w), bitcast<int>(node.lower1.w)};
        for (int side = 0; side < 2; ++side)
          If (links[side] >= 0) {
            bvh.parents[links[side]] = number * 2 + side;
          }
      };
      If (up >= 0) {
        adopt(other, r);
      }  // else there was no node 0
      adopt(root, 0);
      // Where the root was the parent of node 0 it now is node 0 itself.
      If (up >= 0) {
        Int parent = select(up / 2 == r, 0, up / 2);
        If (up % 2 == 0) {
          bvh.nodes[parent].lower0.w = bitcast<float>(r);
        }
        Else { bvh.nodes[parent].lower1.w = bitcast<float>(r); }
        bvh.parents[r] = parent * 2 + up % 2;
      }
      Else { bvh.parents[r] = -2; }
      bvh.parents[0] = -1;
      bvh.info[kBvhRoot] = 0u;
    }
  });
}

// A thread for each node takes up the boxes of the leaves among its children. A node is finished by whoever comes
// second: of the two children each counts one, leaves by the node's own thread. That one carries the box of the whole
// node into its half of the parent and goes on there.
auto refit_kernel() {
  return kernel("bvh_refit", [](Var<BvhData> bvh, Arr<vec4> halves, Arr<int> arrived) {
    const tracing::AnyFloats any;
    Int node = tid();
    Int arrivals = 0;
    If (bvh.parents[node] >= -1) {
      for (int side = 0; side < 2; ++side) {
        Int child = node * 2 + side;
        Int link = link_of(halves, child);
        If (link < 0) {
          Int count = count_of(halves, child);
          TracedBox box = empty_box();
          for (auto k : range(count)) box = join(box, box_of(bvh.lowers, bvh.uppers, bvh.primitives[~link + k]));
          store_half(halves, child, {box, link, count});
          arrivals += 1;
        }
      }
    }
    While (arrivals > 0) {
      fence();
      If (atomic_add(arrived[node], arrivals) + arrivals < 2) {
        Break();
      }
      fence();
      arrived[node] = 0;
      Int child = bvh.parents[node];
      If (child < 0) {
        Break();
      }
      Half a = load_half(halves, node * 2), b = load_half(halves, node * 2 + 1);
      store_half(halves, child, {join(a.box, b.box), node, 0});
      node = child >> 1;
      arrivals = 1;
    }
  });
}

}  // namespace

Array<vec4> halves_of(const Array<BvhNode>& nodes) { return Halves(nodes); }

Half load_half(const Arr<vec4>& halves, const Int& child) {
  Vec4 lower = halves[child * 2], upper = halves[child * 2 + 1];
  return {
      {Vec3(lower.x, lower.y, lower.z), Vec3(upper.x, upper.y, upper.z)}, bitcast<int>(lower.w), bitcast<int>(upper.w)};
}
void store_half(const Arr<vec4>& halves, const Int& child, const Half& half) {
  halves[child * 2] = Vec4(half.box.lower, bitcast<float>(half.link));
  halves[child * 2 + 1] = Vec4(half.box.upper, bitcast<float>(half.count));
}

void build_lbvh(const BvhBuild& build) {
  if (build.fine_keys.is_null())
    build_from(build, build.keys);
  else
    build_from(build, build.fine_keys);
}

void move_root(const BvhBuild& build) {
  static const auto k = move_root_kernel();
  launch(k, 1, build.data);
}

void refit_boxes(const BvhData& data, const Array<int>& arrived) {
  static const auto k = refit_kernel();
  launch(k, data.nodes.shape(0), data, halves_of(data.nodes), arrived);
}

}  // namespace weft::detail
