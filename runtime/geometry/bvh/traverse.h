// The walk through a hierarchy that all queries share. Internal to the library's queries.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/control.h"
#include "../../../frontend/language/struct_var.h"
#include "../bvh_query.h"
#include "../shapes/ray.h"
#include "bvh_node.h"

namespace weft::detail {

/// Four floats, 16 bytes times `row` after the start of an element whose size is a multiple of that. They are read as
/// two numbers of 64 bits: on a software device the cost of a gather is in its accesses, not its bytes.
Vec4 read_row(const ArrLayout& array, const Int& element, int row);

/// Both children of a node.
struct Children {
  Int node;
  Bool again;  ///< visited before: the walk climbs through it
  Vec3 lower[2], upper[2];
  Int child[2];  ///< a node, or a leaf: ~place
  Int count[2];  ///< primitives of a leaf, 0 for a node

  Children(const Arr<BvhNode>& nodes, const Int& node);
};

/// A query's decision about the children of a node. It must depend only on the node and on what stays the same during
/// the query, except that `hit` may turn from true to false as the query finds closer results.
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

/// A thread's position in a tree.
///
/// Strategy: a node holds the boxes of its children, so that a visit reads one line of 64 bytes and decides about both.
/// Leaves go to the query at once; of two inner children one is visited next and the other waits on a stack in
/// registers, at most one for each level. The stack holds the newest kStack nodes, newest first. In a deeper tree the
/// oldest are lost; once the others are used up, the walk climbs by the parents' numbers: it visits the parent again
/// and goes from its first child to the second, if the query still wants that, and from the second further up. No leaf
/// is left out or handed over twice: whichever entry was popped last, the thread is then in its parent's second child.
///
/// Worked example, a stack that holds 2 and a chain 0 - 1 - 2 - 3 whose second children a, b, c are nodes too: a, b, c
/// are pushed, by which a is lost; after 3 come c and b from the stack; after b the walk climbs: b is the second child
/// of 1, and 1 the first of 0, whose second is a; after a it climbs to the root and ends.
///
/// Each visit shifts the whole stack by one place, at two selections per entry. An array indexed by each thread costs
/// more if a processor runs threads in step: a load and a store for each thread, one after the other, and after a
/// branch that asks whether the thread takes part. Rays took up to 1.5 times as long.
///
/// Devices that run the threads of a subgroup in step, masked ones included, pay for all code of a loop in each of its
/// rounds. Climbing is therefore no loop of its own but a visit like others.
///
/// A walk of a part begins at the node from which the part hangs, ignores that node's other child, and climbs no
/// further than that node.
///
/// In an adjoint the walk has no stack and always climbs: its state is then numbers alone, which the way back can save.
class Walk {
 public:
  static constexpr int kStack = 12;

  Walk(const Arr<BvhNode>& nodes, const Arr<int>& parents, const BvhRoot& root = {});

  /// Whether there is a node to visit.
  Bool going() const { return node_ >= 0; }

  /// Visits the node and advances to the next. `choose`: Choice(const Children&).
  template <class F>
  void visit(F choose, LeafRange& leaves) {
    Children c(nodes_, node_);
    const Bool descends = from_ < 0;
    c.again = !descends;
    Choice order = choose(c);
    if (part_)
      for (int side = 0; side < 2; ++side) order.hit[side] &= !is_start(node_) | ((*part_ & 1) == side);
    const Bool turned = order.second_first;
    const Bool behind_first = from_ == select(turned, 1, 0);
    const Int first = select(turned, c.child[1], c.child[0]), second = select(turned, c.child[0], c.child[1]);
    const Bool hit_first = select(turned, order.hit[1], order.hit[0]) & descends;
    const Bool hit_second = select(turned, order.hit[0], order.hit[1]);
    const Bool leaf_second = hit_second & descends;
    const Int count_first = select(turned, c.count[1], c.count[0]),
              count_second = select(turned, c.count[0], c.count[1]);
    leaves.first = select(hit_first, count_first, 0);
    leaves.count = leaves.first + select(leaf_second, count_second, 0);
    leaves.begin = ~first;
    leaves.rest = ~second - leaves.first;
    const Bool go_first = hit_first & (first >= 0);
    const Bool go_second = hit_second & (descends | behind_first) & (second >= 0);
    step(select(go_first, first, select(go_second, second, -1)), select(go_first & go_second, second, -1));
  }

 private:
  /// Advances to `next`, or if that is -1, to a waiting node. `waiting` is the node that waits from now on, or -1.
  void step(const Int& next, const Int& waiting);

  /// Whether a walk of a part begins at the node, which has one child then.
  Bool is_start(const Int& node) const { return node == *part_ >> 1; }

  Arr<BvhNode> nodes_;
  Arr<int> parents_;
  std::optional<Int> part_;  ///< the name of the root; none for the whole tree
  std::vector<Int> stack_;   ///< waiting nodes, followed by -1; empty in an adjoint
  Bool lost_;                ///< the stack has dropped nodes for newer ones
  Int node_;
  Int from_ = -1;  ///< the child from which the walk climbs to node_, or -1: it descends
};

/// How many of the threads that run in step still search for a leaf. The first ones that find a leaf wait for the
/// others; when the others are few, these wait instead, and search on in the next round of the walk. Without that, a
/// round takes as long as its slowest thread. What a thread visits, and in which order, does not change.
class Searching {
 public:
  Searching();
  /// Whether the search goes on. In its first step it does: all threads that begin to search take it.
  Bool goes_on() const;

 private:
  std::optional<UInt> all_;  ///< none in an adjoint, whose way back counts the rounds
};

/// Walks a tree: calls `look` with the place of each primitive in a leaf that `choose` wants, until `done`.
///
/// Nodes and primitives have a loop each, so that no thread waits for others that do the other thing.
template <class Choose, class Look>
void walk_tree(const Var<BvhData>& tree, const Bool& done, Choose choose, Look look) {
  Walk walk(tree.nodes, tree.parents);
  LeafRange leaves;
  While (walk.going() & !done) {
    leaves.count = 0;
    const Searching searching;
    While (walk.going() & (leaves.count == 0) & searching.goes_on()) walk.visit(choose, leaves);
    for (auto i : range(leaves.count)) look(leaves.place(i));
  }
}

/// A ray that misses no box of the tree through rounding.
RayData<Float> ray_through(const Arr<BvhNode>& nodes, const Vec3& origin, const Vec3& direction);
/// The lower bound of a queried box: NaN if it is above the upper one along an axis, so that boxes_touch() finds
/// nothing.
Vec3 asked_lower(const Vec3& lower, const Vec3& upper);
/// Whether two boxes share a point, which is possible for an inverted box, too.
Bool boxes_touch(const Vec3& lower1, const Vec3& upper1, const Vec3& lower2, const Vec3& upper2);

inline Vec3 xyz(const Vec4& v) { return Vec3(v.x, v.y, v.z); }
inline Vec3 value(const In<vec3>& v) { return Vec3(v.id, FromId{}); }
inline Float value(const In<float>& v) { return Float(v.id, FromId{}); }
inline Int value(const In<int>& v) { return Int(v.id, FromId{}); }

}  // namespace weft::detail
