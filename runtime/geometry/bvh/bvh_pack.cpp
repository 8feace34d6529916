// Packs the primitives of a tree into leaves of several.
#include "../../../frontend/language/any_floats.h"
#include "../../algorithms/scan.h"
#include "../../array_create.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

// A subtree that may become a leaf: the thread of the node above it writes all that it becomes.
struct Subtree {
  Int first, count;  ///< least place, number of primitives
};
Subtree below(const Arr<const vec2i>& spans, const Int& link) {
  Subtree s{~link, 1};
  If (link >= 0) {
    Vec2i span = spans[link];
    s = {span.x, span.y & (kIsLeaf - 1)};
  }
  return s;
}

// Calls f with each small subtree that hangs from a larger one or from the root.
template <class F>
void each_small_subtree(const Var<BvhData>& bvh, const Arr<vec4>& halves, const Arr<const vec2i>& spans,
                        const Int& node, F f) {
  If ((Int(spans[node].y) & (kIsLeaf - 1)) > bvh.leaf_size || node == Int(bvh.info[kBvhRoot])) {
    for (int side = 0; side < 2; ++side) {
      Int child = node * 2 + side;
      const Subtree s = below(spans, link_of(halves, child));
      If (s.count <= bvh.leaf_size) {
        f(child, s);
      }
    }
  }
}

// Writes the number of primitives of each small subtree at its least place. The sums of these before each place then
// tell where its leaves begin in `primitives`: in the order of least places, whatever the order of the threads.
auto count_kernel() {
  return kernel("bvh_count_leaves", [](Var<BvhData> bvh, Arr<vec4> halves, Arr<const vec2i> spans, Arr<int> counts) {
    each_small_subtree(bvh, halves, spans, tid(), [&](const Int&, const Subtree& s) { counts[s.first] = s.count; });
  });
}

// Walks the small subtrees, of at most 8 primitives, in depth-first order. The first marked node on a way down becomes
// a leaf of all that is below: the link of its parent says so, and it and the nodes below it are unused from then on.
// Primitives in no marked node become leaves of one. No other thread looks into the subtree.
//
//   of 4:   node a (not marked) = {node b (marked) = {7, 5}, node c (marked) = {node d = {3, 9}, 6}}
//   from place 20: a stays, with leaf b = places 20 and 21 (7, 5) and leaf c = places 22 to 24 (3, 9, 6)
//
// The root stays a node: if it is marked, both sides become leaves.
auto pack_kernel() {
  return kernel("bvh_pack_leaves", [](Var<BvhData> bvh, Arr<vec4> halves, Arr<const vec2i> spans, Arr<const int> starts,
                                      Arr<const int> order) {
    const tracing::AnyFloats any;
    Int node = tid();
    auto stack = private_array<int>(8);
    each_small_subtree(bvh, halves, spans, node, [&](const Int& child, const Subtree& s) {
      Int at = starts[s.first], leaf_end = at, top = 1;
      const auto begin_leaf = [&](const Int& half, const Int& count) {
        halves[half * 2].w = bitcast<float>(~at);
        halves[half * 2 + 1].w = bitcast<float>(count);
        leaf_end = at + count;
      };
      Bool whole = (Int(spans[node].y) & (kIsLeaf - 1)) <= bvh.leaf_size && Int(spans[node].y) >= kIsLeaf;
      stack[0] = child;
      While (top > 0) {
        top -= 1;
        Int half = stack[top], next = link_of(halves, half);
        Bool outside = at >= leaf_end;
        If (next < 0) {
          If (outside) {
            begin_leaf(half, 1);
          }
          bvh.primitives[at] = order[~next];
          at += 1;
        }
        Else {
          Int span = spans[next].y;
          If (outside & (whole | (span >= kIsLeaf))) {
            begin_leaf(half, span & (kIsLeaf - 1));
          }
          If (at < leaf_end) {
            bvh.parents[next] = -2;
          }
          stack[top] = next * 2 + 1;
          stack[top + 1] = next * 2;
          top += 2;
        }
      }
    });
  });
}

}  // namespace

void pack_leaves(const BvhBuild& build) {
  static const auto count = count_kernel();
  static const auto pack = pack_kernel();
  const std::int64_t nodes = build.data.nodes.size();
  const Array<vec4> halves = halves_of(build.data.nodes);
  const Array<int> starts = zeros<int>(build.device(), build.count());
  launch(count, nodes, build.data, halves, build.spans, starts);
  exclusive_scan(starts, starts);
  launch(pack, nodes, build.data, halves, build.spans, starts, build.order);
}

}  // namespace weft::detail
