// The walk through a hierarchy that all queries share. Internal to the library's queries.
#pragma once
#include "../../frontend/edsl/control.h"
#include "../../frontend/edsl/group.h"
#include "../../frontend/edsl/names.h"
#include "../../frontend/edsl/struct_var.h"
#include "bvh_node.h"
#include "ray.h"

namespace weft::detail {

/// Both children of a node.
struct Children {
  Int node;
  Vec3 lower[2], upper[2];
  Int child[2];  ///< a node, or a leaf: ~place
  Int count[2];  ///< primitives of a leaf

  Children(const Arr<BvhNode>& nodes, const Int& node);
};

/// What a query says about the children of a node. Both must depend on nothing but the node and what of the query does
/// not change, except that `hit` may turn from true to false as the query finds results that are closer.
struct Choice {
  Bool hit[2];
  Bool second_first;  ///< which child is visited first
};

/// Primitives in up to two leaves, as numbers 0 .. count - 1.
struct LeafRange {
  Int count;
  Int first, begin, rest;  ///< places: begin + i for i < first, then rest + i
  Int place(const Int& i) const { return select(i < first, begin, rest) + i; }
};

/// Where a thread stands in a tree.
///
/// Strategy: a node holds the boxes of its children, so that a visit reads one line of 64 bytes and decides about both.
/// Leaves are handed to the query at once; of two inner children the one goes on and the other waits on a stack in the
/// thread's own memory, at most one for each level. The stack is a ring of kStack entries: in a deeper tree the oldest
/// are overwritten, and once those that are left are used up, the walk climbs by the parents' numbers: from the first
/// child of a node it goes to the second, if the query still wants it, from the second further up. Nothing is lost and
/// nothing is visited twice: whatever a popped entry was, the thread then stands in its parent's second child.
///
/// Worked example, a ring of 2 and a chain 0 - 1 - 2 - 3 whose second children a, b, c are nodes too: a, b, c are
/// pushed, which overwrites a; behind 3 come c and b from the ring; behind b the walk climbs: b is the second child of
/// 1, and 1 the first of 0, whose second is a; behind a it climbs to the root and ends.
///
/// In an adjoint the walk has no stack and climbs always: its state are then numbers alone, which the way back can
/// save.
class Walk {
 public:
  static constexpr int kStack = 64;

  explicit Walk(const Arr<BvhNode>& nodes, const Arr<int>& parents);

  /// Is there a node to visit?
  Bool going() const { return node_ >= 0; }

  /// Visits the node. `choose`: Choice(const Children&). Afterwards step() goes on.
  template <class F>
  LeafRange visit(F choose) {
    const Children c(nodes_, node_);
    const Choice order = choose(c);
    const Int first = select(order.second_first, c.child[1], c.child[0]);
    const Int second = select(order.second_first, c.child[0], c.child[1]);
    const Bool hit_first = select(order.second_first, order.hit[1], order.hit[0]);
    const Bool hit_second = select(order.second_first, order.hit[0], order.hit[1]);
    const Int count_first = select(order.second_first, c.count[1], c.count[0]);
    const Int count_second = select(order.second_first, c.count[0], c.count[1]);
    LeafRange leaves;
    leaves.first = select(hit_first, count_first, 0);
    leaves.count = leaves.first + select(hit_second, count_second, 0);
    leaves.begin = ~first;
    leaves.rest = ~second - leaves.first;
    const Bool go_first = hit_first & (first >= 0), go_second = hit_second & (second >= 0);
    next_ = select(go_first, first, select(go_second, second, -1));
    waiting_ = select(go_first & go_second, second, -1);
    return leaves;
  }

  /// Goes to the next node, with the same `choose` as visit().
  template <class F>
  void step(F choose) {
    push();
    If (next_ >= 0) {
      node_ = next_;
    }
    Else {
      pop();
      If (climbing_) {
        climbing_ = false;
        climb(choose);
      }
    }
  }

 private:
  void push();
  void pop();
  template <class F>
  void climb(F choose) {
    Int at = node_;
    node_ = -1;
    Int up = parents_[at];
    While (up >= 0) {
      at = up >> 1;
      const Bool from_second = (up & 1) == 1;
      const Children c(nodes_, at);
      const Choice order = choose(c);
      const Int other = select(from_second, c.child[0], c.child[1]);
      const Bool wanted = select(from_second, order.hit[0], order.hit[1]) & (other >= 0);
      If (wanted & (from_second == order.second_first)) {
        node_ = other;
        Break();
      }
      up = parents_[at];
    }
  }

  Arr<BvhNode> nodes_;
  Arr<int> parents_;
  std::vector<Private<int>> stack_;  ///< none in an adjoint
  Int node_, next_, waiting_, top_, bottom_;
  Bool climbing_;
};

/// A ray that loses no box of the tree by rounding.
RayData<Float> ray_through(const Arr<BvhNode>& nodes, const Vec3& origin, const Vec3& direction);
/// Do two boxes share a point?
Bool boxes_touch(const Vec3& lower1, const Vec3& upper1, const Vec3& lower2, const Vec3& upper2);

inline Vec3 xyz(const Vec4& v) { return Vec3(v.x, v.y, v.z); }
inline Vec3 value(const In<vec3>& v) { return Vec3(v.id, FromId{}); }
inline Float value(const In<float>& v) { return Float(v.id, FromId{}); }
inline Int value(const In<int>& v) { return Int(v.id, FromId{}); }

}  // namespace weft::detail
