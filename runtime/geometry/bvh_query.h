// Queries on hierarchies of boxes, in kernels: the boxes that touch a box, a sphere or a capsule, or that a ray enters.
#pragma once
#include <optional>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/control.h"
#include "../../frontend/language/struct_var.h"
#include "structures/handle.h"
#include "structures/query_loop.h"

namespace weft {

/// The results of a query, one by one, in an order that a rebuild may change. A kernel goes through them in one of two
/// ways:
///
///   for (auto i : bvh_query_aabb(tree, lower, upper)) { sum += weight[i]; }
///
///   auto query = bvh_query_aabb(tree, lower, upper);
///   Int i = -1;
///   While (query.next(i)) { sum += weight[i]; }
///
/// Both are loops of the kernel: Break(), Continue() and Return() work there as in others. Each query has a state of
/// its own, so that any number of queries may be open at once, inside one another too. A query can be gone through
/// once.
/// Gradient: none of the results; values that the loop computes with them have one, as in any loop.
using TreeQuery = detail::QueryLoop<Int>;

/// The hierarchy of a query: an argument of the kernel, or a handle (Bvh::id(), see structures/handle.h).
class BvhInKernel {
 public:
  BvhInKernel(const Var<BvhData>& data) : data(data) {}
  BvhInKernel(const UInt64& id, Loc loc = Loc::here()) : data(bvh_at(id, loc)) {}
  Var<BvhData> data;
};

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
/// Gradient: none.
/// Cost: a binary search among the primitives: log2(N) + 2 reads.
Int bvh_group_root(const BvhInKernel& bvh, In<int> group, Loc loc = Loc::here());

/// Finds the numbers of all boxes that share a point with the box [lower, upper]; touching counts. A box with lower >
/// upper along an axis, or a NaN, shares none.
/// \param root  where to look: everywhere, or in a subtree of bvh_group_root(); the same in the other queries
/// Source: the walk of runtime/geometry/bvh/traverse.h.
TreeQuery bvh_query_aabb(const BvhInKernel& bvh, In<vec3> lower, In<vec3> upper, const BvhRoot& root = {},
                         Loc loc = Loc::here());

/// Finds the numbers of all boxes that the ray origin + t direction enters with t < max_dist; a ray that begins inside
/// a box enters it at t = 0. Touching counts. Rounding never loses a box, but may find one that the ray misses by
/// 2.5e-6 of the distance from the furthest corner of all. Whether a ray enters before max_dist is decided exactly: a
/// box that is entered at max_dist itself is not found.
/// \param max_dist  in multiples of the direction's length
TreeQuery bvh_query_ray(const BvhInKernel& bvh, In<vec3> origin, In<vec3> direction,
                        In<float> max_dist = std::numeric_limits<float>::infinity(), const BvhRoot& root = {},
                        Loc loc = Loc::here());

/// Finds the numbers of all boxes with a point no further than `radius` from `center`. A negative radius finds none.
TreeQuery bvh_query_sphere(const BvhInKernel& bvh, In<vec3> center, In<float> radius, const BvhRoot& root = {},
                           Loc loc = Loc::here());

/// Finds the numbers of all boxes with a point no further than `radius` from the segment from a to b; a == b is a
/// sphere.
TreeQuery bvh_query_capsule(const BvhInKernel& bvh, In<vec3> a, In<vec3> b, In<float> radius, const BvhRoot& root = {},
                            Loc loc = Loc::here());

}  // namespace weft
