// Packs grids, and unpacks what files say that they have packed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "../volume_codec.h"

namespace weft::grids {

/// Whether this build of weft has the codec.
bool has_codec(VolumeCodec codec);

/// The part of `rest` in which a grid of that many bytes lies packed, with the sizes that stand before its parts.
/// Errors: NoGrid if the file ends before.
std::uint64_t packed_bytes(VolumeCodec codec, std::span<const std::byte> rest, std::uint64_t grid_bytes);

/// The bytes of a grid that was packed. Their memory is not set to 0 first, as all of it is written.
using Unpacked = std::unique_ptr<std::byte[]>;
/// The grid in a part that packed_bytes() has measured.
/// \param codec  zip or Blosc
/// Errors: NoGrid if it is damaged, or unpacks to another size; std::bad_alloc
Unpacked unpack(VolumeCodec codec, std::span<const std::byte> packed, std::uint64_t grid_bytes);

/// The grid, packed, with the sizes before its parts.
std::vector<std::byte> pack(VolumeCodec codec, std::span<const std::byte> grid);

}  // namespace weft::grids
