// The passes that write a grid: all nodes from templates, then what is known of each, from the voxels up.
//
//   fill      every node is a copy of its level's template: nothing active, no children, the background's value
//   nodes     the first voxel of a node links it to its parent; each voxel sets its bit in the leaf's mask
//   leaves    the box and the number of a leaf's active voxels, from its mask; the box is added to the lower node's
//   inner     the boxes of lower nodes are added to upper nodes', and those to the root's
//   header    the numbers of nodes and voxels
#include "nodes.h"

#include <cstring>

#include "../../../frontend/language/atomic.h"
#include "../../algorithms/scan.h"
#include "../../array_create.h"
#include "../../core/view.h"
#include "../../launch.h"
#include "key.h"

namespace weft::detail {

namespace {

constexpr int in_words(std::size_t bytes) { return int(bytes / 4); }

// ---- Numbers of nodes

/// The first of `n` ascending ranks that is greater than the room.
Int places_within(const Arr<const int>& ranks, const Int& n, const Int& room) {
  Int low = 0, high = n;
  While (low < high) {
    const Int middle = low + (high - low) / 2;
    If (ranks[middle] > room) {
      high = middle;
    }
    Else { low = middle + 1; }
  }
  return low;
}

/// One thread: counts[0 .. 2] nodes of each level, counts[4] leaves without room, counts[5] voxels with room.
const auto& count_kernel() {
  static const auto k = kernel("volume_count", [](Arr<const int> leaf, Arr<const int> lower, Arr<const int> upper,
                                                  Arr<int> counts, Int n, Vec3i room) {
    const Int within =
        min(min(places_within(leaf, n, room.x), places_within(lower, n, room.y)), places_within(upper, n, room.z));
    const auto up_to = [&](const Arr<const int>& ranks, const Int& end) {
      return select(end > 0, ranks[max(end - 1, 0)], 0);
    };
    counts[0] = up_to(leaf, within);
    counts[1] = up_to(lower, within);
    counts[2] = up_to(upper, within);
    counts[4] = up_to(leaf, n) - up_to(leaf, within);
    counts[5] = within;
  });
  return k;
}

// ---- Nodes

const auto& fill_kernel() {
  static const auto k = kernel("volume_fill", [](Arr<unsigned> words, Arr<const unsigned> node, Int first) {
    auto [n, k] = tid<2>();
    words[first + n * node.shape(0) + k] = node[k];
  });
  return k;
}

/// Sets an entry of an inner node, and its bit in the mask of children.
void link(const Arr<unsigned>& words, const Int& parent, const Int& mask, const Int& entries, const Int& entry_words,
          const Int& n, const Int& child) {
  atomic_or(words[parent + mask + (n >> 5)], UInt(1u) << bitcast<unsigned>(n & 31));
  const Int at = parent + entries + n * entry_words;
  for (auto k : range(2, entry_words)) words[at + k] = 0u;
  // Distances are in bytes, and below 2^32.
  words[at] = bitcast<unsigned>(child - parent) << 2u;
  words[at + 1] = bitcast<unsigned>(child - parent) >> 30u;
}

auto make_nodes(bool all) {
  return kernel("volume_nodes", [all](Arr<const std::uint64_t> keys, Arr<const int> leaf_ranks,
                                      Arr<const int> lower_ranks, Arr<const int> upper_ranks, Arr<const int> counts,
                                      Arr<unsigned> words, Var<NodePlaces> at, Arr<int> lower_of, Arr<int> upper_of) {
    Int i = tid();
    If (i >= counts[5]) {
      Return();
    }
    const UInt64 key = keys[i];
    const Vec3i v = voxel_of(key);
    const auto begins = [&](const Arr<const int>& ranks) { return (i == 0) | (ranks[i] != ranks[max(i - 1, 0)]); };
    const auto bits = [&](int from, int count) {
      return Int((key >> UInt64(std::uint64_t(from))) & UInt64((std::uint64_t(1) << count) - 1));
    };
    const Int leaf = at.first.x + (leaf_ranks[i] - 1) * at.size.x,
              lower = at.first.y + (lower_ranks[i] - 1) * at.size.y,
              upper = at.first.z + (upper_ranks[i] - 1) * at.size.z;
    If (begins(leaf_ranks)) {
      for (int k = 0; k < 3; ++k) words[leaf + k] = bitcast<unsigned>(v[k] & ~7);
      if (all)
        for (int k = 0; k < 16; ++k) words[leaf + in_words(grids::kLeafMask) + k] = ~0u;
      link(words, lower, in_words(grids::child_mask(1)), at.values.y, at.entry, bits(kLeafBits, 12), leaf);
      lower_of[leaf_ranks[i] - 1] = lower;
    }
    If (begins(lower_ranks)) {
      link(words, upper, in_words(grids::child_mask(2)), at.values.z, at.entry, bits(kLowerBits, 15), lower);
      upper_of[lower_ranks[i] - 1] = upper;
    }
    If (begins(upper_ranks)) {
      const Int tile = at.tiles + (upper_ranks[i] - 1) * at.tile;
      const auto part = [&](int axis) { return bitcast<unsigned>(v[axis]) >> unsigned(grids::kUpperLog); };
      words[tile] = part(2) | (part(1) << 21u);
      words[tile + 1] = (part(1) >> 11u) | (part(0) << 10u);
      words[tile + in_words(grids::kTileChild)] = bitcast<unsigned>(upper - at.root) << 2u;
      words[tile + in_words(grids::kTileChild) + 1] = bitcast<unsigned>(upper - at.root) >> 30u;
    }
    if (!all) {
      const Int n = bits(0, 9);
      atomic_or(words[leaf + in_words(grids::kLeafMask) + (n >> 5)], UInt(1u) << bitcast<unsigned>(n & 31));
    }
  });
}
const auto& nodes_kernel(bool all) {
  static const decltype(make_nodes(true)) both[] = {make_nodes(false), make_nodes(true)};
  return both[all];
}

// ---- Boxes

/// The least and the greatest number of a set bit.
struct BitRange {
  explicit BitRange(const UInt& mask) {
    for (int b = 7; b >= 0; --b) least = select(((mask >> unsigned(b)) & 1u) != 0u, b, least);
    for (int b = 0; b < 8; ++b) greatest = select(((mask >> unsigned(b)) & 1u) != 0u, b, greatest);
  }
  Int least = 0, greatest = 0;
};

/// Adds a box, of which the lower corner comes first, to that of a node.
void add_box(const Arr<int>& numbers, const Int& node, const Vec3i& lower, const Vec3i& upper) {
  for (int k = 0; k < 3; ++k) {
    atomic_min(numbers[node + k], lower[k]);
    atomic_max(numbers[node + 3 + k], upper[k]);
  }
}

/// The mask has a word of 32 bits for each half of a plane of 8 x 8 voxels: bit 8 (y & 3) + z.
const auto& leaves_kernel() {
  static const auto k =
      kernel("volume_leaves", [](Arr<const int> counts, Arr<unsigned> words, Arr<int> numbers, Var<NodePlaces> at,
                                 Arr<const int> lower_of, Arr<int> voxels_before) {
        Int n = tid(), count = 0;
        If (n < counts[0]) {
          const Int leaf = at.first.x + n * at.size.x;
          UInt planes = 0u, halves[2] = {0u, 0u};
          for (int k = 0; k < 16; ++k) {
            const UInt word = words[leaf + in_words(grids::kLeafMask) + k];
            count += Int(popcount(word));
            planes |= select(word != 0u, UInt(1u << (k / 2)), UInt(0u));
            halves[k & 1] |= word;
          }
          UInt rows = 0u, columns = 0u;
          for (int y = 0; y < 8; ++y) {
            const UInt row = (halves[y / 4] >> unsigned(8 * (y & 3))) & 255u;
            columns |= row;
            rows |= select(row != 0u, UInt(1u << y), UInt(0u));
          }
          If (count > 0) {
            const BitRange ranges[] = {BitRange(planes), BitRange(rows), BitRange(columns)};
            Vec3i lower, upper;
            UInt extent = 2u << 24u;  // the flag of a box
            for (int k = 0; k < 3; ++k) {
              const Int origin = numbers[leaf + k];
              lower[k] = origin + ranges[k].least;
              upper[k] = origin + ranges[k].greatest;
              numbers[leaf + k] = lower[k];
              extent |= bitcast<unsigned>(upper[k] - lower[k]) << unsigned(8 * k);
            }
            words[leaf + in_words(grids::kLeafExtent)] = extent;
            add_box(numbers, lower_of[n], lower, upper);
          }
        }
        voxels_before[n + 1] = count;
      });
  return k;
}

/// Adds the boxes of a level's nodes to those of their parents: of lower nodes (level 1), or of upper ones to the root.
auto make_inner(int level) {
  return kernel("volume_inner",
                [level](Arr<const int> counts, Arr<int> numbers, Var<NodePlaces> at, Arr<const int> upper_of) {
                  Int n = tid();
                  If (n < counts[level]) {
                    const Int node = at.first[level] + n * at.size[level];
                    Vec3i lower, upper;
                    for (int k = 0; k < 3; ++k) {
                      lower[k] = numbers[node + k];
                      upper[k] = numbers[node + 3 + k];
                    }
                    add_box(numbers, level == 1 ? Int(upper_of[n]) : Int(at.root), lower, upper);
                  }
                });
}
const auto& inner_kernel(int level) {
  static const decltype(make_inner(1)) both[] = {make_inner(1), make_inner(2)};
  return both[level - 1];
}

const auto& header_kernel() {
  static const auto k = kernel("volume_header", [](Arr<const int> counts, Arr<unsigned> words, Var<NodePlaces> at,
                                                   Arr<const int> voxels_before) {
    const int tree = in_words(grids::kTree);
    for (int k = 0; k < 3; ++k) words[tree + in_words(grids::kNodeCounts) + k] = bitcast<unsigned>(Int(counts[k]));
    words[tree + in_words(grids::kTreeVoxels)] = bitcast<unsigned>(Int(voxels_before[counts[0]]));
    words[tree + in_words(grids::kTreeVoxels) + 1] = 0u;
    words[at.root + in_words(grids::kTableSize)] = bitcast<unsigned>(Int(counts[2]));
  });
  return k;
}

std::vector<unsigned> words_at(std::span<const std::byte> grid, std::uint64_t at, std::uint64_t bytes) {
  std::vector<unsigned> words(bytes / 4);
  std::memcpy(words.data(), grid.data() + at, bytes);
  return words;
}

}  // namespace

NodeTemplates templates_of(const Device& device, std::span<const std::byte> grid, const grids::Grid& facts,
                           const grids::Levels& levels) {
  const grids::Layout& l = *facts.layout;
  const grids::Levels& at = facts.levels;
  std::vector<std::byte> head(grid.begin(), grid.begin() + std::ptrdiff_t(at.root + l.root.bytes));
  const std::span<std::byte> h(head);
  grids::put(h, grids::kChecksum, ~std::uint64_t(0));
  grids::put(h, grids::kGridBytes, bytes_with(l, levels));
  for (std::size_t level = 0; level < 3; ++level)
    grids::put(h, grids::kTree + grids::kFirstNodes + 8 * level, std::int64_t(levels.first[level] - grids::kTree));
  NodeTemplates made;
  made.head = Array<unsigned>(device, words_at(head, 0, head.size()));
  made.tile = Array<unsigned>(device, words_at(grid, at.root + l.root.bytes, l.tile_bytes));
  for (int level = 0; level < 3; ++level) {
    std::vector<unsigned> node = words_at(grid, at.first[level], l.node_bytes(level));
    if (level > 0) {
      // The child is taken out: the entry after it has the background's value.
      const std::uint32_t values = (level == 2 ? l.upper : l.lower).values / 4, entry = l.table_stride / 4;
      std::copy_n(node.begin() + values + entry, entry, node.begin() + values);
      node[grids::child_mask(level) / 4] = 0;
    }
    made.nodes[level] = Array<unsigned>(device, node);
  }
  return made;
}

grids::Levels levels_with(const grids::Layout& layout, const vec3i& room) {
  grids::Levels levels;
  levels.root = grids::kTree + grids::kTreeBytes;
  levels.tiles = std::uint64_t(room.z);
  std::uint64_t at = levels.root + layout.root.bytes + levels.tiles * layout.tile_bytes;
  for (int level = 2; level >= 0; --level) {
    levels.first[level] = at;
    levels.count[level] = std::uint32_t(room[level]);
    at += std::uint64_t(room[level]) * layout.node_bytes(level);
    if (at > grids::kMostBytes) grids::no_grid("it would have more than {} bytes", grids::kMostBytes);
  }
  return levels;
}

std::uint64_t bytes_with(const grids::Layout& layout, const grids::Levels& levels) {
  return levels.first[0] + levels.count[0] * layout.node_bytes(0);
}

NodePlaces places_of(const grids::Layout& layout, const grids::Levels& levels) {
  NodePlaces p;
  p.root = in_words(levels.root);
  p.tiles = in_words(levels.root + layout.root.bytes);
  p.tile = in_words(layout.tile_bytes);
  p.entry = in_words(layout.table_stride);
  for (int level = 0; level < 3; ++level) {
    p.first[level] = in_words(levels.first[level]);
    p.size[level] = in_words(layout.node_bytes(level));
    p.room[level] = int(levels.count[level]);
  }
  p.values = {in_words(layout.leaf.values), in_words(layout.lower.values), in_words(layout.upper.values)};
  return p;
}

void count_nodes(const TopologyMemory& memory, std::int64_t voxels, const vec3i& room) {
  if (voxels == 0) return;
  launch(count_kernel(), 1, memory.ranks[0], memory.ranks[1], memory.ranks[2], memory.counts, int(voxels), room);
}

void link_nodes(const TopologyMemory& memory, std::int64_t voxels, bool all, const NodeTemplates& templates,
                const NodePlaces& at, const Array<unsigned>& words) {
  words.slice(0, templates.head.size()).copy_from(templates.head);
  const auto fill = [&](const Array<unsigned>& node, int first, int count) {
    if (count > 0) launch(fill_kernel(), {count, node.size()}, words, node, first);
  };
  fill(templates.tile, at.tiles, at.room.z);
  for (int level = 0; level < 3; ++level) fill(templates.nodes[level], at.first[level], at.room[level]);
  if (voxels > 0)
    launch(nodes_kernel(all), voxels, memory.keys, memory.ranks[0], memory.ranks[1], memory.ranks[2], memory.counts,
           words, at, memory.lower_of, memory.upper_of);
}

void finish_nodes(const TopologyMemory& memory, std::int64_t voxels, const NodePlaces& at, const Array<unsigned>& words,
                  const Array<int>& voxels_before) {
  const Array<int> numbers = Row<int>(words);
  Array<int>(voxels_before).zero();
  if (voxels > 0 && at.room.x > 0) {
    launch(leaves_kernel(), at.room.x, memory.counts, words, numbers, at, memory.lower_of, voxels_before);
    for (int level : {1, 2})
      if (at.room[level] > 0) launch(inner_kernel(level), at.room[level], memory.counts, numbers, at, memory.upper_of);
    inclusive_scan(voxels_before, voxels_before, {.scratch = memory.scratch});
  }
  launch(header_kernel(), 1, memory.counts, words, at, voxels_before);
}

}  // namespace weft::detail
