// The header of a grid: magic, version, type, transform, and where its parts lie.
#include "check.h"

#include <bit>
#include <cmath>

namespace weft::grids {

namespace {

bool can_be(VolumeType type, VolumeClass grid_class) {
  const Layout& l = *layout_of(type);
  switch (grid_class) {
    case VolumeClass::unknown:
    case VolumeClass::tensor: return true;
    case VolumeClass::level_set:
    case VolumeClass::fog: return l.is_real() && !l.is_index() && l.scalars == 1;
    case VolumeClass::staggered: return l.scalars > 1;
    case VolumeClass::point_index:
    case VolumeClass::point_data: return type == VolumeType::uint32;
    case VolumeClass::topology: return false;
    case VolumeClass::voxels: return type != VolumeType::int32 && type != VolumeType::int64 && !l.is_index();
    case VolumeClass::index: return l.is_index();
  }
  return false;
}

void check_map(std::span<const std::byte> grid) {
  for (std::size_t k = 0; k < kMapFloats; ++k)
    if (!std::isfinite(get<float>(grid, kMap + 4 * k))) no_grid("its transform is not finite");
  for (std::size_t k = 0; k < kMapFloats; ++k)
    if (!std::isfinite(get<double>(grid, kMap + kMapMatrix + 8 * k))) no_grid("its transform is not finite");
}

/// Whether `count` things of `size` bytes fit at a place. Nothing overflows.
bool fits(std::span<const std::byte> grid, std::uint64_t at, std::uint64_t count, std::uint64_t size) {
  return at <= grid.size() && (size == 0 || count <= (grid.size() - at) / size);
}

/// Bytes of an element of blind data, by its type; those that are not known here have at least one.
std::uint64_t blind_bytes(std::uint32_t type) {
  if (const Layout* l = layout_of(VolumeType(type))) return l->value_bytes();
  return type == 3 || type == 15 ? 2 : type == 12 ? 4 : 1;  // int16, 16 bits of a real, colours; bytes
}

void check_blind_data(std::span<const std::byte> grid) {
  const std::uint32_t count = get<std::uint32_t>(grid, kBlindCount);
  if (count == 0) return;
  const auto first = get<std::int64_t>(grid, kBlindOffset);
  if (first < 0 || first % 8 != 0 || !fits(grid, std::uint64_t(first), count, kBlindBytes))
    no_grid("its blind data lie at {}, out of its {} bytes", first, grid.size());
  for (std::uint64_t k = 0; k < count; ++k) {
    const std::uint64_t entry = std::uint64_t(first) + k * kBlindBytes;
    const auto distance = get<std::int64_t>(grid, entry);
    const std::uint64_t at = entry + std::uint64_t(distance);
    const bool wraps = distance < 0 ? at > entry : at < entry;
    if (wraps ||
        !fits(grid, at, get<std::uint64_t>(grid, entry + 8), blind_bytes(get<std::uint32_t>(grid, entry + 28))))
      no_grid("blind data {} lie out of its {} bytes", k, grid.size());
  }
}

void find_levels(std::span<const std::byte> grid, Grid& g) {
  const Layout& l = *g.layout;
  const auto place = [&](std::size_t offset, std::uint64_t count, std::uint64_t size, const char* what) {
    const auto distance = get<std::int64_t>(grid, kTree + offset);
    const std::uint64_t at = kTree + std::uint64_t(distance);
    if (distance < std::int64_t(kTreeBytes) || at % kAlign != 0 || !fits(grid, at, count, size))
      no_grid("its {} {} lie at {}, which is misaligned or out of its {} bytes", count, what, distance < 0 ? 0 : at,
              grid.size());
    return at;
  };
  g.levels.root = place(kRootOffset, 1, l.root.bytes, "root");
  g.levels.tiles = get<std::uint32_t>(grid, g.levels.root + kTableSize);
  if (g.levels.tiles > kMostTiles) no_grid("its root has {} tiles; {} are supported", g.levels.tiles, kMostTiles);
  if (!fits(grid, g.levels.root + l.root.bytes, g.levels.tiles, l.tile_bytes))
    no_grid("the {} tiles of its root do not fit into its {} bytes", g.levels.tiles, grid.size());
  static constexpr const char* kWhat[] = {"leaves", "lower nodes", "upper nodes"};
  for (std::size_t level = 0; level < 3; ++level) {
    const auto count = get<std::uint32_t>(grid, kTree + kNodeCounts + 4 * level);
    g.levels.count[level] = count;
    // Of a level without nodes, the place means nothing.
    g.levels.first[level] =
        count ? place(kFirstNodes + 8 * level, count, l.node_bytes(int(level)), kWhat[level]) : grid.size();
  }
}

/// Stores of kernels change leaves, and must change no other node.
void check_apart(const Grid& g) {
  const Levels& at = g.levels;
  const std::uint64_t root_end = at.root + g.layout->root.bytes + at.tiles * g.layout->tile_bytes;
  std::uint64_t begins[4] = {at.root}, ends[4] = {root_end};
  for (int level = 0; level < 3; ++level) {
    begins[level + 1] = at.first[level];
    ends[level + 1] = at.first[level] + at.count[level] * g.layout->node_bytes(level);
  }
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b)
      if (begins[a] < ends[b] && begins[b] < ends[a])
        no_grid("the levels of its tree overlap, at {} and at {}", begins[b], begins[a]);
}

double scalar_at(std::span<const std::byte> grid, const Layout& l, std::uint64_t at) {
  switch (l.type) {
    case VolumeType::float16: return double(float(half::from_bits(get<std::uint16_t>(grid, at))));
    case VolumeType::int32: return get<std::int32_t>(grid, at);
    case VolumeType::uint32: return get<std::uint32_t>(grid, at);
    case VolumeType::int64: return double(get<std::int64_t>(grid, at));
    default: return l.scalar_bytes == 8 ? get<double>(grid, at) : double(get<float>(grid, at));
  }
}

}  // namespace

