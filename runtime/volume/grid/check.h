// Checks a grid in the memory of the host: all that kernels later take for granted.
#pragma once
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "checksum.h"

namespace weft::grids {

/// Says why bytes are no grid; the caller puts in front where they come from.
struct NoGrid : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... A>
[[noreturn]] void no_grid(fmt::format_string<A...> text, A&&... values) {
  throw NoGrid(fmt::format(text, std::forward<A>(values)...));
}

/// The facts of a grid that was checked.
struct Grid {
  VolumeInfo info;
  const Layout* layout = nullptr;
  Levels levels;
  /// The active voxels in the leaves before each leaf, and in all leaves.
  std::vector<int> voxels_before;
};

/// The largest grid. Kernels count its values in 32 bits.
inline constexpr std::uint64_t kMostBytes = 0xffffffe0;

/// Throws NoGrid for the magic of no grid or file that weft reads.
void check_magic(std::uint64_t magic);
/// Throws NoGrid for another major version than 32.
void check_version(std::uint32_t version);

/// Checks every offset and count of a grid that fills `bytes`, and that each node lies where its parent says. Nothing
/// is trusted. Grids without checksums are accepted.
/// Errors: NoGrid
/// Cost: a pass over all nodes, and one for the checksums.
Grid check_grid(std::span<const std::byte> bytes);

/// Takes the numbers of nodes and voxels, and the box, from header, tree and root into the facts of a grid.
void read_counts(std::span<const std::byte> head, Grid& grid);

/// Checks the nodes of a grid whose levels lie inside of it, from the root on, and counts the voxels of leaves. Part of
/// check_grid().
void check_tree(std::span<const std::byte> bytes, Grid& grid);

}  // namespace weft::grids
