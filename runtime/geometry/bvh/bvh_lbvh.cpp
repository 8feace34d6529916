// Builds hierarchies by common bits of keys: LBVH.
#include "../../../frontend/language/any_floats.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

// Source: Apetrei 2014. Sorted keys are cut between places where neighbours differ in the highest bit; node p stands
// for the cut between places p and p + 1, and its children are the ranges on both sides without a higher cut. One
// thread for each place climbs from its leaf: a range ends at the lower of the two cuts beside it, which is its parent.
// The thread leaves its box in its half of the parent and its far end in arrived[parent]. The first of the two threads
// that meet there ends; the second takes the far end of the first, and climbs on as the range of both. No thread waits.
// Places tell equal keys apart, so that the two cuts beside a range are never equal.
//
//   place    0    1    2    3
//   key     000  001  100  101     cuts: 0|1 at bit 0 (node 0), 1|2 at bit 2 (node 1), 2|3 at bit 0 (node 2)
//   tree    node 1 (root) = {node 0 = {0, 1}, node 2 = {2, 3}}
//
// Groups are told apart before keys, so that each group is one of these ranges.
//
// A range of at most leaf_size places of one group becomes a leaf, and leaves its node unused. Until a node's sibling
// has come, minus its size takes the place of its number of primitives.
//
// A single place has no cut: its thread writes the root alone.
//
// In one piece: one loop, whose steps share what the thread carries up.
template <class B>
auto lbvh_kernel(bool packs, bool grouped) {
  return kernel("bvh_lbvh", [packs, grouped](Var<BvhData> bvh, Arr<vec4> halves, Arr<int> arrived, Arr<const B> keys,
                                             Arr<vec2i> records, Int n) {
    const tracing::AnyFloats any;
    const tracing::AsWritten as_written;
    Int i = tid();
    Int first = i, last = i, size = 0;
    Half h{box_of(bvh.lowers, bvh.uppers, bvh.primitives[i]), ~i, 1};
    const Arr<int> groups = bvh.groups;
    Climb<B> climb({keys, groups, grouped, n}, first, last);
    While (last - first + 1 < n) {
      const Bool is_second = climb.is_second();
      const Int parent = select(is_second, first - 1, last);
      Int child = parent * 2 + Int(is_second);
      Bool is_node = h.link >= 0;
      store_half(halves, child, {h.box, h.link, select(is_node, -size, h.count)});
      fence();
      Int far_end = atomic_exchange(arrived[parent], 1 + select(is_second, last, first));
      If (far_end == 0) {
        Break();
      }
      fence();
      Half sibling = load_half(halves, child ^ 1);
      Bool sibling_is_node = sibling.link >= 0;
      const Int sibling_size = select(sibling_is_node, -sibling.count, 0);
      If (is_node) {
        NodeRecord::store_above(records, h.link, child, select(is_second, sibling_size, 0) + 1);
      }
      If (sibling_is_node) {
        NodeRecord::store_above(records, sibling.link, child ^ 1, select(is_second, 0, size) + 1);
      }
      size += sibling_size + 1;
      const Int leaves = select(is_node, 0, h.count) + select(sibling_is_node, 0, sibling.count);
      arrived[parent] = 0;
      first = select(is_second, far_end - 1, first);
      last = select(is_second, last, far_end - 1);
      climb.join(is_second, first, last);
      // The boxes are joined in the order of the sides: the minimum of zeros with different signs may be either.
      const TracedBox own = h.box;
      h.box = join(either(is_second, sibling.box, own), either(is_second, own, sibling.box));
      h.link = parent;
      h.count = 0;
      if (packs) {
        Bool is_leaf = (last - first < bvh.leaf_size) & (last - first + 1 < n);
        if (grouped) is_leaf &= groups[first] == groups[last];
        If (is_leaf) {
          NodeRecord::store_above(records, parent, -2, 0);
          h.link = ~first;
          h.count = last - first + 1;
          size = 0;
        }
      }
      If (h.link >= 0) {
        NodeRecord::store_below(records, parent, size, leaves);
      }
    }
    If (last - first + 1 == n) {
      If (n == 1) {
        store_half(halves, 0, h);
        store_half(halves, 1, {empty_box(), -1, 0});
        h.link = 0;
        NodeRecord::store_below(records, 0, 1, 1);
      }
      NodeRecord::store_above(records, h.link, -1, 0);
      bvh.info[kBvhRoot] = UInt(h.link);
    }
  });
}

template <class B>
void build_from(const BvhBuild& build, const Array<B>& keys) {
  static const decltype(lbvh_kernel<B>(false, false)) kernels[2][2] = {
      {lbvh_kernel<B>(false, false), lbvh_kernel<B>(false, true)},
      {lbvh_kernel<B>(true, false), lbvh_kernel<B>(true, true)}};
  launch(kernels[build.data.leaf_size > 1][build.grouped], build.count(), build.data, halves_of(build.data.nodes),
         build.arrived, keys, NodeRecord::halves_of(build.records), build.count());
}

}  // namespace

void build_lbvh(const BvhBuild& build) {
  if (build.fine_keys.is_null())
    build_from(build, build.keys);
  else
    build_from(build, build.fine_keys);
}

}  // namespace weft::detail
