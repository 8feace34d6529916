// The data of volumes for kernels, and what the host knows of volumes that change on their device.
#include "volume_state.h"

#include <cstring>

#include "../../array_create.h"
#include "../../core/view.h"
#include "../../work/observe.h"

namespace weft::detail {

namespace {

/// The memory of a grid as numbers of type T, or no elements of it.
template <class T>
Array<T> as(const Array<unsigned>& words, bool wanted) {
  const Row<T> all(words);
  return wanted ? Array<T>(all) : all.slice(0, 0);
}

}  // namespace

std::vector<float> map_of(std::span<const std::byte> grid) {
  std::vector<float> map(grids::kMapFloats);
  std::memcpy(map.data(), grid.data() + grids::kMap, map.size() * sizeof(float));
  return map;
}

VolumeArrays arrays_of(const grids::Grid& grid, const Array<unsigned>& words, const std::vector<float>& map,
                       const Array<int>& voxels_before) {
  const grids::Layout& l = *grid.layout;
  VolumeArrays a;
  const auto word = [](std::uint64_t at) { return int(at / 4); };
  a.tag = kVolumeTag;
  a.type = int(l.type);
  a.root = word(grid.levels.root);
  a.leaf = word(grid.levels.first[0]);
  a.root_words = word(l.root.bytes), a.tile_words = word(l.tile_bytes), a.entry_words = word(l.table_stride);
  a.leaf_words = word(l.leaf.bytes), a.upper_entries = word(l.upper.values), a.lower_entries = word(l.lower.values);
  a.words = words;
#define WEFT_VALUES(T, kind, S, slope) a.kind##_values = as<Flat<T>::scalar>(a.words, l.type == VolumeType::kind);
  WEFT_VOLUME_TYPES(WEFT_VALUES)
#undef WEFT_VALUES
  a.transform = Array<float>(words.device(), map);
  a.voxels_before = voxels_before;
  return a;
}

grids::GridPlan plan_of(VolumeType type, std::span<const std::byte> background, const VolumeOptions& options) {
  return {type,           options.grid_class,  options.name,
          options.matrix, options.translation, {background.begin(), background.end()}};
}

void VolumeState::read_counts() {
  const HeardBy nobody(nullptr);
  const OutsideCapture at_once;
  const std::vector<unsigned> head = arrays.words.slice(0, making->templates.head.size()).to_vector();
  grids::read_counts(std::as_bytes(std::span(head)), grid);
  const std::vector<int> counts = making->memory.counts.to_vector();
  grid.info.left_out = std::int64_t(counts[3]) + counts[4];
}

}  // namespace weft::detail
