// The data of a volume in a kernel.
#pragma once
#include "../../array.h"

namespace weft::stored {

/// The parameter type of a volume: `kernel("k", [](Var<VolumeArrays> volume, ...) {...})` is launched with a Volume.
///
/// The grid's memory stands here as words and as scalars of its own type. The arrays of the other types have no
/// elements, so that a launch refuses a volume whose values the kernel would read as another type.
struct VolumeArrays {
  /// detail::kVolumeTag while the volume lives, else 0; see BvhData::tag.
  unsigned tag = 0;
  /// The VolumeType of the values.
  int type = 0;
  /// The places of the root and of the first leaf, in words of 4 bytes. How many tiles, leaves and voxels there are, is
  /// in the grid itself, because a volume may be made again on the device.
  int root = 0, leaf = 0;
  /// The layout of this type of grid, in words: sizes of the root, a tile, an entry of a node, a leaf; and the places
  /// of entries in upper and lower nodes.
  int root_words = 0, tile_words = 0, entry_words = 0, leaf_words = 0, upper_entries = 0, lower_entries = 0;
  /// The whole grid.
  Array<unsigned> words;
  Array<float> float32_values, vec3f_values, vec4f_values;
  Array<double> float64_values, vec3d_values, vec4d_values;
  Array<half> float16_values;
  Array<int> int32_values;
  Array<unsigned> uint32_values;
  Array<std::int64_t> int64_values;
  /// The transform: the matrix from index to world space and its inverse, row by row, and the translation.
  Array<float> transform;
  /// The active voxels in the leaves before each leaf, and in all leaves.
  Array<int> voxels_before;
};
WEFT_STRUCT(VolumeArrays, tag, type, root, leaf, root_words, tile_words, entry_words, leaf_words, upper_entries,
            lower_entries, words, float32_values, vec3f_values, vec4f_values, float64_values, vec3d_values,
            vec4d_values, float16_values, int32_values, uint32_values, int64_values, transform, voxels_before);

}  // namespace weft::stored

namespace weft {

using stored::VolumeArrays;

namespace detail {
/// The first word of a structure of this kind in memory.
inline constexpr unsigned kVolumeTag = 0x554c4f56u;
}  // namespace detail

}  // namespace weft
