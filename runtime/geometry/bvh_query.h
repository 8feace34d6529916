// Queries on hierarchies of boxes, in kernels: which boxes touch a box, a sphere or a capsule, which a ray meets.
#pragma once
#include <memory>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/control.h"
#include "../../frontend/language/struct_var.h"
#include "bvh_group.h"
#include "structures/handle.h"

namespace weft {

namespace detail {
class QueryWalk;
}

/// What a query finds, one by one; in no order that would be the same after a rebuild. Two ways to go through it:
///
///   for (auto i : bvh_query_aabb(tree, lower, upper)) { sum += weight[i]; }
///
///   auto query = bvh_query_aabb(tree, lower, upper);
///   Int i = -1;
///   While (query.next(i)) { sum += weight[i]; }
///
/// Both are loops of the kernel: Break(), Continue() and Return() do there what they do in others. Each query has a
/// state of its own, so that any number of them may be open at once, inside one another too. A query is gone through
/// once.
/// Gradient: none of what is found; what the loop computes with it has one as in any loop.
class TreeQuery {
 public:
  explicit TreeQuery(std::unique_ptr<detail::QueryWalk> walk);
  TreeQuery(TreeQuery&&) noexcept;
  ~TreeQuery();

  /// Finds the next one: `found` is its number and the result true; at the end `found` stays as it is.
  Bool next(Int& found, Loc loc = Loc::here());

  struct End {};
  struct Iterator {
    TreeQuery* query;
    Int operator*() const { return query->open(); }
    void operator++() { query->close(); }
    bool operator!=(End) const { return query->fresh(); }
  };
  /// Errors: Error(invalid_kernel) for a second loop over the same query, and for one in a loop of the kernel around
  /// which the query was made.
  Iterator begin();
  End end() { return {}; }

 private:
  Int open();
  void close();
  bool fresh() const;

  std::unique_ptr<detail::QueryWalk> walk_;
};

/// The hierarchy that a query is about: an argument of the kernel, or a handle (Bvh::id(), see handle.h).
class BvhInKernel {
 public:
  BvhInKernel(const Var<BvhData>& data) : data(data) {}
  BvhInKernel(const UInt64& id, Loc loc = Loc::here()) : data(bvh_at(id, loc)) {}
  Var<BvhData> data;
};

/// The numbers of all boxes that share a point with the box [lower, upper]; touching counts. A box with lower > upper
/// along an axis, or a NaN, shares none.
/// \param root  where to look: everywhere, or below what bvh_group_root() has given; so in the other queries
/// Source: the walk of runtime/geometry/bvh/traverse.h.
TreeQuery bvh_query_aabb(const BvhInKernel& bvh, In<vec3> lower, In<vec3> upper, const BvhRoot& root = {},
                         Loc loc = Loc::here());

/// The numbers of all boxes that the ray origin + t direction enters with t < max_dist; it is inside from t = 0 where
/// it begins inside. Touching counts; rounding never loses a box, but may find one that the ray misses by 2.5e-6 of the
/// distance from the furthest corner of all. Whether it is entered before max_dist is decided exactly: a box that is
/// entered at max_dist itself is not found.
/// \param max_dist  in multiples of the direction's length
TreeQuery bvh_query_ray(const BvhInKernel& bvh, In<vec3> origin, In<vec3> direction,
                        In<float> max_dist = std::numeric_limits<float>::infinity(), const BvhRoot& root = {},
                        Loc loc = Loc::here());

/// The numbers of all boxes with a point no further than `radius` from `center`. A negative radius finds none.
TreeQuery bvh_query_sphere(const BvhInKernel& bvh, In<vec3> center, In<float> radius, const BvhRoot& root = {},
                           Loc loc = Loc::here());

/// The numbers of all boxes with a point no further than `radius` from the segment from a to b; a == b is a sphere.
TreeQuery bvh_query_capsule(const BvhInKernel& bvh, In<vec3> a, In<vec3> b, In<float> radius, const BvhRoot& root = {},
                            Loc loc = Loc::here());

}  // namespace weft
