// Checksums by zlib's crc32, which is the one that NanoVDB has.
#include "checksum.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

namespace weft::grids {

namespace {

std::uint32_t crc(std::span<const std::byte> bytes) {
  return std::uint32_t(crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

/// Whether the sum of what follows the header is one over blocks of bytes, and not over nodes.
bool has_blocks(std::span<const std::byte> grid) {
  return get<std::uint32_t>(grid, kGridVersion) > version_of(32, 6, 0);
}

std::uint32_t head(std::span<const std::byte> grid, const Layout& layout, const Levels& levels) {
  const std::uint64_t end =
      has_blocks(grid) ? kHeaderBytes + kTreeBytes : levels.root + layout.root.bytes + levels.tiles * layout.tile_bytes;
  return crc(grid.subspan(kGridVersion, end - kGridVersion));
}

std::vector<std::uint32_t> of_nodes(std::span<const std::byte> grid, const Layout& layout, const Levels& levels) {
  std::vector<std::uint32_t> sums;
  for (int level = 2; level >= 0; --level)
    for (std::uint64_t k = 0; k < levels.count[level]; ++k)
      sums.push_back(crc(grid.subspan(levels.first[level] + k * layout.node_bytes(level), layout.node_bytes(level))));
  return sums;
}

std::uint32_t of_sums(const std::vector<std::uint32_t>& sums) { return crc(std::as_bytes(std::span(sums))); }
std::uint32_t of_wide_sums(const std::vector<std::uint32_t>& sums) {
  const std::vector<std::uint64_t> wide(sums.begin(), sums.end());
  return crc(std::as_bytes(std::span(wide)));
}

/// The last block also has what is left of the grid, so that less than one block has no sum.
std::uint32_t of_blocks(std::span<const std::byte> grid) {
  constexpr std::uint64_t block = 4096;
  const std::span<const std::byte> rest = grid.subspan(kHeaderBytes + kTreeBytes);
  const std::uint64_t blocks = rest.size() / block;
  std::vector<std::uint32_t> sums;
  for (std::uint64_t k = 0; k < blocks; ++k)
    sums.push_back(crc(rest.subspan(k * block, k + 1 < blocks ? block : rest.size() - k * block)));
  return of_sums(sums);
}

}  // namespace

bool checksums_match(std::span<const std::byte> grid, const Layout& layout, const Levels& levels) {
  const auto stated = get<std::uint32_t>(grid, kChecksum), stated_tail = get<std::uint32_t>(grid, kChecksum + 4);
  if (stated == kNoChecksum && stated_tail == kNoChecksum) return true;
  if (stated != head(grid, layout, levels)) return false;
  if (stated_tail == kNoChecksum) return true;
  if (has_blocks(grid)) return stated_tail == of_blocks(grid);
  const std::vector<std::uint32_t> sums = of_nodes(grid, layout, levels);
  return stated_tail == of_sums(sums) || stated_tail == of_wide_sums(sums);
}

void write_checksums(std::span<std::byte> grid, const Layout& layout, const Levels& levels) {
  put(grid, kChecksum, head(grid, layout, levels));
  if (has_blocks(grid)) return put(grid, kChecksum + 4, of_blocks(grid));
  const std::vector<std::uint32_t> sums = of_nodes(grid, layout, levels);
  put(grid, kChecksum + 4, sums.empty() ? kNoChecksum : of_wide_sums(sums));
}

}  // namespace weft::grids
