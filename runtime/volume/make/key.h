// The key of a voxel in kernels: its place in the tree, from the root down. Internal to volumes.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../grid/layout.h"

namespace weft::detail {

/// The bits of a key below those that tell leaves, lower and upper nodes apart.
inline constexpr int kLeafBits = 9, kLowerBits = kLeafBits + 12, kUpperBits = kLowerBits + 15;
/// The key of no voxel, which is the last one: keys have 63 bits.
inline constexpr std::uint64_t kNoKey = ~std::uint64_t(0);

/// Some bits of three coordinates, side by side, of which those of z are the lowest.
inline UInt64 bits_of(const Vec3i& v, int shift, int bits) {
  const auto part = [&](const Int& x) { return UInt64(bitcast<unsigned>((x >> shift) & ((1 << bits) - 1))); };
  const auto up = [](int by) { return UInt64(std::uint64_t(by)); };
  return (part(v.x) << up(2 * bits)) | (part(v.y) << up(bits)) | part(v.z);
}

/// The key of a voxel whose coordinates have 21 bits.
inline UInt64 key_of(const Vec3i& v) {
  const auto up = [](int by) { return UInt64(std::uint64_t(by)); };
  return (bits_of(v, grids::kUpperLog, 9) << up(kUpperBits)) | (bits_of(v, grids::kLowerLog, 5) << up(kLowerBits)) |
         (bits_of(v, grids::kLeafLog, 4) << up(kLeafBits)) | bits_of(v, 0, 3);
}

/// The coordinates of the voxel of a key.
inline Vec3i voxel_of(const UInt64& key) {
  Vec3i v;
  for (int k = 0; k < 3; ++k) {
    const int axis = 2 - k;  // z has the lowest bits
    const auto part = [&](int from, int bits, int to) {
      const UInt64 moved = key >> UInt64(std::uint64_t(from + axis * bits));
      return Int(moved & UInt64(std::uint64_t((1 << bits) - 1))) << to;
    };
    const Int tile = part(kUpperBits, 9, grids::kUpperLog);
    v[k] = (tile << 11 >> 11) | part(kLowerBits, 5, grids::kLowerLog) | part(kLeafBits, 4, grids::kLeafLog) |
           part(0, 3, 0);
  }
  return v;
}

}  // namespace weft::detail