void read_counts(std::span<const std::byte> head, Grid& g) {
  for (std::size_t level = 0; level < 3; ++level)
    g.levels.count[level] = get<std::uint32_t>(head, kTree + kNodeCounts + 4 * level);
  g.levels.tiles = get<std::uint32_t>(head, g.levels.root + kTableSize);
  g.info.leaves = g.levels.count[0];
  g.info.voxels = std::int64_t(get<std::uint64_t>(head, kTree + kTreeVoxels));
  for (int k = 0; k < 3; ++k) {
    g.info.lower[k] = get<std::int32_t>(head, g.levels.root + kBoxLower + 4 * std::size_t(k));
    g.info.upper[k] = get<std::int32_t>(head, g.levels.root + kBoxUpper + 4 * std::size_t(k));
  }
}

namespace {

void describe(std::span<const std::byte> grid, Grid& g) {
  VolumeInfo& info = g.info;
  const Layout& l = *g.layout;
  info.bytes = grid.size();
  const char* const name = reinterpret_cast<const char*>(grid.data() + kName);
  info.name.assign(name, strnlen(name, kNameBytes));
  read_counts(grid, g);
  for (int k = 0; k < 3; ++k) {
    info.translation[k] = get<double>(grid, kMap + kMapTranslation + 8 * std::size_t(k));
    info.voxel_size[k] = get<double>(grid, kVoxelSize + 8 * std::size_t(k));
    for (int c = 0; c < 3; ++c) info.matrix(k, c) = get<double>(grid, kMap + kMapMatrix + 8 * std::size_t(3 * k + c));
  }
  for (int c = 0; !l.is_index() && c < int(l.scalars); ++c)
    info.background[c] = scalar_at(grid, l, g.levels.root + l.background + std::size_t(c) * l.scalar_bytes);
  info.voxels = g.voxels_before.back();  // others count the voxels of tiles, too
}

}  // namespace

void check_magic(std::uint64_t magic) {
  if (magic == kMagic || magic == kGridMagic || magic == kFileMagic) return;
  std::uint64_t swapped = 0;
  for (int k = 0; k < 64; k += 8) swapped |= (magic >> k & 255) << (56 - k);
  if (swapped == kMagic || swapped == kGridMagic || swapped == kFileMagic)
    no_grid("its bytes are in the order of another machine (big-endian)");
  if (std::uint32_t(magic) == 0x56444220) no_grid("it is an OpenVDB file, not a NanoVDB one: convert it first");
  no_grid("it is no NanoVDB data: its magic number is {:016x}", magic);
}

void check_version(std::uint32_t version) {
  if (major_of(version) != major_of(kVersion))
    no_grid("its version is {}.{}.{}; versions {}.x are supported", major_of(version), minor_of(version),
            patch_of(version), major_of(kVersion));
}

Grid check_grid(std::span<const std::byte> bytes) {
  Grid g;
  if (bytes.size() < kHeaderBytes + kTreeBytes) no_grid("{} bytes are too few for a grid", bytes.size());
  const auto magic = get<std::uint64_t>(bytes, 0);
  check_magic(magic);
  if (magic == kFileMagic) no_grid("the magic number of a file stands in place of a grid's");
  const auto version = get<std::uint32_t>(bytes, kGridVersion);
  check_version(version);
  if (get<std::uint64_t>(bytes, kGridBytes) != bytes.size())
    no_grid("it says that it has {} bytes, and it has {}", get<std::uint64_t>(bytes, kGridBytes), bytes.size());
  if (bytes.size() > kMostBytes) no_grid("it has {} bytes; {} are supported", bytes.size(), kMostBytes);
  const auto index = get<std::uint32_t>(bytes, kGridIndex), count = get<std::uint32_t>(bytes, kGridCount);
  if (count == 0 || index >= count) no_grid("it says that it is grid {} of {}", index, count);
  const auto type = get<std::uint32_t>(bytes, kType), grid_class = get<std::uint32_t>(bytes, kClass);
  g.info.type = VolumeType(type);
  g.info.grid_class = VolumeClass(grid_class);
  g.layout = layout_of(g.info.type);
  if (!g.layout) no_grid("its values are of type {}, which is not supported", type);
  if (grid_class > unsigned(VolumeClass::tensor) || !can_be(g.info.type, g.info.grid_class))
    no_grid("a grid of type {} cannot be of class {}", to_string(g.info.type), grid_class);
  if (g.layout->is_index() && version < kFirstIndexVersion)
    no_grid("it is an index grid of version {}.{}.{}; those from 32.6.0 on are supported", major_of(version),
            minor_of(version), patch_of(version));
  check_map(bytes);
  find_levels(bytes, g);
  check_apart(g);
  check_blind_data(bytes);
  if (!checksums_match(bytes, *g.layout, g.levels)) no_grid("its checksum does not match: it is damaged");
  check_tree(bytes, g);
  describe(bytes, g);
  return g;
}

}  // namespace weft::grids
