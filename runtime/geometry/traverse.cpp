// What of the walk does not depend on the query.
#include "traverse.h"

#include "../../frontend/edsl/own_gradient.h"
#include "../../frontend/edsl/vector.h"

namespace weft::detail {

Children::Children(const Arr<BvhNode>& nodes, const Int& number) : node(number) {
  const Var<BvhNode> n = nodes[node];
  lower[0] = xyz(n.lower0), lower[1] = xyz(n.lower1);
  upper[0] = xyz(n.upper0), upper[1] = xyz(n.upper1);
  child[0] = bitcast<int>(n.lower0.w), child[1] = bitcast<int>(n.lower1.w);
  count[0] = bitcast<int>(n.upper0.w), count[1] = bitcast<int>(n.upper1.w);
}

Walk::Walk(const Arr<BvhNode>& nodes, const Arr<int>& parents, const BvhRoot& root)
    : nodes_(nodes), parents_(parents), part_(root.name) {
  if (!lib::tracing_adjoint()) stack_.push_back(private_array<int>(kStack));
  // A handle whose structure was freed has no nodes.
  node_ = select(nodes_.shape(0) > 0, 0, -1);
  if (part_) node_ = select(*part_ >= 0, *part_ >> 1, select(*part_ == kBvhWhole, node_, -1));
}

void Walk::step(const Int& next, const Int& waiting) {
  Int to = next;
  Bool climbs = true;
  if (!stack_.empty()) {
    If (waiting >= 0) {
      stack_[0][top_ & (kStack - 1)] = waiting;
      top_ += 1;
      bottom_ = max(bottom_, top_ - kStack);
    }
    climbs = bottom_ > 0;
    If ((to < 0) & (top_ > bottom_)) {
      top_ -= 1;
      to = stack_[0][top_ & (kStack - 1)];
    }
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

RayData<Float> ray_through(const Arr<BvhNode>& nodes, const Vec3& origin, const Vec3& direction) {
  Vec3 lower, upper;
  If (nodes.shape(0) > 0) {
    const Children root(nodes, 0);
    lower = min(root.lower[0], root.lower[1]);
    upper = max(root.upper[0], root.upper[1]);
  }
  return ray_data(origin, direction, lower, upper);
}

Bool boxes_touch(const Vec3& lower1, const Vec3& upper1, const Vec3& lower2, const Vec3& upper2) {
  return (lower1.x <= upper2.x) & (upper1.x >= lower2.x) & (lower1.y <= upper2.y) & (upper1.y >= lower2.y) &
         (lower1.z <= upper2.z) & (upper1.z >= lower2.z);
}

}  // namespace weft::detail
