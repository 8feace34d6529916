// Reads and writes the frame of .nvdb files.
//
// A segment is a header of 16 bytes (magic, version, number of grids, codec), for each grid 176 bytes of facts and a
// name that ends with 0, and then the packed grids. Files of one or more segments have the magic of version 32.4 or a
// new one. Since 32.6 there are also files of grids as they are in memory, which begin with a grid's magic.
#include "nvdb_file.h"

#include "codec.h"

namespace weft::grids {

namespace {

constexpr std::size_t kSegmentVersion = 8, kSegmentCount = 12, kSegmentCodec = 14, kSegmentBytes = 16;
constexpr std::size_t kMetaGridBytes = 0, kMetaFileBytes = 8, kMetaNameKey = 16, kMetaVoxels = 24, kMetaType = 32,
                      kMetaClass = 36, kMetaWorldBox = 40, kMetaIndexBox = 88, kMetaVoxelSize = 112,
                      kMetaNameBytes = 136, kMetaNodes = 140, kMetaTiles = 156, kMetaCodec = 168, kMetaVersion = 172,
                      kMetaBytes = 176;

/// Whether a file that begins with the oldest magic begins with a grid: its version stands elsewhere.
bool begins_with_grid(std::span<const std::byte> file) {
  const auto magic = get<std::uint64_t>(file, 0);
  if (magic != kMagic) return magic == kGridMagic;
  return file.size() >= kHeaderBytes && major_of(get<std::uint32_t>(file, kSegmentVersion)) != major_of(kVersion) &&
         major_of(get<std::uint32_t>(file, kGridVersion)) == major_of(kVersion) &&
         get<std::uint64_t>(file, kGridBytes) <= file.size();
}

std::vector<Entry> raw_grids(std::span<const std::byte> file) {
  std::vector<Entry> entries;
  for (std::uint64_t at = 0; at < file.size();) {
    if (file.size() - at < kHeaderBytes)
      no_grid("the file is truncated: it ends in the header of grid {}", entries.size());
    check_magic(get<std::uint64_t>(file, at));
    const auto bytes = get<std::uint64_t>(file, at + kGridBytes);
    if (bytes < kHeaderBytes) no_grid("grid {} says that it has {} bytes", entries.size(), bytes);
    if (bytes > file.size() - at) no_grid("the file is truncated: it ends in a grid of {} bytes", bytes);
    const char* const name = reinterpret_cast<const char*>(file.data() + at + kName);
    entries.push_back({std::string(name, strnlen(name, kNameBytes)), bytes, VolumeCodec::none, at, bytes});
    at += bytes;
  }
  return entries;
}

/// The facts of one grid; returns the place after its name.
std::uint64_t read_facts(std::span<const std::byte> file, std::uint64_t at, VolumeCodec codec,
                         std::vector<Entry>& entries, std::vector<std::uint64_t>& stated) {
  if (file.size() - at < kMetaBytes)
    no_grid("the file is truncated: it ends in the facts about grid {}", entries.size());
  Entry e;
  e.codec = codec;
  e.grid_bytes = get<std::uint64_t>(file, at + kMetaGridBytes);
  if (e.grid_bytes > kMostBytes)
    no_grid("grid {} has {} bytes; {} are supported", entries.size(), e.grid_bytes, kMostBytes);
  if (e.grid_bytes < kHeaderBytes + kTreeBytes)
    no_grid("grid {} has {} bytes, too few for a grid", entries.size(), e.grid_bytes);
  stated.push_back(get<std::uint64_t>(file, at + kMetaFileBytes));
  const auto name = get<std::uint32_t>(file, at + kMetaNameBytes);
  at += kMetaBytes;
  if (name > file.size() - at) no_grid("the file is truncated: it ends in the name of grid {}", entries.size());
  const char* const text = reinterpret_cast<const char*>(file.data() + at);
  e.name.assign(text, strnlen(text, name));
  entries.push_back(std::move(e));
  return at + name;
}

}  // namespace

std::vector<Entry> entries_of(std::span<const std::byte> file) {
  if (file.size() < kSegmentBytes) no_grid("the file is truncated: it has {} bytes", file.size());
  check_magic(get<std::uint64_t>(file, 0));
  if (begins_with_grid(file)) return raw_grids(file);
  std::vector<Entry> entries;
  std::vector<std::uint64_t> stated;
  for (std::uint64_t at = 0; at < file.size();) {
    if (file.size() - at < kSegmentBytes) no_grid("the file is truncated: it ends in the header of a segment");
    const auto magic = get<std::uint64_t>(file, at);
    check_magic(magic);
    if (magic == kGridMagic) no_grid("a grid stands in place of a segment");
    check_version(get<std::uint32_t>(file, at + kSegmentVersion));
    const auto count = get<std::uint16_t>(file, at + kSegmentCount),
               number = get<std::uint16_t>(file, at + kSegmentCodec);
    if (count == 0) no_grid("a segment of the file has no grids");
    if (number > std::uint16_t(VolumeCodec::blosc)) no_grid("its codec is number {}, which nobody knows", number);
    at += kSegmentBytes;
    const std::size_t first = entries.size();
    for (int k = 0; k < count; ++k) at = read_facts(file, at, VolumeCodec(number), entries, stated);
    for (std::size_t k = first; k < entries.size(); ++k) {
      Entry& e = entries[k];
      e.at = at;
      e.bytes = packed_bytes(e.codec, file.subspan(at), e.grid_bytes);
      // Some writers leave the sizes before the blobs out of what they state.
      if (const std::uint64_t s = stated[k]; s > e.bytes || e.bytes - s > 8 * (e.grid_bytes / (1u << 30) + 1))
        no_grid("grid {} says that it takes {} bytes of the file, and it takes {}", k, s, e.bytes);
      at += e.bytes;
    }
  }
  return entries;
}

std::span<const std::byte> grid_of(std::span<const std::byte> file, const Entry& entry, Unpacked& unpacked) {
  if (!has_codec(entry.codec)) no_grid("it is packed by Blosc, which this build of weft does not have");
  const std::span<const std::byte> part = file.subspan(entry.at, entry.bytes);
  if (entry.codec == VolumeCodec::none) return part;
  unpacked = unpack(entry.codec, part, entry.grid_bytes);
  return {unpacked.get(), entry.grid_bytes};
}

namespace {

/// NanoVDB's hash of names.
std::uint64_t name_key(const std::string& name) {
  std::uint64_t hash = 0;
  for (const char c : name) {
    const std::uint64_t overflow = hash >> 56;
    hash = hash * 67 + static_cast<unsigned char>(c) + overflow;
  }
  return hash;
}

}  // namespace

void make_readable(std::span<std::byte> grid, const Grid& facts) {
  put(grid, kGridIndex, std::uint32_t(0));
  put(grid, kGridCount, std::uint32_t(1));
  put(grid, kFlags, get<std::uint32_t>(grid, kFlags) & ~kHasStatistics);
  if (!facts.layout->is_index()) {
    put(grid, 0, kMagic);
    put(grid, kGridVersion, kVersion);
  }
  write_checksums(grid, *facts.layout, facts.levels);
}

std::vector<std::byte> file_of(std::span<const std::byte> grid, const Grid& facts, VolumeCodec codec) {
  const bool newer = facts.layout->is_index();
  const std::string& name = facts.info.name;
  const std::vector<std::byte> packed = pack(codec, grid);
  std::vector<std::byte> file(kSegmentBytes + kMetaBytes + name.size() + 1);
  const std::span<std::byte> segment(file), to = segment.subspan(kSegmentBytes);
  const auto copy = [&](std::size_t at, std::uint64_t from, std::size_t bytes) {
    std::memcpy(to.data() + at, grid.data() + from, bytes);
  };
  put(segment, 0, newer ? kFileMagic : kMagic);
  put(segment, kSegmentVersion, newer ? version_of(32, 6, 0) : kVersion);
  put(segment, kSegmentCount, std::uint16_t(1));
  put(segment, kSegmentCodec, codec);
  put(to, kMetaGridBytes, std::uint64_t(grid.size()));
  put(to, kMetaFileBytes, std::uint64_t(packed.size()));
  put(to, kMetaNameKey, name_key(name));
  copy(kMetaVoxels, kTree + kTreeVoxels, 8);
  copy(kMetaType, kType, 4);
  copy(kMetaClass, kClass, 4);
  copy(kMetaWorldBox, kWorldBox, 48);
  copy(kMetaIndexBox, facts.levels.root + kBoxLower, 24);
  copy(kMetaVoxelSize, kVoxelSize, 24);
  put(to, kMetaNameBytes, std::uint32_t(name.size() + 1));
  copy(kMetaNodes, kTree + kNodeCounts, 12);
  put(to, kMetaNodes + 12, std::uint32_t(1));
  copy(kMetaTiles, kTree + kTileCounts, 12);
  put(to, kMetaCodec, codec);
  copy(kMetaVersion, kGridVersion, 4);
  std::memcpy(to.data() + kMetaBytes, name.data(), name.size());
  file.insert(file.end(), packed.begin(), packed.end());
  return file;
}

}  // namespace weft::grids
