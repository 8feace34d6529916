// Numbers the nodes of a finished tree in the order in which walks meet them, and packs primitives into leaves.
#include "../../../frontend/kernels/group.h"
#include "../../../frontend/language/any_floats.h"
#include "../../algorithms/scan.h"
#include "../../array_create.h"
#include "../../core/view.h"
#include "bvh_build.h"

namespace weft::detail {

namespace {

// Strategy. Nodes are numbered depth first: a node, its first child with all that is below, its second child. A walk
// mostly goes on to a first child, which then is the next 64 bytes of memory; all that a query visits in some part of
// space lies together, and so do the primitives in leaves, which follow the order of the nodes above them. Builders
// name nodes after cuts between places, with holes where nodes become leaves. In that order, overlapping boxes took 1.8
// times as long on a processor, and closest points and rays from anywhere 1.3 times.
//
// A node's number is the sum of the steps from the root down to it, see NodeRecord. Large nodes, few of all, climb to
// the root and add them up; then the others climb to a large one. Nothing waits, and the same tree gets the same
// numbers.
//
//   root r = {a = {leaf of 2, leaf of 1}, b = {leaf of 1, c = {leaf of 3, leaf of 2}}}
//   steps   r 0, a 1, b 1 + 1, c 1               numbers r 0, a 1, b 2, c 3
//   leaves of r none, a 3, b 1, c 5              places  a 0 and 2, b 3, c 4 and 7
//
// Leaves of several are made on the way: a node that its builder has marked becomes a leaf of all primitives below it,
// and those nodes get no numbers. The root is never marked. A missing child is a leaf of no primitives.

/// Nodes with more than this number of nodes, themselves included, are large.
constexpr int kLarge = 32;
constexpr int kBlock = 256;

/// A climb from a node towards the root.
struct Ascent {
  const Arr<const vec4i>& records;
  Int node;
  NodeRecord at;
  Int number = 0, depth = 0;  ///< the sums on the way so far

