// Leaves of several primitives in a tree of single ones.
#include "../../frontend/edsl/any_floats.h"
#include "../algorithms/scan.h"
#include "../array_create.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

struct Place {
  Int first, count;
};

// The least place and the number of primitives below a link.
Place below(const Arr<const vec2i>& spans, const Int& link) {
  Place p{~link, 1};
  If (link >= 0) {
    Vec2i span = spans[link];
    p = {span.x, span.y};
  }
  return p;
}

Bool is_kept(const Var<BvhData>& bvh, const Arr<const vec2i>& spans, const Int& node) {
  return Int(spans[node].y) > bvh.leaf_size || node == Int(bvh.info[kBvhRoot]);
}

Int link_of(const Arr<BvhNode>& nodes, const Int& node, int side) {
  return bitcast<int>(Float(side ? nodes[node].lower1.w : nodes[node].lower0.w));
}

// Every leaf to be says, at its least place, how many primitives it takes. Their sums before each place are then where
// leaves begin in `primitives`: in the order of their least places, whatever the order of the threads.
auto count_kernel() {
  return kernel("bvh_count_leaves", [](Var<BvhData> bvh, Arr<const vec2i> spans, Arr<int> counts) {
    Int node = tid();
    If (is_kept(bvh, spans, node)) {
      for (int side = 0; side < 2; ++side) {
        const Place p = below(spans, link_of(bvh.nodes, node, side));
        If (p.count <= bvh.leaf_size) {
          counts[p.first] = p.count;
        }
      }
    }
  });
}

// Walks the subtrees that become leaves, of no more than 8 primitives. Their nodes are written by nobody meanwhile.
auto pack_kernel() {
  return kernel("bvh_pack_leaves",
                [](Var<BvhData> bvh, Arr<const vec2i> spans, Arr<const int> starts, Arr<const int> order) {
                  const tracing::AnyFloats any;
                  Int node = tid();
                  auto stack = private_array<int>(8);
                  If (is_kept(bvh, spans, node)) {
                    for (int side = 0; side < 2; ++side) {
                      Int link = link_of(bvh.nodes, node, side);
                      const Place p = below(spans, link);
                      If (p.count <= bvh.leaf_size) {
                        Int start = starts[p.first], at = start, top = 1;
                        stack[0] = link;
                        While (top > 0) {
                          top -= 1;
                          Int next = stack[top];
                          If (next < 0) {
                            bvh.primitives[at] = order[~next];
                            at += 1;
                          }
                          Else {
                            bvh.parents[next] = -2;
                            stack[top] = link_of(bvh.nodes, next, 1);
                            stack[top + 1] = link_of(bvh.nodes, next, 0);
                            top += 2;
                          }
                        }
                        Float new_link = bitcast<float>(~start), count = bitcast<float>(p.count);
                        if (side == 0) {
                          bvh.nodes[node].lower0.w = new_link;
                          bvh.nodes[node].upper0.w = count;
                        } else {
                          bvh.nodes[node].lower1.w = new_link;
                          bvh.nodes[node].upper1.w = count;
                        }
                      }
                    }
                  }
                });
}

}  // namespace

void pack_leaves(const BvhBuild& build) {
  static const auto count = count_kernel();
  static const auto pack = pack_kernel();
  const std::int64_t nodes = build.data.nodes.size();
  const Array<int> starts = zeros<int>(build.device(), build.count());
  launch(count, nodes, build.data, build.spans, starts);
  exclusive_scan(starts, starts);
  launch(pack, nodes, build.data, build.spans, starts, build.order);
}

}  // namespace weft::detail
