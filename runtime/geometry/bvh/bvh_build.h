// The passes that build a hierarchy, and what their kernels share. Internal to the runtime.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/library/vector.h"
#include "../bvh.h"
#include "curve.h"

namespace weft::detail {

/// A box of a kernel.
struct TracedBox {
  Vec3 lower, upper;
};
/// The box of a primitive; an empty one where it is none: see Bvh.
TracedBox box_of(const Arr<vec3>& lowers, const Arr<vec3>& uppers, const Int& primitive);
TracedBox empty_box();
/// The smaller and the larger of numbers that are no NaN, component by component: one instruction where min() and max()
/// have to look for NaNs.
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

/// Half of a node: the box of a child, its link and its number of primitives.
struct Half {
  TracedBox box;
  Int link, count;
};
/// The nodes as vectors, so that there is one way to both children: where threads take different sides, the two ways
/// through the fields of BvhNode would be gone one after the other. For kernels that take no other view of the nodes.
/// \return  (4 * nodes) child `side` of a node has vectors 4 * node + 2 * side and the next one
Array<vec4> halves_of(const Array<BvhNode>& nodes);
/// \param child  2 * node + side
Half load_half(const Arr<vec4>& halves, const Int& child);
void store_half(const Arr<vec4>& halves, const Int& child, const Half& half);

/// Further places in BvhData::info, for builds: the number of the node that becomes node 0; six words for the bounds of
/// the boxes' centres.
inline constexpr int kBvhRoot = 2, kBvhBounds = 3, kBvhInfos = kBvhBounds + kCurveBounds;

/// A build under way: the arrays of the tree, and what the build alone needs.
struct BvhBuild {
  const BvhData& data;
  Array<int> arrived;  ///< by node; zeros before and after each pass
  bool grouped;        ///< then data.groups counts before the keys
  /// By place in the order of the curve; one of them is null.
  Array<unsigned> keys;
  Array<std::uint64_t> fine_keys;
  Array<int> order;  ///< the primitives in that order; data.primitives itself where leaves are runs of places
  /// By node, where leaves are packed: least place; number of primitives up to 15, with kIsLeaf where they are to be
  /// one leaf.
  Array<vec2i> spans;

  Device device() const { return data.info.device(); }
  std::int64_t count() const { return data.count; }
};

/// See BvhBuild::spans.
inline constexpr int kIsLeaf = 16;

/// How high a place is cut from the next one: by the first bit in which the two differ, of their groups, then of their
/// keys, then of the places themselves. No two cuts beside one range are equal.
template <class B>
struct Cut {
  bool grouped;
  UInt groups;  ///< bits that differ; not looked at unless `grouped`
  Var<B> bits;  ///< of keys that differ, with the highest bit set, which no key has; else of places
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
  const Arr<int>& groups;  ///< looked at where `grouped`
  bool grouped;
  const Int& n;

  /// Of a place; of one beyond the ends that of the end.
  Var<B> key(const Int& place) const { return keys[clamp(place, 0, n - 1)]; }
  /// Between a place and the next one, whose keys are known. Behind the last place, and before the first one (-1), it
  /// is the highest. Threads beyond the last place may ask, too.
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

/// A range of places on its way up, to the lower one of the cuts beside it. Of these one stays where the range grows.
template <class B>
class Climb {
 public:
  Climb(const Cuts<B>& cuts, const Int& first, const Int& last)
      : cuts_(cuts), left_(cuts.behind(first - 1)), right_(cuts.behind(last)) {}
  /// Does the range lie behind the lower one? Then it is the parent's second child.
  Bool is_second() const { return left_ < right_; }
  /// It has been joined with its sibling: to the range `first` to `last`.
  void join(const Bool& was_second, const Int& first, const Int& last) {
    const Cut<B> fresh = cuts_.behind(select(was_second, first - 1, last));
    left_ = either(was_second, fresh, left_);
    right_ = either(was_second, right_, fresh);
  }

 private:
  Cuts<B> cuts_;
  Cut<B> left_, right_;
};

/// Bounds of the centres, keys, `order` and data.groups. \param groups  by primitive; null without groups
void order_by_curve(const BvhBuild& build, const Array<int>& groups);
/// Nodes by common bits of the keys.
void build_lbvh(const BvhBuild& build);
/// Nodes that merge the nearest clusters, down to single primitives.
void build_hploc(const BvhBuild& build);
/// Subtrees that build_hploc() has marked become leaves; fills data.primitives.
void pack_leaves(const BvhBuild& build);
/// Fills data.group_roots, for numbers of nodes as they are behind move_root().
void name_group_roots(const BvhBuild& build);
/// Makes the node that info names number 0, which all later passes count on.
void move_root(const BvhBuild& build);
/// All boxes anew, from those of the primitives.
void refit_boxes(const BvhData& data, const Array<int>& arrived);

}  // namespace weft::detail
