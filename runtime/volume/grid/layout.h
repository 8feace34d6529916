// The layout of a NanoVDB grid in memory, as versions 32.x have it: offsets of its parts, for each type of value.
//
//   header (672 bytes), tree (64), root, its table of tiles, upper nodes (32^3), lower nodes (16^3), leaves (8^3), and
//   blind data, which nothing here reads.
//
// All nodes of a level have one size and lie side by side. A tile of the root stands for a cube of 4096 voxels a side,
// an entry of an upper node for 128, of a lower one for 8; each has either a child, as its distance from the node in
// bytes, or a value that all of its voxels share.
// Source: PNanoVDB.h, whose table of offsets a test compares with these.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "../volume_info.h"

namespace weft::grids {

/// "NanoVDB0", the magic of grids and files up to 32.5; "NanoVDB1" and "NanoVDB2" of grids and files since then.
inline constexpr std::uint64_t kMagic = 0x304244566f6e614e, kGridMagic = 0x314244566f6e614e,
                               kFileMagic = 0x324244566f6e614e;

constexpr std::uint32_t version_of(unsigned major, unsigned minor, unsigned patch) {
  return major << 21 | minor << 10 | patch;
}
constexpr unsigned major_of(std::uint32_t version) { return version >> 21; }
constexpr unsigned minor_of(std::uint32_t version) { return version >> 10 & 2047; }
constexpr unsigned patch_of(std::uint32_t version) { return version & 1023; }
/// The version of grids that are made here.
inline constexpr std::uint32_t kVersion = version_of(32, 4, 2);
/// The first version whose index grids have leaves as laid out here.
inline constexpr std::uint32_t kFirstIndexVersion = version_of(32, 6, 0);

// Offsets in the header.
inline constexpr std::size_t kChecksum = 8, kGridVersion = 16, kFlags = 20, kGridIndex = 24, kGridCount = 28,
                             kGridBytes = 32, kName = 40, kNameBytes = 256, kMap = 296, kWorldBox = 560,
                             kVoxelSize = 608, kClass = 632, kType = 636, kBlindOffset = 640, kBlindCount = 648,
                             kIndexedValues = 656, kHeaderBytes = 672;
// Offsets in the map: matrix, inverse and translation in floats, a taper, and all again in doubles.
inline constexpr std::size_t kMapFloats = 21, kMapTaper = 84, kMapMatrix = 88, kMapTranslation = 232,
                             kMapTaperWide = 256;
// Offsets in the tree: distances of the levels from the tree, leaves first, numbers of nodes, of tiles, of voxels.
inline constexpr std::size_t kTree = kHeaderBytes, kFirstNodes = 0, kRootOffset = 24, kNodeCounts = 32,
                             kTileCounts = 44, kTreeVoxels = 56, kTreeBytes = 64;
// Offsets in the root, in its tiles, and in nodes.
inline constexpr std::size_t kBoxLower = 0, kBoxUpper = 12, kTableSize = 24, kTileKey = 0, kTileChild = 8,
                             kTileState = 16, kValueMask = 32, kLeafExtent = 12, kLeafFlags = 15, kLeafMask = 16,
                             kLeafFirstIndex = 80, kLeafPrefix = 88;
inline constexpr std::size_t kAlign = 32, kBlindBytes = 288;
/// The flags of a header that say that nodes have right minima and maxima, averages, deviations.
inline constexpr std::uint32_t kHasStatistics = 4 | 8 | 16;
/// The most tiles of a root: walks look through them one by one. Each stands for 4096 voxels along each axis.
inline constexpr std::uint64_t kMostTiles = 1 << 16;
/// Every checksum that is not there.
inline constexpr std::uint32_t kNoChecksum = 0xffffffff;

/// Offsets of statistics and values in the root or a node; `bytes` is its size.
struct NodeLayout {
  std::uint32_t minimum, maximum, average, deviation, values, bytes;
};
/// The layout for one type of value.
struct Layout {
  VolumeType type;
  std::uint32_t scalars, scalar_bytes;  ///< of a value
  std::uint32_t average_bytes;          ///< of each statistic beside minimum and maximum
  std::uint32_t background, tile_value, tile_bytes, table_stride;
  NodeLayout root, upper, lower, leaf;
  constexpr std::uint32_t value_bytes() const { return scalars * scalar_bytes; }
  constexpr bool is_index() const { return type == VolumeType::index || type == VolumeType::on_index; }
  constexpr bool is_real() const {
    return type != VolumeType::int32 && type != VolumeType::int64 && type != VolumeType::uint32;
  }
  constexpr std::uint64_t node_bytes(int level) const {
    return level == 0 ? leaf.bytes : level == 1 ? lower.bytes : upper.bytes;
  }
};
/// The layout for a type; null for a type that weft does not support.
const Layout* layout_of(VolumeType type);
/// All of them.
std::span<const Layout> layouts();

/// Entries of nodes by level, and log2 of the sides of the cubes that they are for.
inline constexpr std::uint32_t kEntries[] = {512, 4096, 32768};
inline constexpr int kLeafLog = 3, kLowerLog = 7, kUpperLog = 12;
/// The offset of the child mask in a node, which follows its value mask.
constexpr std::size_t child_mask(int level) { return kValueMask + kEntries[level] / 8; }

/// The key of the root's tile for a voxel.
constexpr std::uint64_t root_key(std::int32_t x, std::int32_t y, std::int32_t z) {
  return std::uint64_t(std::uint32_t(z) >> kUpperLog) | std::uint64_t(std::uint32_t(y) >> kUpperLog) << 21 |
         std::uint64_t(std::uint32_t(x) >> kUpperLog) << 42;
}

/// Reads and writes numbers at any place. The caller has checked that they lie inside.
template <class T>
T get(std::span<const std::byte> grid, std::uint64_t at) {
  T value;
  std::memcpy(&value, grid.data() + at, sizeof(T));
  return value;
}
template <class T>
void put(std::span<std::byte> grid, std::uint64_t at, const T& value) {
  std::memcpy(grid.data() + at, &value, sizeof(T));
}

}  // namespace weft::grids