  Ascent(const Arr<const vec4i>& records, const Int& node)
      : records(records), node(node), at(NodeRecord::load(records, node)) {}
  /// Whether the number that the climb begins with names a node.
  Bool is_node() const { return at.parent >= -1; }
  Bool is_large() const { return (at.size > kLarge) | at_root(); }
  Bool at_root() const { return at.parent == -1; }
  void step() {
    number += at.step;
    depth += 1;
    node = at.parent >> 1;
    const NodeRecord next = NodeRecord::load(records, node);
    at.parent = next.parent, at.step = next.step, at.size = next.size;
  }
};

auto large_kernel() {
  return kernel("bvh_number_large", [](Arr<const vec4i> records, Arr<int> numbers, Arr<int> depths) {
    Int node = tid();
    Ascent climb(records, node);
    If (climb.is_node() & climb.is_large()) {
      While (!climb.at_root()) {
        climb.step();
      }
      numbers[node] = climb.number;
      depths[node] = climb.depth + 1;
    }
  });
}

// Also counts the primitives in leaves of each node, by its number, and finds the depth of the tree. The last
// workgroup has threads without a number.
auto small_kernel() {
  return kernel("bvh_number_small",
                [](Arr<const vec4i> records, Arr<const int> depths, Arr<unsigned> info, Arr<int> numbers,
                   Arr<int> counts, Int names) {
                  Int thread = tid(), node = min(thread, names - 1), depth = 0;
                  Ascent climb(records, node);
                  const Int leaves = climb.at.leaves;
                  Bool stays = (thread < names) & climb.is_node() & (climb.at.size > 0);
                  While (stays & !climb.is_large()) {
                    climb.step();
                    stays = climb.at.size > 0;
                  }
                  If (stays) {
                    Int number = climb.number;
                    number += numbers[climb.node];
                    depth = climb.depth + depths[climb.node];
                    counts[number] = leaves;
                    If (climb.node != node) {
                      numbers[node] = number;
                    }
                  }
                  If ((!stays) & (thread < names)) {
                    numbers[node] = -1;
                  }
                  depth = subgroup_max(depth);
                  If (subgroup_elect()) {
                    atomic_max(info[kBvhDepth], UInt(depth));
                  }
                },
                {.block = kBlock});
}

/// Writes the primitives below a child from place `at` on.
/// \param packs  the child may be a node
void write_leaf(const Arr<int>& order, const Arr<vec4>& halves, const Half& child, const Int& at,
                const Arr<int>& primitives, bool packs) {
  If (child.link < 0) {
    for (auto k : range(child.count)) primitives[at + k] = order[~child.link + k];
  }
  if (!packs) return;
  If (child.link >= 0) {
    // Depth first through at most 7 nodes, whose leaves have a primitive each.
    auto stack = private_array<int>(8);
    Int next = at, top = 1;
    stack[0] = child.link;
    While (top > 0) {
      top -= 1;
      const Int link = stack[top];
      If (link < 0) {
        primitives[next] = order[~link];
        next += 1;
      }
      Else {
        stack[top] = link_of(halves, link * 2 + 1);
        stack[top + 1] = link_of(halves, link * 2);
        top += 2;
      }
    }
  }
}

/// Writes each node where it belongs. Numbers past the last node name none from now on.
/// \param packs  nodes may become leaves here
auto place_kernel(bool packs) {
  return kernel("bvh_place",
                [packs](Var<BvhData> made, Arr<vec4> halves, Arr<const vec4i> records, Arr<const int> numbers,
                        Arr<const int> starts, Arr<vec4> placed, Arr<int> parents, Arr<int> primitives) {
                  const tracing::AnyFloats any;
                  Int node = tid();
                  const Int number = numbers[node];
                  If (number >= 0) {
                    const Int up = records[node].x;
                    Int parent = -1;
                    If (up >= 0) {
                      parent = Int(numbers[up >> 1]) * 2 + (up & 1);
                    }
                    parents[number] = parent;
                    Int at = starts[number];
                    for (int side = 0; side < 2; ++side) {
                      Half child = load_half(halves, node * 2 + side);
                      Int link = -1;
                      If (child.link >= 0) {
                        link = numbers[child.link];
                        child.count = 0;
                        if (packs) child.count = select(link < 0, -Int(records[child.link].z), 0);
                      }
                      If (child.count > 0) {
                        link = ~at;
                        write_leaf(made.primitives, halves, child, at, primitives, packs);
                        at += child.count;
                      }
                      store_half(placed, number * 2 + side, {child.box, link, child.count});
                    }
                  }
                  If (node >= Int(records[Int(made.info[kBvhRoot])].z)) {
                    parents[node] = -2;
                  }
                });
}

// A group's root is named after the node from which it hangs.
auto rename_kernel() {
  return kernel("bvh_rename_group_roots", [](Var<BvhData> made, Arr<const int> numbers) {
    const Arr<int> groups = made.groups;
    Int i = tid();
    If (i == 0 || groups[i] != groups[max(i - 1, 0)]) {
      const Int name = made.group_roots[i];
      If (name >= 0) {
        made.group_roots[i] = Int(numbers[name >> 1]) * 2 + (name & 1);
      }
    }
  });
}

}  // namespace

Array<vec2i> NodeRecord::halves_of(const Array<vec4i>& records) { return Row<vec2i>(records); }

void lay_out(const BvhBuild& build, const BvhData& tree) {
  static const auto large = large_kernel();
  static const auto small = small_kernel();
  static const auto place = place_kernel(false), place_packed = place_kernel(true);
  static const auto rename = rename_kernel();
  const Device device = build.device();
  const BvhData& made = build.data;
  const std::int64_t nodes = tree.nodes.size();
  const Array<int> numbers = empty<int>(device, nodes), depths = tree.parents;  // whose time comes later
  launch(large, nodes, build.records, numbers, depths);
  const Array<int> starts = zeros<int>(device, nodes);
  launch(small, (nodes + kBlock - 1) / kBlock * kBlock, build.records, depths, tree.info, numbers, starts, nodes);
  exclusive_scan(starts, starts);
  launch(made.leaf_size > 1 ? place_packed : place, nodes, made, halves_of(made.nodes), build.records, numbers, starts,
         halves_of(tree.nodes), tree.parents, tree.primitives);
  if (build.grouped) launch(rename, build.count(), made, numbers);
}

}  // namespace weft::detail
