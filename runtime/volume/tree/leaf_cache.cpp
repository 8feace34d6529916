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

Bool bit(const Words& words, const Int& mask, const Int& n) {
  return ((words[mask + (n >> 5)] >> bitcast<unsigned>(n & 31)) & 1u) != 0u;
}

/// Finds the values of a block, and its leaf: both as places in words, and no leaf is 0.
///
/// The root's tiles are looked through one by one, as there are few: each is for 4096 voxels a side. A key has 21 bits
/// for each coordinate, of which 20 are used. Then two tables are left, whose entries are children where the mask says
/// so, and values elsewhere. A block that ends at a value has that value's place.
///
/// Worked example: voxel (5000, 0, -1) is in block (625, 0, -1) and has the key (1, 0, 0xfffff). In the upper node it
/// is entry (5000 >> 7 & 31, 0, 31) = (7, 0, 31), in the lower one (5000 >> 3 & 15, 0, 15) = (1, 0, 15), in the leaf
/// voxel (0, 0, 7).
std::tuple<Int, Int> walk_down(const Words& words, const Int& root, const Int& tiles, const Int& x, const Int& y,
                               const Int& z, const Numbers& n) {
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
  Int place = root + n.background, leaf = 0;
  If (tile >= 0) {
    If ((words[tile + 2] | words[tile + 3]) == 0u) {
      place = tile + n.tile_value;
    }
    Else {
      const Int upper = root + distance(words, tile + 2);
      const Int a = (((x >> 4) & 31) << 10) | (((y >> 4) & 31) << 5) | ((z >> 4) & 31);
      place = upper + n.upper_entries + a * n.entry_words;
      If (bit(words, upper + int(grids::child_mask(2) / 4), a)) {
        const Int lower = upper + distance(words, place);
        const Int b = ((x & 15) << 8) | ((y & 15) << 4) | (z & 15);
        place = lower + n.lower_entries + b * n.entry_words;
        If (bit(words, lower + int(grids::child_mask(1) / 4), b)) {
          leaf = lower + distance(words, place);
          place = leaf + n.leaf_values;
        }
      }
    }
  }
  return {place, leaf};
}

auto make_walk(const grids::Layout& l) {
  return func("volume_walk", [&l](Words words, Int root, Int tiles, Int x, Int y, Int z) {
    return walk_down(words, root, tiles, x, y, z, numbers_of(l));
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

LeafCache::LeafCache(const Var<VolumeArrays>& volume, bool held, VolumeType type, Loc loc)
    : volume_(volume),
      held_(held),
      type_(type),
      made_in_(tracing::Trace::current(loc).builder().region()),
      tiles_(volume.tiles),
      x_(kNoBlock),
      y_(kNoBlock),
      z_(kNoBlock) {
  if (!held) return;
  usable_ = volume.type == int(type);
  tiles_ = select(usable_, volume.tiles, 0);
}

void LeafCache::walk(const Int& x, const Int& y, const Int& z) {
  const auto [place, leaf] = walk_of(type_)(volume_.words, volume_.root, tiles_, x, y, z);
  first_ = scalar_at(place, grids::layout_of(type_)->scalar_bytes);
  leaf_ = leaf;
  x_ = x, y_ = y, z_ = z;
}

Int LeafCache::element(const Int& i, const Int& j, const Int& k) const {
  return first_ + select(leaf_ != 0, place_in_leaf(i, j, k) * int(grids::layout_of(type_)->scalars), 0);
}

Int LeafCache::find(const Int& i, const Int& j, const Int& k) {
  const Int x = i >> 3, y = j >> 3, z = k >> 3;
  // The first walk needs no comparison, unless a loop around it comes back.
  if (std::exchange(fresh_, false) && tracing::Trace::current().builder().region() == made_in_) {
    walk(x, y, z);
  } else {
    If ((x != x_) | (y != y_) | (z != z_)) {
      walk(x, y, z);
    }
  }
  return element(i, j, k);
}

void LeafCache::find_cube(const Int& i, const Int& j, const Int& k, Int (&elements)[8]) {
  const auto corner = [](int c) { return std::array{c >> 2, c >> 1 & 1, c & 1}; };
  // Two cubes of three lie in one block, and need one walk.
  If (((i & 7) != 7) & ((j & 7) != 7) & ((k & 7) != 7)) {
    const Int first = find(i, j, k);
    const Int step = select(leaf_ != 0, int(grids::layout_of(type_)->scalars), 0);
    for (int c = 0; c < 8; ++c) {
      const auto [a, b, d] = corner(c);
      elements[c] = first + step * (64 * a + 8 * b + d);
    }
  }
  Else {
    for (int c = 0; c < 8; ++c) {
      const auto [a, b, d] = corner(c);
      elements[c] = find(i + a, j + b, k + d);
    }
  }
}

Int find_leaf(const Var<VolumeArrays>& volume, const Int& i, const Int& j, const Int& k) {
  static const auto walk =
      func("volume_find_leaf", [](Words words, Int root, Int tiles, Int x, Int y, Int z, Int root_words, Int tile_words,
                                  Int entry_words, Int upper_entries, Int lower_entries) {
        return std::get<1>(walk_down(words, root, tiles, x, y, z,
                                     {root_words, tile_words, entry_words, upper_entries, lower_entries, 0, 0, 0}));
      });
  return walk(volume.words, volume.root, volume.tiles, i >> 3, j >> 3, k >> 3, volume.root_words, volume.tile_words,
              volume.entry_words, volume.upper_entries, volume.lower_entries);
}

}  // namespace weft::detail
