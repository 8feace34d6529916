// The nodes of a grid: each child lies on its level, and at the place in space that its parent gives it.
#include <algorithm>
#include <bit>
#include <vector>

#include "check.h"

namespace weft::grids {

namespace {

struct Origin {
  std::int32_t x, y, z;
};

/// Walks down the tree. A child of the wrong level cannot be reached, so there is no cycle; and a level has no more
/// children than nodes, so the time is bounded by the size of the grid.
class TreeCheck {
 public:
  TreeCheck(std::span<const std::byte> bytes, const Grid& grid)
      : bytes_(bytes), l_(*grid.layout), levels_(grid.levels) {}

  void root() {
    keys();
    for (std::uint64_t k = 0; k < levels_.tiles; ++k) {
      const auto child = get<std::int64_t>(bytes_, tile(k) + kTileChild);
      if (child == 0) continue;
      const auto key = get<std::uint64_t>(bytes_, tile(k) + kTileKey);
      const auto part = [&](int shift) { return std::int32_t(std::uint32_t(key >> shift & 0xfffff) << kUpperLog); };
      internal(2, child_at(levels_.root, child, 2), {part(42), part(21), part(0)});
    }
    for (int level = 0; level < 3; ++level)
      if (reached_[level] != levels_.count[level])
        no_grid("{} of the {} nodes of its level {} are no node's children", levels_.count[level] - reached_[level],
                levels_.count[level], level);
  }

 private:
  std::uint64_t tile(std::uint64_t k) const { return levels_.root + l_.root.bytes + k * l_.tile_bytes; }

  /// A walk takes the first tile whose key is the voxel's, so that another one would never be found.
  void keys() const {
    constexpr std::uint64_t axis = 0xfffff, all = axis | axis << 21 | axis << 42;
    std::vector<std::uint64_t> keys;
    for (std::uint64_t k = 0; k < levels_.tiles; ++k) {
      keys.push_back(get<std::uint64_t>(bytes_, tile(k) + kTileKey));
      if ((keys.back() & ~all) != 0) no_grid("tile {} of its root has a key of no place, {:#x}", k, keys.back());
    }
    std::ranges::sort(keys);
    if (const auto same = std::ranges::adjacent_find(keys); same != keys.end())
      no_grid("two tiles of its root have the key {:#x}", *same);
  }

  /// The place of a child, which is one of its level's nodes.
  std::uint64_t child_at(std::uint64_t parent, std::int64_t distance, int level) {
    const std::uint64_t at = parent + std::uint64_t(distance), first = levels_.first[level];
    const std::uint64_t size = l_.node_bytes(level);
    if (at < first || (at - first) % size != 0 || (at - first) / size >= levels_.count[level])
      no_grid("the child of the node at {} lies at a distance of {}, which is no node of its level", parent, distance);
    if (++reached_[level] > levels_.count[level])
      no_grid("a child of the node at {} is the child of another node, too", parent);
    return at;
  }

  void internal(int level, std::uint64_t node, Origin origin) {
    const NodeLayout& layout = level == 2 ? l_.upper : l_.lower;
    const int child_log = level == 2 ? kLowerLog : kLeafLog, side_log = level == 2 ? 5 : 4;
    const std::uint64_t mask = node + child_mask(level);
    for (std::uint32_t word = 0; word < kEntries[level] / 64; ++word)
      for (auto bits = get<std::uint64_t>(bytes_, mask + 8 * word); bits != 0; bits &= bits - 1) {
        const std::uint32_t n = 64 * word + std::uint32_t(std::countr_zero(bits)), side = (1u << side_log) - 1;
        const auto distance = get<std::int64_t>(bytes_, node + layout.values + std::uint64_t(n) * l_.table_stride);
        const std::uint64_t child = child_at(node, distance, level - 1);
        const auto along = [&](std::int32_t from, std::uint32_t steps) {
          return std::int32_t(std::uint32_t(from) + (steps << child_log));
        };
        const Origin at{along(origin.x, n >> 2 * side_log), along(origin.y, n >> side_log & side),
                        along(origin.z, n & side)};
        level == 2 ? internal(1, child, at) : leaf(child, at);
      }
  }

  /// Voxels are found by the leaf's own coordinates, too.
  void leaf(std::uint64_t node, Origin origin) const {
    const std::int32_t expected[] = {origin.x, origin.y, origin.z};
    for (std::size_t k = 0; k < 3; ++k) {
      const auto lower = get<std::int32_t>(bytes_, node + kBoxLower + 4 * k);
      if ((lower & ~7) != expected[k])
        no_grid("the leaf at {} says that it begins at {} along axis {}, and its place in the tree says {}", node,
                lower & ~7, k, expected[k]);
    }
  }

  const std::span<const std::byte> bytes_;
  const Layout& l_;
  const Levels& levels_;
  std::uint64_t reached_[3] = {};  ///< children so far, by level
};

/// Checks the numbers of an index grid's leaf, by which programs read arrays of their own.
void check_numbers(std::span<const std::byte> bytes, const Layout& l, std::uint64_t leaf, std::uint64_t values) {
  const auto first = get<std::uint64_t>(bytes, leaf + kLeafFirstIndex);
  std::uint64_t count = kEntries[0];
  if (l.type == VolumeType::on_index) {
    const auto prefix = get<std::uint64_t>(bytes, leaf + kLeafPrefix);
    count = 0;
    for (std::uint64_t word = 0; word < 8; ++word) {
      if (word > 0 && (prefix >> 9 * (word - 1) & 511) != count)
        no_grid("the leaf at {} counts its active voxels wrongly", leaf);
      count += std::uint64_t(std::popcount(get<std::uint64_t>(bytes, leaf + kLeafMask + 8 * word)));
    }
  }
  if (count > 0 && (first == 0 || first > values || count > values - first))
    no_grid("the leaf at {} has the numbers from {} on, and the grid has {}", leaf, first, values);
}

}  // namespace

void check_tree(std::span<const std::byte> bytes, Grid& grid) {
  TreeCheck(bytes, grid).root();
  const auto values = get<std::uint64_t>(bytes, kIndexedValues);
  if (grid.layout->is_index() && values > 0x7fffffff)
    no_grid("its numbers run to {}; those below 2^31 are supported", values);
  std::uint64_t voxels = 0;
  grid.voxels_before.assign(1, 0);
  for (std::uint64_t k = 0; k < grid.levels.count[0]; ++k) {
    const std::uint64_t leaf = grid.levels.first[0] + k * grid.layout->leaf.bytes;
    for (std::uint64_t word = 0; word < 8; ++word)
      voxels += std::uint64_t(std::popcount(get<std::uint64_t>(bytes, leaf + kLeafMask + 8 * word)));
    if (voxels > 0x7fffffff) no_grid("it has more than 2^31 - 1 active voxels");
    grid.voxels_before.push_back(int(voxels));
    if (grid.layout->is_index()) check_numbers(bytes, *grid.layout, leaf, values);
  }
}

}  // namespace weft::grids
