// The walk of a TreeQuery. Internal to the library's queries.
#pragma once
#include <functional>

#include "../bvh_query.h"
#include "traverse.h"

namespace weft::detail {

/// A query that finds primitives one by one: the walk, and the leaves that it has reached.
class QueryWalk : public QueryState<Int> {
 public:
  /// Whether the query looks for the box of a child or of a primitive. For an empty one either answer will do.
  using Wants = std::function<Bool(const Vec3& lower, const Vec3& upper)>;
  /// Whether the query takes the primitive at a place in the leaves. `several`: its box is not the leaf's, for which
  /// the query has looked.
  using Takes = std::function<Bool(const Int& place, const Int& primitive, const Bool& several)>;

  /// \param takes  if none, the query takes the primitives whose boxes it looks for
  QueryWalk(const Var<BvhData>& tree, Loc loc, const BvhRoot& root, Wants wants, Takes takes = {});

  Bool next(Int& found, Loc loc) override;

 private:
  Bool finds(const Vec3& lower, const Vec3& upper) const;
  Bool takes_box(const Int& primitive, const Bool& several) const;

  const Var<BvhData> tree_;
  const Wants wants_;
  const Takes takes_;
  Walk walk_;
  LeafRange leaves_;
  Int at_;  ///< the next primitive of the leaves
};

/// Whether a box is not empty. An empty one goes from +infinity to -infinity, so that a query without bounds would
/// touch it.
inline Bool is_filled(const Vec3& lower, const Vec3& upper) { return lower.x <= upper.x; }

}  // namespace weft::detail
