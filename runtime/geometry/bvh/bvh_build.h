// Declares the passes that build a hierarchy, and what their kernels share. Internal to the runtime.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/library/vector.h"
#include "../bvh.h"
#include "curve.h"

namespace weft::detail {

/// A box in a kernel.
struct TracedBox {
  Vec3 lower, upper;
};
/// The box of a primitive; empty if its bounds are no box, see Bvh.
TracedBox box_of(const Arr<vec3>& lowers, const Arr<vec3>& uppers, const Int& primitive);
TracedBox empty_box();
/// The smaller and the larger of two vectors without NaNs, by component: one instruction, where min() and max() have to
/// check for NaNs.
inline Vec3 lesser(const Vec3& a, const Vec3& b) {
  return Vec3(select(a.x < b.x, a.x, b.x), select(a.y < b.y, a.y, b.y), select(a.z < b.z, a.z, b.z));
}
inline Vec3 greater_of(const Vec3& a, const Vec3& b) {
  return Vec3(select(a.x > b.x, a.x, b.x), select(a.y > b.y, a.y, b.y), select(a.z > b.z, a.z, b.z));
}
/// a where `first` holds, else b.
inline TracedBox either(const Bool& first, const TracedBox& a, const TracedBox& b) {
  return {select(first, a.lower, b.lower), select(first, a.upper, b.upper)};
}
inline TracedBox join(const TracedBox& a, const TracedBox& b) {
  return {lesser(a.lower, b.lower), greater_of(a.upper, b.upper)};
}

/// Half of a node: the box of one child, its link and its number of primitives.
struct Half {
  TracedBox box;
  Int link, count;
};
/// The nodes as vectors, so that both children are reached by the same code: threads that take different sides would
/// run the two paths through the fields of BvhNode one after the other. For kernels that take no other view of the
/// nodes.
/// \return  (4 * nodes) child `side` of a node has vectors 4 * node + 2 * side and the next one
Array<vec4> halves_of(const Array<BvhNode>& nodes);
/// \param child  2 * node + side
template <class T>
Int link_of(const Arr<T>& halves, const Int& child) {
  return bitcast<int>(Float(halves[child * 2].w));
}
Half load_half(const Arr<vec4>& halves, const Int& child);
void store_half(const Arr<vec4>& halves, const Int& child, const Half& half);

/// Further places in BvhData::info, for builds: the builder's number of the root; six words for the bounds of the
/// boxes' centres.
inline constexpr int kBvhRoot = 2, kBvhBounds = 3, kBvhInfos = kBvhBounds + kCurveBounds;

/// What a builder says of a node, for lay_out(). Of a number that names no node it says the parent alone, -2.
struct NodeRecord {
  Int parent;  ///< as in BvhData::parents
  /// How far the node's number is to be from its parent's: 1, and for a second child as many more as nodes stay below
  /// the first one.
  Int step;
  /// The number of nodes below it, itself included, that stay nodes; or if it becomes a leaf of several primitives,
  /// their number, negative.
  Int size;
  Int leaves;  ///< the primitives of those of its children that are leaves, or become leaves

  static NodeRecord load(const Arr<const vec4i>& records, const Int& node) {
    const Vec4i r = records[node];
    return {r.x, r.y, r.z, r.w};
  }
  /// Records by halves: builders know the first one when the node gets a parent, the second when it gets its children.
  static Array<vec2i> halves_of(const Array<vec4i>& records);
  static void store_above(const Arr<vec2i>& halves, const Int& node, const Int& parent, const Int& step) {
    halves[node * 2] = Vec2i(parent, step);
  }
  static void store_below(const Arr<vec2i>& halves, const Int& node, const Int& size, const Int& leaves) {
    halves[node * 2 + 1] = Vec2i(size, leaves);
  }
};

/// A build in progress: the tree with its builder's own nodes and the primitives along the curve, and the arrays that
/// only the build needs. The tree's parents are not written, see NodeRecord.
struct BvhBuild {
  const BvhData& data;
  Array<int> arrived;  ///< by node; zeros before and after each pass
  bool grouped;        ///< data.groups takes precedence over the keys
  /// Sorted along the curve; one of the two is null.
  Array<unsigned> keys;
  Array<std::uint64_t> fine_keys;
  Array<vec4i> records;  ///< by node, see NodeRecord

