// The part of the walk that does not depend on the query.
#include "traverse.h"

#include <limits>

#include "../../../frontend/language/own_gradient.h"
#include "../../../frontend/library/vector.h"

namespace weft::detail {

Vec4 read_row(const ArrLayout& array, const Int& element, int row) {
  const Index index(element);
  tracing::Address at = address_of(array, &index, 1);
  const Loc loc = at.loc;
  at.offset += std::uint32_t(row) * 16;
  tracing::Id ids[4];
  if (lib::tracing_adjoint()) {
    tracing::load(at, ir::Type::f32, 4, ids, loc);
    return Vec4(Float(ids[0], FromId{}), Float(ids[1], FromId{}), Float(ids[2], FromId{}), Float(ids[3], FromId{}));
  }
  tracing::load(at, ir::Type::u64, 2, ids, loc);
  const UInt64 pairs[2] = {UInt64(ids[0], FromId{}), UInt64(ids[1], FromId{})};
  Vec4 v;
  for (int k = 0; k < 2; ++k) {
    v[2 * k] = bitcast<float>(UInt(pairs[k]));
    v[2 * k + 1] = bitcast<float>(UInt(pairs[k] >> 32));
  }
  return v;
}

Children::Children(const Arr<BvhNode>& nodes, const Int& number) : node(number) {
  const Vec4 rows[4] = {read_row(nodes.layout(), node, 0), read_row(nodes.layout(), node, 1),
                        read_row(nodes.layout(), node, 2), read_row(nodes.layout(), node, 3)};
  for (int k = 0; k < 2; ++k) {
    lower[k] = xyz(rows[2 * k]), upper[k] = xyz(rows[2 * k + 1]);
    child[k] = bitcast<int>(rows[2 * k].w), count[k] = bitcast<int>(rows[2 * k + 1].w);
  }
}

Walk::Walk(const Arr<BvhNode>& nodes, const Arr<int>& parents, const BvhRoot& root)
    : nodes_(nodes), parents_(parents), part_(root.name) {
  if (!lib::tracing_adjoint()) stack_.assign(kStack, -1);
  // The handle of a freed structure has no nodes.
  node_ = select(nodes_.shape(0) > 0, 0, -1);
  if (part_) {
    // A name past the tree, or of no node in it, finds nothing: its walk might not end.
    const Int start = *part_ >> 1;
    Bool there = (*part_ >= 0) & (start < nodes_.shape(0));
    If (there) {
      there = Int(parents_[start]) >= -1;
    }
    node_ = select(there, start, select(*part_ == kBvhWhole, node_, -1));
  }
}

void Walk::step(const Int& next, const Int& waiting) {
  Int to = next;
  Bool climbs = true;
  if (!stack_.empty()) {
    // The step has no branches, because threads of a subgroup would diverge at random.
    const Bool pushes = waiting >= 0, pops = next < 0;
    to = select(pops, stack_.front(), next);
    lost_ |= pushes & (stack_.back() >= 0);
    climbs = lost_;
    std::vector<Int> moved;
    for (std::size_t k = 0; k < stack_.size(); ++k) {
      const Int above = k > 0 ? stack_[k - 1] : waiting, below = k + 1 < stack_.size() ? stack_[k + 1] : Int(-1);
      moved.push_back(select(pushes, above, select(pops, below, stack_[k])));
    }
    for (std::size_t k = 0; k < stack_.size(); ++k) stack_[k] = moved[k];
  }
  from_ = -1;
  If (climbs & (to < 0)) {
    Int up = parents_[node_];
    if (part_) up = select(is_start(node_), -1, up);
    to = up >> 1;
    from_ = up & 1;
  }
  node_ = to;
}

namespace {
UInt running_lanes() { return UInt(tracing::running_lanes(Loc::here()), FromId{}); }
}  // namespace

Searching::Searching() {
  if (!lib::tracing_adjoint()) all_ = running_lanes();
}

Bool Searching::goes_on() const {
  // More than a quarter of those that began.
  return all_ ? running_lanes() * 4u > *all_ : Bool(true);
}

RayData<Float> ray_through(const Arr<BvhNode>& nodes, const Vec3& origin, const Vec3& direction) {
  Vec3 lower, upper;
  If (nodes.shape(0) > 0) {
    const Children root(nodes, 0);
    lower = min(root.lower[0], root.lower[1]);
    upper = max(root.upper[0], root.upper[1]);
  }
  return ray_data(origin, direction, lower, upper);
}

Vec3 asked_lower(const Vec3& lower, const Vec3& upper) {
  const Bool upside_down = (lower.x > upper.x) | (lower.y > upper.y) | (lower.z > upper.z);
  return select(upside_down, Vec3(std::numeric_limits<float>::quiet_NaN()), lower);
}

Bool boxes_touch(const Vec3& lower1, const Vec3& upper1, const Vec3& lower2, const Vec3& upper2) {
  return (lower1.x <= upper2.x) & (upper1.x >= lower2.x) & (lower1.y <= upper2.y) & (upper1.y >= lower2.y) &
         (lower1.z <= upper2.z) & (upper1.z >= lower2.z);
}

}  // namespace weft::detail
