// The memory layout of a bounding volume hierarchy: nodes of 64 bytes, and the arrays that kernels walk.
#pragma once
#include "../../array.h"
#include "../../detail/given_structures.h"

// This namespace keeps the names that WEFT_STRUCT declares apart from those of users with `using namespace weft`.
namespace weft::stored {

/// The boxes of both children in one node of 64 bytes, read as four wide loads.
///
/// The fourth components are integers, to be read by bitcast<int>(). `lowerk.w` is the link of child k: the number of a
/// node if it is not negative, else a leaf whose first place in BvhData::primitives is ~link. `upperk.w` is the number
/// of a leaf's primitives, 0 for a node. A missing child has link -1, 0 primitives and an empty box.
///
/// An empty box has lower = +infinity and upper = -infinity. Box tests of a finite x need no special case for it if
/// they ask for `lower <= x && x <= upper`, and neither do ray tests that choose the near side by the direction's sign.
/// A query that may be infinite asks for `lower <= upper` too.
struct BvhNode {
  vec4 lower0, upper0, lower1, upper1;
};
WEFT_STRUCT(BvhNode, lower0, upper0, lower1, upper1);
static_assert(sizeof(BvhNode) == 64);

/// The data of a hierarchy in a kernel: a parameter `Var<BvhData>` takes a Bvh as its argument.
struct BvhData {
  /// detail::kBvhTag while the hierarchy lives, else 0. All structures that have handles begin with a tag, which tells
  /// them apart.
  unsigned tag = 0;
  /// The number of primitives. (`primitives` has one element even if there is none.)
  int count = 0;
  /// The most primitives in a leaf.
  int leaf_size = 1;
  /// The nodes, depth first: the root is node 0, and a first child follows its parent. There are at most one fewer than
  /// primitives, and at least one. With leaves of several primitives the last numbers name no node.
  Array<BvhNode> nodes;
  /// The numbers of the primitives, leaf by leaf: leaf with link l and count c has places ~l to ~l + c - 1.
  Array<int> primitives;
  /// The parent of each node: 2 * parent + which child it is; -1 for the root, -2 for a number that names no node.
  Array<int> parents;
  /// The boxes by number of primitive. Bounds that are no box, see Bvh, count as an empty one.
  Array<vec3> lowers, uppers;
  /// The words at detail::kBvhDepth and kBvhIgnored.
  Array<unsigned> info;
  /// The groups of all primitives, ascending; and where each group begins there, the name of its root, see BvhRoot.
  /// Without groups, one element each, and the second is kBvhNothing.
  Array<int> groups, group_roots;
};
WEFT_STRUCT(BvhData, tag, count, leaf_size, nodes, primitives, parents, lowers, uppers, info, groups, group_roots);
/// What a launch that is given the hierarchy by value checks: that the device holds it. Internal.
detail::StructureUse weft_structure_of(const BvhData& tree);

}  // namespace weft::stored

namespace weft {

using stored::BvhData;
using stored::BvhNode;

/// Names of roots beside 2 * parent + which child: the whole tree, and nothing.
inline constexpr int kBvhWhole = -1;
inline constexpr int kBvhNothing = -2;

namespace detail {
/// The first word of a structure of this kind in memory.
inline constexpr unsigned kBvhTag = 0x48564277u;

/// Places in BvhData::info: nodes on the longest way down from the root; primitives whose bounds are no box.
inline constexpr int kBvhDepth = 0, kBvhIgnored = 1;
}  // namespace detail

}  // namespace weft
