// What stands behind a TreeQuery. Internal to the library's queries.
#pragma once
#include <optional>

#include "../bvh_query.h"
#include "../structures/query_once.h"
#include "traverse.h"

namespace weft::detail {

/// A query that finds primitives one by one: the walk, and the leaves at hand.
class QueryWalk {
 public:
  QueryWalk(const Var<BvhData>& tree, Loc loc, const BvhRoot& root = {})
      : loc(loc), once(loc), tree_(tree), walk_(tree.nodes, tree.parents, root) {}
  virtual ~QueryWalk() = default;

  Bool next(Int& found);

  const Loc loc;
  QueryOnce once;
  std::optional<Block> loop;  ///< of a range-for, while it is open
  Int found = -1;

 protected:
  /// Is the box of a child, or of a primitive, one that the query looks for? Of an empty one it does not matter.
  virtual Bool wants(const Vec3& lower, const Vec3& upper) const = 0;
  /// Of the primitive at a place in the leaves. `several`: its box is not the leaf's, which has been looked at.
  virtual Bool takes(const Int& place, const Int& primitive, const Bool& several) const;
  Bool finds(const Vec3& lower, const Vec3& upper) const;

  const Var<BvhData> tree_;

 private:
  Walk walk_;
  LeafRange leaves_;
  Int at_;  ///< which primitive of the leaves is next
};

}  // namespace weft::detail