  Device device() const { return data.info.device(); }
  std::int64_t count() const { return data.count; }
};

/// How high the cut between two neighbouring places is: the first bit in which they differ, in their groups, then in
/// their keys, then in the places themselves. The two cuts beside a range are never equal.
template <class B>
struct Cut {
  bool grouped;
  UInt groups;  ///< bits that differ; read only if `grouped`
  Var<B> bits;  ///< bits in which keys differ, plus the highest bit, which no key has; for equal keys, of places
  Bool operator<(const Cut& o) const {
    const Bool below = bits < o.bits;
    return grouped ? (groups < o.groups) | ((groups == o.groups) & below) : below;
  }
};
template <class B>
Cut<B> either(const Bool& first, const Cut<B>& a, const Cut<B>& b) {
  const Var<B> bits = select(first, a.bits, b.bits);
  if (!a.grouped) return {false, a.groups, bits};
  return {true, select(first, a.groups, b.groups), bits};
}

/// The cuts of sorted keys.
template <class B>
struct Cuts {
  const Arr<const B>& keys;
  const Arr<int>& groups;  ///< read only if `grouped`
  bool grouped;
  const Int& n;

  /// The key of a place, which is clamped to those that exist.
  Var<B> key(const Int& place) const { return keys[clamp(place, 0, n - 1)]; }
  /// The cut between a place and the next one, whose keys are known. After the last place, and before the first one
  /// (-1), it is the highest. Threads beyond the last place may call this, too.
  Cut<B> between(const Int& place, const Var<B>& key, const Int& next, const Var<B>& next_key) const {
    const Bool inside = (place >= 0) & (next < n);
    const Var<B> differ = key ^ next_key;
    const Var<B> bits = select(differ != B(0), differ | B(B(1) << (8 * sizeof(B) - 1)), Var<B>(UInt(place ^ next)));
    Cut<B> cut{grouped, UInt(0u), select(inside, bits, B(~B(0)))};
    if (grouped) {
      const Int a = clamp(place, 0, n - 1), b = clamp(next, 0, n - 1);
      cut.groups = select(inside, UInt(groups[a] ^ groups[b]), UInt(~0u));
    }
    return cut;
  }
  Cut<B> behind(const Int& place) const { return between(place, key(place), place + 1, key(place + 1)); }
};

/// A range of places that climbs the tree by the lower of the two cuts beside it. The other cut stays as the range
/// grows.
template <class B>
class Climb {
 public:
  Climb(const Cuts<B>& cuts, const Int& first, const Int& last)
      : cuts_(cuts), left_(cuts.behind(first - 1)), right_(cuts.behind(last)) {}
  /// Whether the range follows its lower cut, which makes it the second child of its parent.
  Bool is_second() const { return left_ < right_; }
  /// Joins the range with its sibling: it becomes `first` to `last`.
  void join(const Bool& was_second, const Int& first, const Int& last) {
    const Cut<B> fresh = cuts_.behind(select(was_second, first - 1, last));
    left_ = either(was_second, fresh, left_);
    right_ = either(was_second, right_, fresh);
  }

 private:
  Cuts<B> cuts_;
  Cut<B> left_, right_;
};

/// Fills the bounds of the centres, the keys, data.primitives and data.groups.
/// \param groups  by primitive; null without groups
void order_by_curve(const BvhBuild& build, const Array<int>& groups);
/// Makes nodes by common bits of the keys.
void build_lbvh(const BvhBuild& build);
/// Makes nodes by merging the nearest clusters, down to single primitives, and marks those that become leaves.
void build_hploc(const BvhBuild& build);
/// Fills data.group_roots, with the builder's numbers.
void name_group_roots(const BvhBuild& build);
/// Writes nodes, parents and primitives of `tree` in the order of walks, and finds its depth; the root becomes node 0.
/// What else `tree` has is the build's.
void lay_out(const BvhBuild& build, const BvhData& tree);
/// Computes all boxes anew from those of the primitives.
void refit_boxes(const BvhData& data, const Array<int>& arrived);

}  // namespace weft::detail
