// What a volume is on the host. Internal to volumes.
#pragma once
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../../frontend/support/error.h"
#include "../../geometry/structures/element.h"
#include "../grid/build.h"
#include "../make/nodes.h"
#include "../volume.h"

namespace weft::detail {

/// What a volume that was made on its device needs to be made again.
struct VolumeMaking {
  NodeTemplates templates;
  NodePlaces places;
  TopologyMemory memory;
  bool changes = false;  ///< it was made again, perhaps by a graph: the host does not know what it has
};

struct VolumeState {
  grids::Grid grid;
  VolumeArrays arrays;
  Element<VolumeArrays> element;
  std::optional<VolumeMaking> making;

  /// Reads back how many nodes a volume has that was made on its device. Waits.
  void read_counts();
  /// The facts of the moment; waits for those of a volume that was made again.
  const grids::Grid& facts() {
    if (making && making->changes) read_counts();
    return grid;
  }
};

/// The values of all leaves as a view of the grid's memory.
template <class T>
class LeafValues : public Array<T, 2> {
 public:
  LeafValues(const VolumeState& s) {
    const grids::Layout& l = *s.grid.layout;
    this->storage_ = s.arrays.words.storage();
    this->address_ = s.arrays.words.address() + s.grid.levels.first[0] + l.leaf.values;
    this->shape_ = {s.grid.info.leaves, 512};
    this->stride_ = {std::int64_t(l.leaf.bytes), std::int64_t(l.value_bytes())};
    if (s.grid.info.leaves == 0) this->address_ = s.arrays.words.address();
  }
};

/// Calls f(), whose reasons why there is no grid become errors of this kind, after what they are about.
template <class F>
auto explained(ErrorKind kind, const std::string& about, F f) {
  try {
    return f();
  } catch (const grids::NoGrid& e) {
    throw Error(kind, about + ": " + e.what());
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorKind::out_of_memory, about + ": there is not enough memory for the grid");
}

/// The transform of a grid as kernels apply it, see VolumeArrays.
std::vector<float> map_of(std::span<const std::byte> grid);

/// The data for kernels, from a grid's places and its memory.
VolumeArrays arrays_of(const grids::Grid& grid, const Array<unsigned>& words, const std::vector<float>& map,
                       const Array<int>& voxels_before);

grids::GridPlan plan_of(VolumeType type, std::span<const std::byte> background, const VolumeOptions& options);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace weft::detail
