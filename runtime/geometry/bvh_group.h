// Groups of a hierarchy's primitives, for queries of one group alone.
#pragma once
#include <optional>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/struct_var.h"
#include "bvh/bvh_node.h"

namespace weft {

/// The place in a hierarchy where a query begins: the whole tree, or the result of bvh_group_root().
///
/// A root is named after the place from which it hangs: 2 * parent + which child of it, whether a node or a leaf.
/// kBvhWhole is the whole tree, and kBvhNothing has nothing to find. Names are valid until the next build.
struct BvhRoot {
  BvhRoot() = default;
  BvhRoot(const Int& name) : name(name) {}
  std::optional<Int> name;  ///< none: the whole tree, at no cost
};

/// The root of the subtree with all primitives of a group (BvhOptions::groups) and no others; kBvhNothing for an empty
/// group, and in a hierarchy without groups.
///
///   Int mine = bvh_group_root(tree, world[i]);
///   for (auto k : bvh_query_aabb(tree, lower, upper, mine)) { ... }
///
/// \param bvh  an argument of the kernel, or a handle (Bvh::id())
/// Gradient: none.
/// Cost: a binary search among the primitives: log2(N) + 2 reads.
Int bvh_group_root(const Var<BvhData>& bvh, In<int> group, Loc loc = Loc::here());
Int bvh_group_root(In<std::uint64_t> bvh, In<int> group, Loc loc = Loc::here());

}  // namespace weft
