// How a bounding volume hierarchy lies in memory: nodes of 64 bytes, and the arrays that kernels walk.
#pragma once
#include "../../array.h"

// Of their own namespace: what WEFT_STRUCT declares must not meet the user's by `using namespace weft`.
namespace weft::stored {

/// Both children's boxes in one node of 64 bytes, read as four wide loads.
///
/// The fourth components are integers, to be read by bitcast<int>(). Of child k, `lowerk.w` is its link: not negative,
/// the number of a node; negative, a leaf whose first place in BvhData::primitives is ~link. `upperk.w` is the number
/// of a leaf's primitives, 0 for a node. A child that is not there has link -1, 0 primitives and an empty box.
///
/// An empty box has lower = +infinity and upper = -infinity. Tests of boxes hold for them without a special case when
/// they ask for `lower <= x && x <= upper` of a finite x, and tests of rays when they choose the near side by the
/// direction's sign. A query that may be infinite asks for `lower <= upper` too.
struct BvhNode {
  vec4 lower0, upper0, lower1, upper1;
};
WEFT_STRUCT(BvhNode, lower0, upper0, lower1, upper1);
static_assert(sizeof(BvhNode) == 64);

/// What a kernel is given of a hierarchy: `Var<BvhData>` as a parameter takes a Bvh as the argument.
struct BvhData {
  /// detail::kBvhTag while the hierarchy lives, else 0. First, as in all structures that have handles: it tells them
  /// apart.
  unsigned tag = 0;
  /// Of primitives. (`primitives` has one element even if there is none.)
  int count = 0;
  /// Most primitives in a leaf.
  int leaf_size = 1;
  /// Node 0 is the root. At most one less than primitives, at least one. With leaves of several primitives some
  /// numbers name no node: nothing links to them.
  Array<BvhNode> nodes;
  /// The numbers of the primitives, leaf by leaf: leaf with link l and count c has places ~l to ~l + c - 1.
  Array<int> primitives;
  /// By node: 2 * parent + which child it is; -1 for the root, -2 where there is no node.
  Array<int> parents;
  /// The boxes by number of primitive. One that is no box, see Bvh, counts as empty.
  Array<vec3> lowers, uppers;
  /// By detail::kBvhDepth and kBvhIgnored.
  Array<unsigned> info;
  /// By place: the group of the primitive there, ascending; and at the first place of each group the name of the
  /// group's root, see BvhRoot. One element each, the second kBvhNothing, where there are no groups.
  Array<int> groups, group_roots;
};
WEFT_STRUCT(BvhData, tag, count, leaf_size, nodes, primitives, parents, lowers, uppers, info, groups, group_roots);
/// A launch is given the hierarchy by value. Internal. Errors: Error(invalid_argument) where the device holds another
/// one.
void weft_is_given(const BvhData& tree);

}  // namespace weft::stored

namespace weft {

using stored::BvhData;
using stored::BvhNode;

/// Names of roots, beside 2 * parent + which child: the whole tree, and nothing.
inline constexpr int kBvhWhole = -1;
inline constexpr int kBvhNothing = -2;

namespace detail {
/// What begins a structure of this kind in memory.
inline constexpr unsigned kBvhTag = 0x48564277u;

/// Places in BvhData::info: nodes on the longest way from the root down; primitives whose box is no box.
inline constexpr int kBvhDepth = 0, kBvhIgnored = 1;
}  // namespace detail

}  // namespace weft
