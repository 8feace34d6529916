// The implementation of TreeQuery. Internal to the library's queries.
#pragma once
#include <optional>

#include "../bvh_query.h"
#include "../structures/query_once.h"
#include "traverse.h"

namespace weft::detail {

/// A query that finds primitives one by one: the walk, and the leaves that it has reached.
class QueryWalk {
 public:
  QueryWalk(const Var<BvhData>& tree, Loc loc, const BvhRoot& root = {})
      : loc(loc), once(loc), tree_(tree), walk_(tree.nodes, tree.parents, root) {}
  virtual ~QueryWalk() = default;

  Bool next(Int& found);

  const Loc loc;
  QueryOnce once;
  std::optional<Block> loop;  ///< that of a range-for, while it is open
  Int found = -1;

 protected:
  /// Whether the query looks for the box of a child or of a primitive. For an empty one either answer will do.
  virtual Bool wants(const Vec3& lower, const Vec3& upper) const = 0;
  /// Whether the query takes the primitive at a place in the leaves. `several`: its box is not the leaf's, which
  /// wants() has seen.
  virtual Bool takes(const Int& place, const Int& primitive, const Bool& several) const;
  Bool finds(const Vec3& lower, const Vec3& upper) const;

  const Var<BvhData> tree_;

 private:
  Walk walk_;
  LeafRange leaves_;
  Int at_;  ///< the next primitive of the leaves
};

}  // namespace weft::detail
