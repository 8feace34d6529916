// The content of .nvdb files: segments of packed grids, or grids one after the other.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "../grid/check.h"
#include "../volume_codec.h"
#include "codec.h"

namespace weft::grids {

/// A grid in a file.
struct Entry {
  std::string name;
  std::uint64_t grid_bytes = 0;  ///< unpacked
  VolumeCodec codec = VolumeCodec::none;
  std::uint64_t at = 0, bytes = 0;  ///< the place of the packed grid
};

/// The grids of a file, in its order. Nothing is unpacked.
/// Errors: NoGrid for what is no such file, or one that is truncated.
std::vector<Entry> entries_of(std::span<const std::byte> file);

/// A grid of a file, unpacked but not checked: in the file itself if nothing packed it, else in `unpacked`.
/// Errors: NoGrid
std::span<const std::byte> grid_of(std::span<const std::byte> file, const Entry& entry, Unpacked& unpacked);

/// Gives a grid the form in which it is read alone: the only one of its memory, without statistics of nodes, with
/// checksums, and of the version 32.4, as values have one layout in all versions 32.x. Index grids keep their version.
/// \param facts  what check_grid() found; values may have changed since
void make_readable(std::span<std::byte> grid, const Grid& facts);

/// The file of a grid that is in the form of make_readable(). NanoVDB 32.4 reads it, unless it is an index grid: those
/// are in the form of later versions, and so is the whole file then.
/// \param facts  what check_grid() found; values may have changed since
std::vector<std::byte> file_of(std::span<const std::byte> grid, const Grid& facts, VolumeCodec codec);

}  // namespace weft::grids
