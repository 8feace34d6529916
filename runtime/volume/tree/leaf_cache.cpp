// The walk from the root of a volume to a voxel.
#include "leaf_cache.h"

#include <limits>
#include <memory>
#include <vector>

#include "../grid/layout.h"

namespace weft::detail {

namespace {

using Words = Arr<const unsigned>;

/// The layout of a grid in words; numbers of the host where the type is known.
struct Numbers {
  Int root_words, tile_words, entry_words, upper_entries, lower_entries, background, tile_value, leaf_values;
};

Numbers numbers_of(const grids::Layout& l) {
  const auto words = [](std::uint32_t bytes) { return Int(int(bytes / 4)); };
  return {words(l.root.bytes),   words(l.tile_bytes), words(l.table_stride), words(l.upper.values),
          words(l.lower.values), words(l.background), words(l.tile_value),   words(l.leaf.values)};
}

/// The distance of a child in words. It may be negative; words are numbered below 2^30, so 32 bits are enough.
Int distance(const Words& words, const Int& at) { return bitcast<int>((words[at] >> 2u) | (words[at + 1] << 30u)); }

/// What a walk finds.
struct Found {
  Int place;  ///< of the block's values
  Int leaf;   ///< its place; 0: none
  Int log;    ///< log2 of the side of the cube that the block is part of, and that is one leaf or has one value
  Int value;  ///< the place of the word of the mask that says whether that value is active; 0: it is the background's
  UInt bit;   ///< and the bit there
};

/// Finds the values of a block, and its leaf, as places in words.
///
/// The root's tiles are looked through one by one, as there are few: each is for 4096 voxels a side. A key has 21 bits
/// for each coordinate, of which 20 are used. Then two tables are left, whose entries are children where the mask says
/// so, and values elsewhere. A block that ends at a value has that value's place.
///
/// Worked example: voxel (5000, 0, -1) is in block (625, 0, -1) and has the key (1, 0, 0xfffff). In the upper node it
/// is entry (5000 >> 7 & 31, 0, 31) = (7, 0, 31), in the lower one (5000 >> 3 & 15, 0, 15) = (1, 0, 15), in the leaf
/// voxel (0, 0, 7).
Found walk_down(const Words& words, const Int& root, const Int& tiles, const Int& x, const Int& y, const Int& z,
                const Numbers& n) {
  const auto key = [](const Int& block) { return bitcast<unsigned>(block << 3) >> 12u; };
  const UInt low = key(z) | (key(y) << 21u), high = (key(y) >> 11u) | (key(x) << 10u);
  Int tile = -1;
  for (auto t : range(tiles)) {
    const Int at = root + n.root_words + t * n.tile_words;
    If ((words[at] == low) & (words[at + 1] == high)) {
      tile = at;
      Break();
    }
  }
  Int place = root + n.background, leaf = 0, log = grids::kUpperLog, mask = 0;
  UInt bit = 0u;
  const auto marked = [&](const Int& at, const Int& entry) {
    bit = UInt(1u) << bitcast<unsigned>(entry & 31);
    return at + (entry >> 5);
  };
  If (tile >= 0) {
    If ((words[tile + 2] | words[tile + 3]) == 0u) {
      place = tile + n.tile_value;
      mask = tile + int(grids::kTileState / 4);
      bit = 1u;
    }
    Else {
      const Int upper = root + distance(words, tile + 2);
      const Int a = (((x >> 4) & 31) << 10) | (((y >> 4) & 31) << 5) | ((z >> 4) & 31);
      place = upper + n.upper_entries + a * n.entry_words;
      log = grids::kLowerLog;
      mask = marked(upper + int(grids::kValueMask / 4), a);
      If ((words[upper + int(grids::child_mask(2) / 4) + (a >> 5)] & bit) != 0u) {
        const Int lower = upper + distance(words, place);
        const Int b = ((x & 15) << 8) | ((y & 15) << 4) | (z & 15);
        place = lower + n.lower_entries + b * n.entry_words;
        log = grids::kLeafLog;
        mask = marked(lower + int(grids::kValueMask / 4), b);
        If ((words[lower + int(grids::child_mask(1) / 4) + (b >> 5)] & bit) != 0u) {
          leaf = lower + distance(words, place);
          place = leaf + n.leaf_values;
        }
      }
    }
  }
  return {place, leaf, log, mask, bit};
}

auto make_walk(const grids::Layout& l) {
  return func("volume_walk", [&l](Words words, Int root, Int tiles, Int x, Int y, Int z) {
    const Found found = walk_down(words, root, tiles, x, y, z, numbers_of(l));
    return std::tuple(found.place, found.leaf);
  });
}
const auto& walk_of(VolumeType type) {
  static const auto all = [] {
    std::vector<decltype(make_walk(grids::layouts()[0]))> made;
    for (const grids::Layout& l : grids::layouts()) made.push_back(make_walk(l));
    return made;
  }();
  return all[std::size_t(grids::layout_of(type) - grids::layouts().data())];
}

/// The element at a place in words.
Int scalar_at(const Int& words, std::uint32_t bytes) {
  return bytes == 2 ? words << 1 : bytes == 8 ? words >> 1 : words;
}

/// A coordinate that no block has: those are 29 bits long.
constexpr int kNoBlock = std::numeric_limits<int>::min();

}  // namespace

namespace {
/// A number in the grid's memory; 0 where a handle led to no volume, which has no memory.
Int number_at(const Var<VolumeArrays>& volume, const Int& place) {
  Int number = 0;
  If (volume.tag != 0u) {
    number = bitcast<int>(volume.words[place]);
  }
  return number;
}
}  // namespace

Int tile_count(const Var<VolumeArrays>& volume) { return number_at(volume, volume.root + int(grids::kTableSize / 4)); }
Int leaf_count(const Var<VolumeArrays>& volume) {
  return number_at(volume, int((grids::kTree + grids::kNodeCounts) / 4));
}

LeafCache::LeafCache(const Var<VolumeArrays>& volume, bool held, VolumeType type, Loc loc)
    : volume_(volume),
      held_(held),
      type_(type),
      made_in_(tracing::Trace::current(loc).builder().region()),
      tiles_(tile_count(volume)),
      x_(kNoBlock),
      y_(kNoBlock),
      z_(kNoBlock) {
  if (!held) return;
  usable_ = volume.type == int(type);
  tiles_ = select(usable_, tiles_, 0);
}

LeafCache::Block LeafCache::walk(const Int& x, const Int& y, const Int& z) const {
  const auto [place, leaf] = walk_of(type_)(volume_.words, volume_.root, tiles_, x, y, z);
  return {scalar_at(place, grids::layout_of(type_)->scalar_bytes), leaf};
}

Int LeafCache::element(const Block& block, const Int& i, const Int& j, const Int& k) const {
  return block.first + select(block.leaf != 0, place_in_leaf(i, j, k) * int(grids::layout_of(type_)->scalars), 0);
}

Int LeafCache::find(const Int& i, const Int& j, const Int& k) {
  const Int x = i >> 3, y = j >> 3, z = k >> 3;
  const auto go = [&] {
    const Block found = walk(x, y, z);
    last_.first = found.first, last_.leaf = found.leaf;
    x_ = x, y_ = y, z_ = z;
  };
  // The first walk needs no comparison, unless a loop around it comes back.
  if (std::exchange(fresh_, false) && tracing::Trace::current().builder().region() == made_in_) {
    go();
  } else {
    If ((x != x_) | (y != y_) | (z != z_)) {
      go();
    }
  }
  return element(last_, i, j, k);
}

void LeafCache::find_cube(const Int& i, const Int& j, const Int& k, Int (&elements)[8]) {
  elements[0] = find(i, j, k);
  // Whether the cube reaches into the next block: along z, y and x, as the bits of a corner's number have them.
  const Bool over[3] = {(k & 7) == 7, (j & 7) == 7, (i & 7) == 7};
  Int first[8], leaf[8];
  for (int c = 0; c < 8; ++c) first[c] = last_.first, leaf[c] = last_.leaf;
  If (over[0] | over[1] | over[2]) {
    for (int c = 1; c < 8; ++c) {
      // The corner's block: that of a corner before, across a side that the cube does not reach over; else its own.
      Bool own = true;
      for (int axis = 0; axis < 3; ++axis) {
        if (!(c >> axis & 1)) continue;
        const int before = c & ~(1 << axis);
        If (!over[axis]) {
          first[c] = first[before], leaf[c] = leaf[before];
        }
        own = own & over[axis];
      }
      If (own) {
        const Block found = walk((i >> 3) + (c >> 2), (j >> 3) + (c >> 1 & 1), (k >> 3) + (c & 1));
        first[c] = found.first, leaf[c] = found.leaf;
      }
    }
  }
  for (int c = 1; c < 8; ++c) elements[c] = element({first[c], leaf[c]}, i + (c >> 2), j + (c >> 1 & 1), k + (c & 1));
}

Int find_leaf(const Var<VolumeArrays>& volume, const Int& i, const Int& j, const Int& k) {
  static const auto walk =
      func("volume_find_leaf", [](Words words, Int root, Int tiles, Int x, Int y, Int z, Int root_words, Int tile_words,
                                  Int entry_words, Int upper_entries, Int lower_entries) {
        return walk_down(words, root, tiles, x, y, z,
                         {root_words, tile_words, entry_words, upper_entries, lower_entries, 0, 0, 0})
            .leaf;
      });
  return walk(volume.words, volume.root, tile_count(volume), i >> 3, j >> 3, k >> 3, volume.root_words,
              volume.tile_words, volume.entry_words, volume.upper_entries, volume.lower_entries);
}

VolumeBlock find_block(const Var<VolumeArrays>& volume, const Vec3i& voxel) {
  static const auto walk =
      func("volume_find_block", [](Words words, Int root, Int tiles, Int x, Int y, Int z, Int root_words,
                                   Int tile_words, Int entry_words, Int upper_entries, Int lower_entries) {
        const Found found = walk_down(words, root, tiles, x, y, z,
                                      {root_words, tile_words, entry_words, upper_entries, lower_entries, 0, 0, 0});
        Int active = select(found.leaf != 0, 1, 0);
        If ((active == 0) & (found.value != 0)) {
          active = select((words[found.value] & found.bit) != 0u, 1, 0);
        }
        return std::tuple(found.log, found.leaf, active);
      });
  const auto [log, leaf, active] =
      walk(volume.words, volume.root, tile_count(volume), voxel.x >> 3, voxel.y >> 3, voxel.z >> 3, volume.root_words,
           volume.tile_words, volume.entry_words, volume.upper_entries, volume.lower_entries);
  return {log, leaf, active != 0};
}

// A leaf keeps the least corner of its active voxels; its own corner is that one without the low bits.
Vec3i leaf_corner(const Var<VolumeArrays>& volume, const Int& leaf) {
  const Int x = bitcast<int>(volume.words[leaf]) & ~7;
  const Int y = bitcast<int>(volume.words[leaf + 1]) & ~7;
  const Int z = bitcast<int>(volume.words[leaf + 2]) & ~7;
  return Vec3i(x, y, z);
}

Vec3i voxel_in_leaf(const Var<VolumeArrays>& volume, const Int& leaf, const Int& number) {
  return leaf_corner(volume, leaf) + Vec3i(number >> 6, (number >> 3) & 7, number & 7);
}

}  // namespace weft::detail
