// Grids in the memory of the host: their layout, what is found in them, and damage of every kind.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "../../common/volume_grids.h"
#ifdef WEFT_NANOVDB
#define PNANOVDB_C
#include <nanovdb/PNanoVDB.h>
#endif

namespace weft {
namespace {

using grids::check_grid;
using grids::get;
using grids::put;
using test::some_grid;

/// Why bytes are no grid; empty if they are one.
std::string refusal(std::span<const std::byte> bytes) {
  try {
    check_grid(bytes);
  } catch (const grids::NoGrid& e) {
    return e.what();
  }
  return {};
}

TEST(VolumeGrid, of_every_type_is_accepted_and_described) {
  const std::vector<vec3i> voxels = test::some_voxels();
  for (const grids::Layout& l : grids::layouts()) {
    SCOPED_TRACE(to_string(l.type));
    const std::vector<std::byte> bytes = some_grid(l.type);
    const grids::Grid grid = check_grid(bytes);
    EXPECT_EQ(grid.info.type, l.type);
    EXPECT_EQ(grid.info.name, "numbers");
    EXPECT_EQ(grid.info.voxels, std::int64_t(voxels.size()));
    EXPECT_EQ(grid.info.leaves, 64 + 5);  // -16 to 15 along each axis, and five
    EXPECT_EQ(grid.info.lower, vec3i(-1000000, -2147483647 - 1, -10));
    EXPECT_EQ(grid.info.upper, vec3i(2147483647, 127, 999999));
    EXPECT_EQ(grid.info.bytes, bytes.size());
    EXPECT_EQ(grid.info.matrix(1, 2), 0.125);
    EXPECT_EQ(grid.info.voxel_size.x, 0.5);
    for (int c = 0; c < int(l.scalars) && !l.is_index(); ++c) EXPECT_EQ(grid.info.background[c], test::kBackground + c);
    EXPECT_EQ(grid.voxels_before.size(), std::size_t(grid.info.leaves) + 1);
  }
}

#ifdef WEFT_NANOVDB
// The table of the library's header for C, in its order of columns.
TEST(VolumeGrid, layout_is_that_of_nanovdb) {
  for (const grids::Layout& l : grids::layouts()) {
    SCOPED_TRACE(to_string(l.type));
    if (l.is_index()) continue;  // the library knows only an older layout of their leaves
    const pnanovdb_grid_type_constants_t& c = pnanovdb_grid_type_constants[unsigned(l.type)];
    EXPECT_EQ(l.background, c.root_off_background);
    EXPECT_EQ(l.root.minimum, c.root_off_min);
    EXPECT_EQ(l.root.maximum, c.root_off_max);
    EXPECT_EQ(l.root.average, c.root_off_ave);
    EXPECT_EQ(l.root.deviation, c.root_off_stddev);
    EXPECT_EQ(l.root.bytes, c.root_size);
    EXPECT_EQ(l.value_bytes() * 8, c.value_stride_bits);
    EXPECT_EQ(l.table_stride, c.table_stride);
    EXPECT_EQ(l.tile_value, c.root_tile_off_value);
    EXPECT_EQ(l.tile_bytes, c.root_tile_size);
    EXPECT_EQ(l.upper.minimum, c.upper_off_min);
    EXPECT_EQ(l.upper.average, c.upper_off_ave);
    EXPECT_EQ(l.upper.deviation, c.upper_off_stddev);
    EXPECT_EQ(l.upper.values, c.upper_off_table);
    EXPECT_EQ(l.upper.bytes, c.upper_size);
    EXPECT_EQ(l.lower.values, c.lower_off_table);
    EXPECT_EQ(l.lower.bytes, c.lower_size);
    EXPECT_EQ(l.leaf.minimum, c.leaf_off_min);
    EXPECT_EQ(l.leaf.average, c.leaf_off_ave);
    EXPECT_EQ(l.leaf.values, c.leaf_off_table);
    EXPECT_EQ(l.leaf.bytes, c.leaf_size);
  }
}
#endif

/// One way to damage a grid, and a part of the message that refuses it.
struct Damage {
  const char* what;
  std::function<void(std::vector<std::byte>&)> damage;
  const char* message;
};

template <class T>
std::function<void(std::vector<std::byte>&)> set(std::uint64_t at, T value) {
  return [=](std::vector<std::byte>& g) { put(std::span(g), at, value); };
}

std::vector<Damage> damages() {
  const std::vector<std::byte> good = some_grid(VolumeType::float32, test::some_voxels(), false);
  const grids::Grid facts = check_grid(good);
  const grids::Layout& l = *facts.layout;
  const grids::Levels& at = facts.levels;
  const std::uint64_t tile = at.root + l.root.bytes, upper = at.first[2], lower = at.first[1], leaf = at.first[0];
  // The first entry of a node that has a child.
  const auto entry = [&](std::uint64_t node, int level, std::uint32_t values) {
    std::uint32_t n = 0;
    const auto byte_of = [&] { return get<std::uint8_t>(good, node + grids::child_mask(level) + n / 8); };
    while (!(byte_of() >> (n & 7) & 1)) ++n;
    return node + values + std::uint64_t(n) * l.table_stride;
  };
  const std::uint64_t upper_child = entry(upper, 2, l.upper.values), lower_child = entry(lower, 1, l.lower.values);
  const std::size_t blind = grids::kBlindOffset;
  return {
      {"nothing", [](auto& g) { g.clear(); }, "0 bytes are too few"},
      {"half a header", [](auto& g) { g.resize(300); }, "300 bytes are too few"},
      {"no magic", set(0, std::uint64_t(0)), "no NanoVDB data"},
      {"magic of big-endian machines", set(0, std::uint64_t(0x4e616e6f56444230)), "the order of another machine"},
      {"magic of OpenVDB", set(0, std::uint64_t(0x56444220)), "OpenVDB"},
      {"magic of a file", set(0, grids::kFileMagic), "in place of a grid's"},
      {"an older version", set(grids::kGridVersion, grids::version_of(31, 4, 2)), "its version is 31.4.2"},
      {"a newer version", set(grids::kGridVersion, grids::version_of(33, 0, 0)), "its version is 33.0.0"},
      {"bytes that miss", [](auto& g) { g.resize(g.size() - 32); }, "it says that it has"},
      {"bytes too many", [](auto& g) { g.resize(g.size() + 32); }, "it says that it has"},
      {"another size", set(grids::kGridBytes, std::uint64_t(1) << 60), "it says that it has"},
      {"no grids", set(grids::kGridCount, 0u), "grid 0 of 0"},
      {"a number beyond", set(grids::kGridIndex, 1u), "grid 1 of 1"},
      {"no type", set(grids::kType, 0u), "type 0, which is not supported"},
      {"a type that is not supported", set(grids::kType, 13u), "type 13"},
      {"a type of the future", set(grids::kType, 0xffffffffu), "type 4294967295"},
      {"a class that cannot be", set(grids::kClass, unsigned(VolumeClass::staggered)), "cannot be of class 3"},
      {"a class of the future", set(grids::kClass, 77u), "cannot be of class 77"},
      {"a transform with a NaN", set(grids::kMap, NAN), "transform is not finite"},
      {"a transform that is infinite", set(grids::kMap + grids::kMapTranslation, double(INFINITY)), "not finite"},
      {"a root out of range", set(grids::kTree + grids::kRootOffset, std::int64_t(1) << 40), "root lie at"},
      {"a root before the tree", set(grids::kTree + grids::kRootOffset, std::int64_t(-64)), "root lie at"},
      {"a misaligned root", set(grids::kTree + grids::kRootOffset, std::int64_t(68)), "misaligned"},
      {"leaves out of range", set(grids::kTree, std::int64_t(good.size())), "leaves lie at"},
      {"misaligned leaves", set(grids::kTree, get<std::int64_t>(good, grids::kTree) + 4), "misaligned"},
      {"lower nodes out of range", set(grids::kTree + 8, std::int64_t(1) << 62), "lower nodes lie at"},
      {"upper nodes out of range", set(grids::kTree + 16, -1ll), "upper nodes lie at"},
      {"leaves in place of lower nodes", set(grids::kTree, std::int64_t(lower - grids::kTree)), "overlap"},
      {"lower nodes in place of the root", set(grids::kTree + 8, std::int64_t(at.root - grids::kTree)), "overlap"},
      {"too many leaves", set(grids::kTree + grids::kNodeCounts, 0xffffffffu), "leaves lie at"},
      {"too many upper nodes", set(grids::kTree + grids::kNodeCounts + 8, 1000u), "upper nodes lie at"},
      {"too few leaves", set(grids::kTree + grids::kNodeCounts, 3u), "no node of its level"},
      {"too many tiles", set(at.root + grids::kTableSize, 0x7fffffffu), "tiles; 65536 are supported"},
      {"tiles over what follows", set(at.root + grids::kTableSize, 20000u), "overlap"},
      {"a tile's child out of range", set(tile + grids::kTileChild, std::int64_t(1) << 50), "no node of its level"},
      {"a tile's child on another level", set(tile + grids::kTileChild, std::int64_t(lower - at.root)), "no node of"},
      {"a tile's child between nodes", set(tile + grids::kTileChild, std::int64_t(upper - at.root + 32)), "no node of"},
      {"a tile with a key of no place", set(tile + grids::kTileKey, std::uint64_t(1) << 20), "a key of no place"},
      {"two tiles of one place",
       set(tile + l.tile_bytes + grids::kTileKey, get<std::uint64_t>(good, tile + grids::kTileKey)), "two tiles"},
      {"a leaf that no node has",
       [=](auto& g) {
         const std::uint64_t mask = lower + grids::child_mask(1), entries = lower + l.lower.values;
         const std::uint64_t n = (lower_child - entries) / l.table_stride;
         g[mask + n / 8] &= ~std::byte(1 << (n & 7));
       },
       "1 of the 69 nodes of its level 0 are no node's children"},
      {"a tile with another key", set(tile + grids::kTileKey, std::uint64_t(12345)), "its place in the tree"},
      {"an upper node's child is itself", set(upper_child, std::int64_t(0)), "no node of its level"},
      {"an upper node's child out of range", set(upper_child, INT64_MIN), "no node of its level"},
      {"a lower node's child out of range", set(lower_child, INT64_MAX), "no node of its level"},
      {"a lower node's child before the leaves", set(lower_child, std::int64_t(-32)), "no node of its level"},
      {"a lower node's child is another leaf",
       set(lower_child, get<std::int64_t>(good, lower_child) + std::int64_t(l.leaf.bytes)), "its place in the tree"},
      {"a leaf elsewhere in space", set(leaf, 4711), "its place in the tree"},
      {"a child's bit that was off",
       [=](auto& g) {
         const std::uint64_t mask = lower + grids::child_mask(1);
         for (std::uint64_t k = 0; k < 64; ++k) g[mask + k] = std::byte(255);
       },
       "no node of its level"},
      {"a root whose tiles share a node",
       set(tile + l.tile_bytes + grids::kTileChild, get<std::int64_t>(good, tile + grids::kTileChild)), "its place in"},
      {"an upper node whose entries share an empty node",
       [=](auto& g) {
         const std::uint64_t mask = upper + grids::child_mask(2), table = upper + l.upper.values;
         for (std::uint64_t k = 0; k < grids::kEntries[1] / 8; ++k) g[lower + grids::child_mask(1) + k] = std::byte(0);
         for (std::uint64_t k = 0; k < grids::kEntries[2] / 8; ++k) g[mask + k] = std::byte(255);
         for (std::uint64_t n = 0; n < grids::kEntries[2]; ++n)
           put(std::span(g), table + n * l.table_stride, std::int64_t(lower - upper));
       },
       "the child of another node, too"},
      {"blind data out of range",
       [=](auto& g) { put(std::span(g), blind, std::int64_t(g.size())), put(std::span(g), blind + 8, 1u); },
       "blind data lie at"},
      {"blind data before the grid",
       [=](auto& g) { put(std::span(g), blind, std::int64_t(-288)), put(std::span(g), blind + 8, 1u); },
       "blind data lie at"},
      {"blind data that end outside",
       [=](auto& g) {
         put(std::span(g), blind, std::int64_t(leaf)), put(std::span(g), blind + 8, 1u);
         put(std::span(g), leaf, std::int64_t(0)), put(std::span(g), leaf + 8, std::uint64_t(1) << 61);
       },
       "blind data 0 lie out"},
      {"a checksum of the head", set(grids::kChecksum, 1u), "checksum"},
  };
}

TEST(VolumeGrid, that_is_damaged_is_refused_with_the_reason) {
  const std::vector<std::byte> good = some_grid(VolumeType::float32, test::some_voxels(), false);
  ASSERT_EQ(refusal(good), "");
  const std::vector<Damage> all = damages();
  EXPECT_GE(all.size(), 30u);
  for (const Damage& d : all) {
    std::vector<std::byte> bytes = good;
    d.damage(bytes);
    EXPECT_NE(refusal(bytes).find(d.message), std::string::npos) << d.what << ": " << refusal(bytes);
  }
}

TEST(VolumeGrid, with_a_checksum_is_refused_for_any_changed_bit_of_a_node) {
  std::mt19937 random(1);
  for (int k = 0; k < 30; ++k) {
    const std::vector<std::byte> good = some_grid(k < 20 ? VolumeType::float32 : VolumeType::on_index);
    const grids::Grid facts = check_grid(good);
    std::vector<std::byte> bytes = good;
    const std::uint64_t at = facts.levels.first[0] + random() % (good.size() - facts.levels.first[0]);
    bytes[at] ^= std::byte(1 << random() % 8);
    EXPECT_NE(refusal(bytes).find("checksum"), std::string::npos) << at;
  }
}

TEST(VolumeGrid, of_numbers_is_refused_if_they_are_wrong) {
  for (const VolumeType type : {VolumeType::index, VolumeType::on_index}) {
    SCOPED_TRACE(to_string(type));
    const std::vector<std::byte> good = some_grid(type, test::some_voxels(), false);
    const grids::Grid facts = check_grid(good);
    const std::uint64_t leaf = facts.levels.first[0];
    const auto refused = [&](std::uint64_t at, auto value) {
      std::vector<std::byte> bytes = good;
      put(std::span(bytes), at, value);
      return refusal(bytes);
    };
    EXPECT_NE(refused(grids::kGridVersion, grids::version_of(32, 5, 0)).find("from 32.6.0 on"), std::string::npos);
    EXPECT_NE(refused(leaf + grids::kLeafFirstIndex, std::uint64_t(1) << 40).find("numbers from"), std::string::npos);
    EXPECT_NE(refused(leaf + grids::kLeafFirstIndex, std::uint64_t(0)).find("numbers from"), std::string::npos);
    EXPECT_NE(refused(grids::kIndexedValues, std::uint64_t(5)).find("the grid has 5"), std::string::npos);
    EXPECT_NE(refused(grids::kIndexedValues, std::uint64_t(1) << 33).find("below 2^31"), std::string::npos);
    if (type == VolumeType::on_index) {
      EXPECT_NE(refused(leaf + grids::kLeafPrefix, ~std::uint64_t(0)).find("counts its active"), std::string::npos);
    }
  }
}

TEST(VolumeGrid, with_random_changes_crashes_nothing) {
  std::mt19937_64 random(7);
  int accepted = 0;
  for (const VolumeType type : {VolumeType::float32, VolumeType::on_index}) {
    const std::vector<std::byte> good = some_grid(type, {{1, 2, 3}, {-1, -2, -3}, {5000, 0, 9}}, false);
    const std::uint64_t head = check_grid(good).levels.first[2];
    for (int k = 0; k < 5000; ++k) {
      std::vector<std::byte> bytes = good;
      for (int n = 0; n < 3; ++n)  // most changes hit what is checked, which is a small part
        bytes[random() % (n < 2 ? head : bytes.size())] ^= std::byte(1 << random() % 8);
      accepted += refusal(bytes).empty();
    }
  }
  EXPECT_GT(accepted, 100) << "names and statistics may have any values";
  EXPECT_LT(accepted, 9900);
}

}  // namespace
}  // namespace weft
