// Computes the boxes of a tree anew, and reads and writes halves of its nodes.
#include "../../../frontend/language/any_floats.h"
#include "../../core/view.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

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

void refit_boxes(const BvhData& data, const Array<int>& arrived) {
  static const auto k = refit_kernel();
  launch(k, data.nodes.shape(0), data, halves_of(data.nodes), arrived);
}

}  // namespace weft::detail
