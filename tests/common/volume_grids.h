// Grids for tests of volumes: known values in every type, over several nodes of each level.
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "../../runtime/volume/files/nvdb_file.h"
#include "../../runtime/volume/grid/build.h"

namespace weft::test {

/// A grid of a file, as bytes of its own.
inline std::vector<std::byte> grid_of(std::span<const std::byte> file, const grids::Entry& entry) {
  grids::Unpacked unpacked;
  const std::span<const std::byte> grid = grids::grid_of(file, entry, unpacked);
  return {grid.begin(), grid.end()};
}

/// Voxels in eight tiles of the root, in several upper and lower nodes, alone and in full leaves.
inline std::vector<vec3i> some_voxels() {
  std::vector<vec3i> voxels;
  for (int x = -10; x <= 10; ++x)
    for (int y = -10; y <= 10; ++y)
      for (int z = -10; z <= 10; ++z) voxels.push_back({x, y, z});
  for (const vec3i& far : {vec3i{130, 0, 5}, vec3i{-200, 127, 128}, vec3i{5000, -4097, 3}, vec3i{-1000000, 77, 999999},
                           vec3i{2147483647, -2147483647 - 1, 0}})
    voxels.push_back(far);
  return voxels;
}

/// The value of a voxel: distinct, and exact in every type (half counts to 2048).
inline int number_of(const vec3i& at, int component = 0) {
  const std::int64_t sum = std::int64_t(at.x) * 7 + std::int64_t(at.y) * 31 + std::int64_t(at.z) * 3 + component * 11;
  return int(sum % 1000) - 300;
}

inline constexpr int kBackground = 500;

/// Writes a number as a scalar of a type of values.
inline void put_scalar(std::span<std::byte> grid, std::uint64_t at, VolumeType type, double x) {
  switch (type) {
    case VolumeType::float16: return grids::put(grid, at, half(x));
    case VolumeType::int32: return grids::put(grid, at, std::int32_t(x));
    case VolumeType::uint32: return grids::put(grid, at, std::uint32_t(std::int32_t(x)));
    case VolumeType::int64: return grids::put(grid, at, std::int64_t(x));
    case VolumeType::float64:
    case VolumeType::vec3d:
    case VolumeType::vec4d: return grids::put(grid, at, x);
    case VolumeType::index:
    case VolumeType::on_index: return grids::put(grid, at, std::uint64_t(0));
    default: return grids::put(grid, at, float(x));
  }
}

/// A grid of the type in which each active voxel has number_of() it, component by component. Its leaves' other voxels,
/// and all others, have kBackground + component.
inline std::vector<std::byte> some_grid(VolumeType type, const std::vector<vec3i>& voxels = some_voxels(),
                                        bool checksum = true) {
  const grids::Layout& l = *grids::layout_of(type);
  grids::GridPlan plan;
  plan.type = type;
  plan.grid_class = l.is_index() ? VolumeClass::index : VolumeClass::unknown;
  plan.name = "numbers";
  plan.matrix = mat33d(0.5, 0, 0, 0, 0.25, 0.125, 0, 0, 2);
  plan.translation = {1, -2, 3};
  plan.background.resize(l.value_bytes());
  for (std::uint32_t c = 0; c < l.scalars; ++c)
    put_scalar(plan.background, c * l.scalar_bytes, type, kBackground + double(c));
  const std::vector<grids::LeafPlan> leaves = grids::leaves_of(voxels, false);
  std::vector<std::byte> grid = grids::build_grid(plan, leaves);
  const grids::Grid facts = grids::check_grid(grid);
  for (std::size_t k = 0; k < leaves.size() && !l.is_index(); ++k)
    for (int n = 0; n < 512; ++n) {
      if (!(leaves[k].active[std::size_t(n / 64)] >> (n & 63) & 1)) continue;
      const vec3i o = leaves[k].origin, at{o.x + (n >> 6), o.y + (n >> 3 & 7), o.z + (n & 7)};
      for (std::uint32_t c = 0; c < l.scalars; ++c)
        put_scalar(grid,
                   facts.levels.first[0] + k * l.leaf.bytes + l.leaf.values + std::size_t(n) * l.value_bytes() +
                       c * l.scalar_bytes,
                   type, number_of(at, int(c)));
    }
  if (checksum)
    grids::write_checksums(grid, l, facts.levels);
  else
    grids::put(std::span(grid), grids::kChecksum, ~std::uint64_t(0));
  return grid;
}

/// A file of one segment that holds these grids, in the form in which they are read alone.
inline std::vector<std::byte> file_of(std::vector<std::vector<std::byte>> grids, VolumeCodec codec) {
  constexpr std::ptrdiff_t kHeader = 16, kFacts = 176;
  std::vector<std::byte> file, payload;
  for (std::vector<std::byte>& grid : grids) {
    const grids::Grid facts = grids::check_grid(grid);
    grids::make_readable(grid, facts);
    const std::vector<std::byte> alone = grids::file_of(grid, facts, codec);
    const auto packed = alone.begin() + kHeader + kFacts + std::ptrdiff_t(facts.info.name.size()) + 1;
    file.insert(file.end(), alone.begin() + (file.empty() ? 0 : kHeader), packed);
    payload.insert(payload.end(), packed, alone.end());
  }
  grids::put(std::span(file), 12, std::uint16_t(grids.size()));
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

}  // namespace weft::test
