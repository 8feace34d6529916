// Rows of voxels and of entries, in which what is known goes on to what is not, forward and back, one axis after the
// other. A surface is nowhere between: it would lie within the band, whose values are known.
//
//   a row of a leaf     ?  ?  -0.2  0.1  ?  ?  ?  ?      becomes  - - -0.2 0.1 + + + +
//   a row of a node     ?  child  ?  child  ?            a child's sign is that of its voxel beside the entry
#include "signs.h"

#include "../../../frontend/kernels/names.h"
#include "../../launch.h"

namespace weft::detail {

namespace {

constexpr int in_words(std::size_t bytes) { return int(bytes / 4); }

UInt signed_limit(const UInt& like, const Float& limit) { return bitcast<unsigned>(limit) | (like & 0x80000000u); }

/// A thread goes through a row of 8 voxels along `axis` (0: x).
auto make_leaf_rows(int axis) {
  return kernel("volume_leaf_rows", [axis](Arr<unsigned> words, Var<NodePlaces> at, Float limit) {
    auto [leaf, row] = tid<2>();
    const int step = axis == 0 ? 64 : axis == 1 ? 8 : 1;
    const Int first = axis == 0 ? Int(row) : axis == 1 ? ((row >> 3) << 6) | (row & 7) : row << 3;
    const Int from = at.first.x + leaf * at.size.x + at.values.x + first;
    std::vector<UInt> v;
    for (int k = 0; k < 8; ++k) v.push_back(words[from + k * step]);
    const auto pass_on = [&](const UInt& known, UInt& to) {
      to = select((to == kUnknown) & (known != kUnknown), signed_limit(known, limit), to);
    };
    for (std::size_t k = 1; k < 8; ++k) pass_on(v[k - 1], v[k]);
    for (std::size_t k = 7; k > 0; --k) pass_on(v[k], v[k - 1]);
    for (int k = 0; k < 8; ++k) words[from + k * step] = v[std::size_t(k)];
  });
}

Bool has_child(const Arr<unsigned>& words, const Int& node, int level, const Int& entry) {
  return ((words[node + in_words(grids::child_mask(level)) + (entry >> 5)] >> bitcast<unsigned>(entry & 31)) & 1u) !=
         0u;
}
Int entry_at(const Var<NodePlaces>& at, const Int& node, int level, const Int& entry) {
  return node + at.values[level] + entry * at.entry;
}
/// A distance of up to 4 GB, in words.
Int child_of(const Arr<unsigned>& words, const Int& node, const Int& place) {
  return node + bitcast<int>((words[place] >> 2u) | (words[place + 1] << 30u));
}
/// The value of the first or the last voxel along an axis of a leaf or lower node, of those with 0 along the others.
UInt side_of(const Arr<unsigned>& words, const Var<NodePlaces>& at, const Int& node, int level, int axis, bool last) {
  if (level == 0) return words[node + at.values.x + (last ? 7 << (6 - 3 * axis) : 0)];
  const Int entry = last ? 15 << (8 - 4 * axis) : 0, place = entry_at(at, node, 1, entry);
  UInt value = words[place];
  If (has_child(words, node, 1, entry)) {
    value = side_of(words, at, child_of(words, node, place), 0, axis, last);
  }
  return value;
}

/// A thread goes through a row of entries of a node: 16 of a lower one (level 1), 32 of an upper one.
auto make_node_rows(int level, int axis) {
  return kernel("volume_node_rows", [level, axis](Arr<unsigned> words, Var<NodePlaces> at, Float limit) {
    auto [n, row] = tid<2>();
    const int log = level == 1 ? 4 : 5, side = 1 << log, step = 1 << (2 - axis) * log;
    const Int first = axis == 0   ? Int(row)
                      : axis == 1 ? ((row >> unsigned(log)) << unsigned(2 * log)) | (row & (side - 1))
                                  : row << unsigned(log);
    const Int node = at.first[level] + n * at.size[level];
    for (const bool back : {false, true}) {
      UInt known = kUnknown;
      for (auto k : range(side)) {
        const Int entry = first + (back ? side - 1 - k : k) * step, place = entry_at(at, node, level, entry);
        If (has_child(words, node, level, entry)) {
          known = side_of(words, at, child_of(words, node, place), level - 1, axis, !back);
        }
        Else {
          const UInt value = words[place];
          If (value != kUnknown) {
            known = value;
          }
          ElseIf (known != kUnknown) {
            words[place] = signed_limit(known, limit);
          }
        }
      }
    }
  });
}

/// Makes the entries without children unknown, or those that still are positive.
auto make_entries(int level, bool begin) {
  return kernel("volume_entries", [level, begin](Arr<unsigned> words, Var<NodePlaces> at, Float limit) {
    auto [n, entry] = tid<2>();
    const Int node = at.first[level] + n * at.size[level], place = entry_at(at, node, level, entry);
    If (!has_child(words, node, level, entry)) {
      if (begin) {
        words[place] = kUnknown;
      } else {
        If (words[place] == kUnknown) {
          words[place] = bitcast<unsigned>(limit);
        }
      }
    }
  });
}

const auto& leaf_rows_kernel(int axis) {
  static const decltype(make_leaf_rows(0)) all[] = {make_leaf_rows(0), make_leaf_rows(1), make_leaf_rows(2)};
  return all[axis];
}
const auto& node_rows_kernel(int level, int axis) {
  static const decltype(make_node_rows(1, 0)) all[] = {make_node_rows(1, 0), make_node_rows(1, 1),
                                                       make_node_rows(1, 2), make_node_rows(2, 0),
                                                       make_node_rows(2, 1), make_node_rows(2, 2)};
  return all[3 * (level - 1) + axis];
}
const auto& entries_kernel(int level, bool begin) {
  static const decltype(make_entries(1, true)) all[] = {make_entries(1, false), make_entries(1, true),
                                                        make_entries(2, false), make_entries(2, true)};
  return all[2 * (level - 1) + int(begin)];
}

}  // namespace

void spread_in_leaves(const Array<unsigned>& words, const NodePlaces& at, float limit) {
  if (at.room.x == 0) return;
  for (const int axis : {2, 1, 0}) launch(leaf_rows_kernel(axis), {at.room.x, 64}, words, at, limit);
}

void spread_in_nodes(const Array<unsigned>& words, const NodePlaces& at, float limit) {
  for (const int level : {1, 2}) {
    if (at.room[level] == 0) continue;
    const int side = level == 1 ? 16 : 32;
    launch(entries_kernel(level, true), {at.room[level], side * side * side}, words, at, limit);
    for (const int axis : {2, 1, 0})
      launch(node_rows_kernel(level, axis), {at.room[level], side * side}, words, at, limit);
    launch(entries_kernel(level, false), {at.room[level], side * side * side}, words, at, limit);
  }
}

}  // namespace weft::detail
