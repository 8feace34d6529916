// The two checksums of a grid: of its head, and of its nodes.
#pragma once
#include <cstdint>
#include <span>

#include "layout.h"

namespace weft::grids {

/// The places of a grid's levels. The caller has checked that they lie inside.
struct Levels {
  std::uint64_t root = 0, tiles = 0;   ///< place of the root, number of its tiles
  std::uint64_t first[3] = {0, 0, 0};  ///< place of the first leaf, lower and upper node
  std::uint32_t count[3] = {0, 0, 0};
};

/// Whether the checksums that a grid states, if it states any, are right. Up to version 32.6.0 the head is header, tree
/// and root, and the other one is that of the checksums of all nodes, which some systems keep in 8 bytes each; later it
/// is that of the checksums of blocks of 4 KiB after the tree.
/// Cost: a pass over the grid.
bool checksums_match(std::span<const std::byte> grid, const Layout& layout, const Levels& levels);

/// States both checksums, in the form of version 32.4 on Linux.
void write_checksums(std::span<std::byte> grid, const Layout& layout, const Levels& levels);

}  // namespace weft::grids
