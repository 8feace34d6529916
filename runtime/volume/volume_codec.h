// How grids are packed in files.
#pragma once
#include <cstdint>

namespace weft {

/// The packing of the grids in a .nvdb file, by NanoVDB's numbers.
enum class VolumeCodec : std::uint16_t {
  none = 0,
  zip = 1,   ///< zlib: the smallest files, slow to write
  blosc = 2  ///< LZ4 over shuffled bytes: quick. Only in builds of weft with the library Blosc.
};

}  // namespace weft
