// Names the links of a hierarchy from which its groups hang.
#include "../../../frontend/language/control.h"
#include "../../../frontend/library/search.h"
#include "../bvh_query.h"
#include "bvh_build.h"

namespace weft {

namespace detail {

namespace {

// A group of some primitive below a link. A node has the number of a cut, whichever builder made it, so the place after
// that cut is below the node's second child. (If the tree is a single primitive, one link is -1, which means place 0.)
Int group_below(const Arr<int>& groups, const Int& link) { return groups[select(link < 0, ~link, link + 1)]; }

// A group hangs from the node that has it on one side and others on the other side. A node is within a group if both
// its children contain primitives of one group: children of a node that joins groups never do.
auto name_kernel() {
  return kernel("bvh_name_group_roots", [](Var<BvhData> bvh, Arr<const vec4> halves, Arr<const vec4i> records, Int n) {
    Int node = tid();
    const Arr<int> groups = bvh.groups;
    If (records[node].x >= -1) {
      Int links[2], below[2];
      for (int side = 0; side < 2; ++side) {
        links[side] = link_of(halves, node * 2 + side);
        below[side] = group_below(groups, links[side]);
      }
      If (below[0] != below[1]) {
        for (int side = 0; side < 2; ++side) {
          Bool within = links[side] < 0;
          If (!within) {
            within = group_below(groups, link_of(halves, links[side] * 2)) ==
                     group_below(groups, link_of(halves, links[side] * 2 + 1));
          }
          If (within) {
            bvh.group_roots[lower_bound(groups, 0, n, below[side])] = node * 2 + side;
          }
        }
      }
      Else {
        If (node == Int(bvh.info[kBvhRoot])) {
          bvh.group_roots[0] = kBvhWhole;
        }
      }
    }
  });
}

}  // namespace

void name_group_roots(const BvhBuild& build) {
  static const auto k = name_kernel();
  launch(k, build.data.nodes.shape(0), build.data, halves_of(build.data.nodes), build.records, build.count());
}

}  // namespace detail

Int bvh_group_root(const BvhInKernel& bvh, In<int> group, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Var<BvhData>& tree = bvh.data;
  const Int wanted(group.id, detail::FromId{}), all = tree.groups.shape(0);
  const Int first = lower_bound(tree.groups, 0, all, wanted);
  Int root = kBvhNothing;
  If (first < all) {
    If (tree.groups[first] == wanted) {
      root = tree.group_roots[first];
    }
  }
  return root;
}

}  // namespace weft
