// Finishes a tree of any builder: makes its root node 0, and computes its boxes anew.
#include "../../../frontend/language/any_floats.h"
#include "../../core/view.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

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
      }  // if not, there was no node 0
      adopt(root, 0);
      // If the root was the parent of node 0, that parent is now node 0 itself.
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

// The thread of each node joins the boxes of the leaves among its children. Each child counts one when it is done (the
// node's own thread counts its leaves), and the thread that comes second finishes the node: it carries the whole node's
// box into its half of the parent and continues there.
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
          Int count = bitcast<int>(Float(halves[child * 2 + 1].w));
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

Array<vec4> halves_of(const Array<BvhNode>& nodes) { return Row<vec4>(nodes); }

Half load_half(const Arr<vec4>& halves, const Int& child) {
  Vec4 lower = halves[child * 2], upper = halves[child * 2 + 1];
  return {
      {Vec3(lower.x, lower.y, lower.z), Vec3(upper.x, upper.y, upper.z)}, bitcast<int>(lower.w), bitcast<int>(upper.w)};
}
void store_half(const Arr<vec4>& halves, const Int& child, const Half& half) {
  halves[child * 2] = Vec4(half.box.lower, bitcast<float>(half.link));
  halves[child * 2 + 1] = Vec4(half.box.upper, bitcast<float>(half.count));
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
