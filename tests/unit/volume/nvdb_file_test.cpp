// Files of volumes: every codec and magic, several grids, and damage of every kind.
#include "../../../runtime/volume/files/nvdb_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "../../../runtime/volume/files/codec.h"
#include "../../common/volume_grids.h"
#ifdef WEFT_NANOVDB
#include <nanovdb/util/GridChecksum.h>
#include <nanovdb/util/GridValidator.h>
#include <nanovdb/util/IO.h>
#include <nanovdb/util/Primitives.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#endif

namespace weft {
namespace {

using grids::Entry;
using grids::get;
using grids::put;
using test::some_grid;

std::vector<VolumeCodec> codecs() {
  std::vector<VolumeCodec> all{VolumeCodec::none, VolumeCodec::zip};
  if (grids::has_codec(VolumeCodec::blosc)) all.push_back(VolumeCodec::blosc);
  return all;
}

std::vector<vec3i> few_voxels() { return {{1, 2, 3}, {100, 200, -300}}; }

std::vector<std::vector<std::byte>> two_grids() {
  return {some_grid(VolumeType::float32, few_voxels()), some_grid(VolumeType::vec3d, few_voxels())};
}

std::string refusal(std::span<const std::byte> file) {
  try {
    for (const Entry& e : grids::entries_of(file)) grids::check_grid(test::grid_of(file, e));
  } catch (const grids::NoGrid& e) {
    return e.what();
  }
  return {};
}

TEST(NvdbFile, gives_back_the_grids_that_were_written) {
  const std::vector<std::vector<std::byte>> grids = two_grids();
  for (const VolumeCodec codec : codecs())
    for (const std::uint64_t magic : {grids::kMagic, grids::kFileMagic}) {
      SCOPED_TRACE(int(codec));
      std::vector<std::byte> file = test::file_of(grids, codec);
      EXPECT_EQ(get<std::uint64_t>(file, 0), grids::kMagic) << "as 32.4 reads it";
      put(std::span(file), 0, magic);
      const std::vector<Entry> entries = grids::entries_of(file);
      ASSERT_EQ(entries.size(), 2u);
      for (std::size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(entries[k].name, "numbers");
        EXPECT_EQ(test::grid_of(file, entries[k]), grids[k]);
      }
    }
}

TEST(NvdbFile, may_have_several_segments_and_sizes_without_prefixes) {
  const std::vector<std::vector<std::byte>> grids = two_grids();
  std::vector<std::byte> file = test::file_of({grids[0]}, VolumeCodec::zip);
  // The size of the packed grid, as some writers state it.
  put(std::span(file), 16 + 8, get<std::uint64_t>(file, 16 + 8) - 8);
  const std::vector<std::byte> more = test::file_of({grids[1]}, VolumeCodec::none);
  file.insert(file.end(), more.begin(), more.end());
  const std::vector<Entry> entries = grids::entries_of(file);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(test::grid_of(file, entries[0]), grids[0]);
  EXPECT_EQ(test::grid_of(file, entries[1]), grids[1]);
}

TEST(NvdbFile, may_be_grids_as_they_are_in_memory) {
  std::vector<std::vector<std::byte>> grids = two_grids();
  for (const std::uint64_t magic : {grids::kMagic, grids::kGridMagic}) {
    std::vector<std::byte> file;
    for (std::vector<std::byte>& g : grids) {
      put(std::span(g), 0, magic);
      file.insert(file.end(), g.begin(), g.end());
    }
    const std::vector<Entry> entries = grids::entries_of(file);
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(test::grid_of(file, entries[1]), grids[1]);
  }
}

TEST(NvdbFile, of_index_grids_is_in_the_form_of_later_versions) {
  const std::vector<std::vector<std::byte>> grids = {some_grid(VolumeType::on_index, few_voxels())};
  const std::vector<std::byte> file = test::file_of(grids, VolumeCodec::none);
  EXPECT_EQ(get<std::uint64_t>(file, 0), grids::kFileMagic);
  EXPECT_EQ(test::grid_of(file, grids::entries_of(file)[0]), grids[0]);
}

TEST(NvdbFile, that_ends_early_is_refused) {
  const std::vector<std::vector<std::byte>> grids = two_grids();
  for (const VolumeCodec codec : codecs()) {
    const std::vector<std::byte> file = test::file_of(grids, codec);
    const std::size_t facts = 16 + 2 * (176 + 8);
    for (std::size_t size = 0; size < file.size(); size += size < facts + 16 ? 1 : file.size() / 50 + 1)
      EXPECT_NE(refusal(std::span(file).first(size)), "") << "codec " << int(codec) << ", " << size << " bytes";
  }
}

TEST(NvdbFile, that_is_damaged_is_refused_with_the_reason) {
  const std::vector<std::vector<std::byte>> grids = {some_grid(VolumeType::float32, few_voxels())};
  struct Damage {
    VolumeCodec codec;
    std::uint64_t at, value;
    int bytes;
    const char* message;
  };
  constexpr std::uint64_t meta = 16, payload = 16 + 176 + 8;
  constexpr VolumeCodec none = VolumeCodec::none, zip = VolumeCodec::zip;
  const Damage all[] = {
      {none, 0, 0, 8, "no NanoVDB data"},
      {none, 0, 0x4e616e6f56444232, 8, "another machine"},
      {none, 0, 0x56444220, 8, "OpenVDB"},
      {none, 8, grids::version_of(30, 0, 0), 4, "its version is 30.0.0"},
      {none, 12, 0, 2, "has no grids"},
      {none, 12, 2, 2, "grid 1 has"},  // where its entry would be, there is the first grid
      {none, 14, 3, 2, "codec is number 3"},
      {none, 14, 0xffff, 2, "codec is number 65535"},
      {none, 14, 1, 2, ""},  // the grid's first bytes as a size
      {none, meta, ~std::uint64_t(0), 8, "are supported"},
      {none, meta, 100, 8, "too few for a grid"},
      {none, meta, std::uint64_t(1) << 31, 8, "truncated"},
      {none, meta + 8, 17, 8, "says that it takes 17 bytes"},
      {none, meta + 136, 0xffffffff, 4, "ends in the name"},
      {zip, meta, std::uint64_t(1) << 31, 8, "cannot hold a grid"},
      {zip, meta, grids[0].size() + 32, 8, "unpacks to"},
      {zip, meta, grids[0].size() - 32, 8, "unpack"},
      {zip, payload, std::uint64_t(1) << 62, 8, "truncated"},
      {zip, payload, 9, 8, ""},
      {zip, payload + 8, 0, 8, "zlib cannot unpack"},
      {zip, payload + 100, 0x1234567890abcdef, 8, ""},
  };
  for (const Damage& d : all) {
    std::vector<std::byte> file = test::file_of(grids, d.codec);
    std::memcpy(file.data() + d.at, &d.value, std::size_t(d.bytes));
    const std::string why = refusal(file);
    EXPECT_NE(why, "") << "at " << d.at;
    EXPECT_NE(why.find(d.message), std::string::npos) << "at " << d.at << ": " << why;
  }
}

// Nothing is unpacked before each blob's own header agrees with the grid's size, which is 4 GiB here.
TEST(NvdbFile, of_empty_blobs_is_refused) {
  if (!grids::has_codec(VolumeCodec::blosc)) GTEST_SKIP() << "this build does not have Blosc";
  const std::vector<std::vector<std::byte>> grids = {some_grid(VolumeType::float32, few_voxels())};
  std::vector<std::byte> file = test::file_of(grids, VolumeCodec::blosc);
  file.resize(16 + 176 + 8 + 4 * 8);
  const std::span<std::byte> bytes(file);
  put(bytes, 16, std::uint64_t(0xffffffe0));
  put(bytes, 16 + 8, std::uint64_t(32));
  std::fill(file.end() - 32, file.end(), std::byte());
  EXPECT_NE(refusal(file).find("Blosc cannot unpack"), std::string::npos) << refusal(file);
}

TEST(NvdbFile, says_only_what_is_known_of_its_grid) {
  for (const VolumeType type : {VolumeType::float32, VolumeType::on_index}) {
    std::vector<std::byte> grid = some_grid(type, few_voxels(), false);
    const std::span<std::byte> bytes(grid);
    put(bytes, grids::kFlags, get<std::uint32_t>(grid, grids::kFlags) | grids::kHasStatistics);
    put(bytes, grids::kGridIndex, 1u);
    put(bytes, grids::kGridCount, 3u);
    grids::make_readable(grid, grids::check_grid(grid));
    EXPECT_EQ(get<std::uint32_t>(grid, grids::kFlags) & grids::kHasStatistics, 0u) << "values may have changed";
    EXPECT_EQ(get<std::uint32_t>(grid, grids::kGridIndex), 0u);
    EXPECT_EQ(get<std::uint32_t>(grid, grids::kGridCount), 1u) << "there is no other grid behind it";
    EXPECT_NE(get<std::uint64_t>(grid, grids::kChecksum), ~std::uint64_t(0));
    grids::check_grid(grid);
  }
}

TEST(NvdbFile, of_a_later_index_grid_has_the_checksums_of_its_version) {
  std::vector<std::byte> grid = some_grid(VolumeType::on_index, few_voxels(), false);
  put(std::span<std::byte>(grid), grids::kGridVersion, grids::version_of(32, 7, 0));
  grids::make_readable(grid, grids::check_grid(grid));
  EXPECT_EQ(get<std::uint32_t>(grid, grids::kGridVersion), grids::version_of(32, 7, 0));
  EXPECT_EQ(refusal(grid), "");
  for (const std::size_t at : {std::size_t(grids::kFlags), grid.size() - 1}) {
    std::vector<std::byte> damaged = grid;
    damaged[at] ^= std::byte(1);
    EXPECT_NE(refusal(damaged).find("checksum"), std::string::npos) << at;
  }
}

TEST(NvdbFile, with_random_changes_crashes_nothing) {
  std::mt19937_64 random(3);
  const std::vector<std::vector<std::byte>> grids = {some_grid(VolumeType::float32, {{1, 2, 3}}, false)};
  int refused = 0;
  for (const VolumeCodec codec : codecs()) {
    const std::vector<std::byte> good = test::file_of(grids, codec);
    for (int k = 0; k < 1000; ++k) {
      std::vector<std::byte> file = good;
      for (int n = 0; n < 2; ++n)
        file[random() % (n == 0 ? 16 + 176 + 8 + 64 : file.size())] ^= std::byte(1 << random() % 8);
      refused += !refusal(file).empty();
    }
  }
  EXPECT_GT(refused, 1000);
}

#ifdef WEFT_NANOVDB

std::vector<std::byte> bytes_of(const nanovdb::GridHandle<>& handle) {
  const auto* first = reinterpret_cast<const std::byte*>(handle.data());
  return {first, first + handle.size()};
}

TEST(NvdbFile, of_nanovdb_itself_is_read) {
  const auto sphere = nanovdb::createLevelSetSphere<float>(20, nanovdb::Vec3f(0), 1.0, 3.0, nanovdb::Vec3d(0), "ball");
  const auto fog =
      nanovdb::createFogVolumeTorus<double>(20.0, 8.0, nanovdb::Vec3d(3), 0.5, 3.0, nanovdb::Vec3d(0), "ring");
  // NanoVDB's writer moves past the end of its stream, which memory does not allow.
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("weft-volumes-{:x}.nvdb", std::random_device()());
  {
    std::ofstream stream(path, std::ios::binary);
    for (const auto* handle : {&sphere, &fog}) nanovdb::io::writeGrid(stream, *handle);
  }
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  const std::string text = content.str();
  const std::span<const std::byte> file = std::as_bytes(std::span(text));
  const std::vector<Entry> entries = grids::entries_of(file);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "ball");
  EXPECT_EQ(entries[1].name, "ring");
  EXPECT_EQ(test::grid_of(file, entries[0]), bytes_of(sphere));
  const grids::Grid ball = grids::check_grid(test::grid_of(file, entries[0]));
  EXPECT_EQ(ball.info.grid_class, VolumeClass::level_set);
  EXPECT_EQ(ball.info.voxels, std::int64_t(sphere.grid<float>()->activeVoxelCount()));
  EXPECT_EQ(ball.info.background.x, 3);
  EXPECT_EQ(grids::check_grid(test::grid_of(file, entries[1])).info.type, VolumeType::float64);
}

TEST(NvdbFile, of_nanovdb_with_any_checksum_is_read) {
  for (const auto mode :
       {nanovdb::ChecksumMode::Disable, nanovdb::ChecksumMode::Partial, nanovdb::ChecksumMode::Full}) {
    auto handle = nanovdb::createLevelSetSphere<float>(10);
    nanovdb::updateChecksum(*handle.grid<float>(), mode);
    std::vector<std::byte> grid = bytes_of(handle);
    EXPECT_EQ(grids::check_grid(grid).info.leaves, handle.grid<float>()->tree().nodeCount(0));
    if (mode == nanovdb::ChecksumMode::Disable) continue;
    grid[grids::kName] ^= std::byte(1);
    EXPECT_THROW(grids::check_grid(grid), grids::NoGrid);
  }
}

TEST(NvdbFile, that_weft_writes_is_read_by_nanovdb) {
  const std::vector<std::vector<std::byte>> grids = two_grids();
  const std::vector<std::byte> file = test::file_of(grids, VolumeCodec::none);
  std::istringstream stream(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  const auto handles = nanovdb::io::readGrids(stream);
  ASSERT_EQ(handles.size(), 2u);
  const auto* grid = handles[0].grid<float>();
  ASSERT_TRUE(grid);
  EXPECT_TRUE(nanovdb::isValid(*grid, true, true));
  EXPECT_TRUE(nanovdb::validateChecksum(*grid, nanovdb::ChecksumMode::Full));
  EXPECT_EQ(grid->activeVoxelCount(), 2u);
  EXPECT_EQ(grid->tree().getValue(nanovdb::Coord(100, 200, -300)), float(test::number_of({100, 200, -300})));
  EXPECT_EQ(grid->tree().getValue(nanovdb::Coord(101, 200, -300)), float(test::kBackground));
  EXPECT_TRUE(grid->tree().isActive(nanovdb::Coord(1, 2, 3)));
  ASSERT_TRUE(handles[1].grid<nanovdb::Vec3d>());
  EXPECT_TRUE(nanovdb::isValid(*handles[1].grid<nanovdb::Vec3d>(), true, true));
  EXPECT_EQ(handles[1].grid<nanovdb::Vec3d>()->tree().getValue(nanovdb::Coord(1, 2, 3))[2],
            double(test::number_of({1, 2, 3}, 2)));
}

#endif

}  // namespace
}  // namespace weft
