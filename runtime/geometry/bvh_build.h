// The passes that build a hierarchy, and what their kernels share. Internal to the runtime.
#pragma once
#include "../../frontend/edsl/names.h"
#include "../../frontend/edsl/vector.h"
#include "bvh.h"
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
  Array<int> order;    ///< the primitives in that order; data.primitives itself where leaves are runs of places
  Array<vec2i> spans;  ///< by node, where leaves are packed: least place, number of primitives up to 15

  Device device() const { return data.info.device(); }
  std::int64_t count() const { return data.count; }
};

/// A range of places on its way up: to the lower one of the cuts beside it. The higher the first bit in which two
/// neighbours differ, the higher the cut: of their groups, then of their keys, then of the places themselves.
struct Climb {
  Int parent;  ///< the number of a cut is that of the place before it
  Bool is_second;
};
/// \param groups  looked at where `grouped`
template <class B>
Climb climb_from(const Arr<const B>& keys, const Arr<int>& groups, bool grouped, const Int& first, const Int& last,
                 const Int& n) {
  const Int before = max(first - 1, 0), behind = min(last + 1, n - 1);
  const Var<B> left = keys[before] ^ keys[first], right = keys[behind] ^ keys[last];
  Bool right_is_lower = (right < left) | ((right == left) & ((behind ^ last) < (before ^ first)));
  if (grouped) {
    const UInt left_group = UInt(groups[before] ^ groups[first]), right_group = UInt(groups[behind] ^ groups[last]);
    right_is_lower = (right_group < left_group) | ((right_group == left_group) & right_is_lower);
  }
  const Bool is_second = (first > 0) & ((last == n - 1) | !right_is_lower);
  return {select(is_second, before, last), is_second};
}

/// Bounds of the centres, keys, `order` and data.groups. \param groups  by primitive; null without groups
void order_by_curve(const BvhBuild& build, const Array<int>& groups);
/// Nodes by common bits of the keys.
void build_lbvh(const BvhBuild& build);
/// Nodes that merge the nearest clusters, down to single primitives.
void build_hploc(const BvhBuild& build);
/// Subtrees of no more than leaf_size primitives become leaves; fills data.primitives.
void pack_leaves(const BvhBuild& build);
/// Fills data.group_roots, for numbers of nodes as they are behind move_root().
void name_group_roots(const BvhBuild& build);
/// Makes the node that info names number 0, which all later passes count on.
void move_root(const BvhBuild& build);
/// All boxes anew, from those of the primitives.
void refit_boxes(const BvhData& data, const Array<int>& arrived);

}  // namespace weft::detail
