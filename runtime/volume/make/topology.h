// Which nodes a grid has, found on the device from voxels in any order. Internal to volumes.
#pragma once
#include "../../array.h"

namespace weft::detail {

/// The coordinates of voxels from which a device makes grids: from -kMostCoordinate up to kMostCoordinate - 1.
inline constexpr int kMostCoordinate = 1 << 20;

/// The memory in which topologies are found, kept for the next one.
struct TopologyMemory {
  Array<std::uint64_t> keys;      ///< of the voxels, sorted
  Array<int> ranks[3];            ///< leaves, lower and upper nodes up to a voxel's, itself included
  Array<int> lower_of, upper_of;  ///< places of leaves' lower nodes, and of these nodes' upper nodes
  /// (6) numbers of leaves, lower and upper nodes; of voxels that lie too far away; of leaves for which there is no
  /// room; of voxels before the first that has none
  Array<int> counts;
  Array<std::uint8_t> scratch;

  /// Makes room for that many voxels.
  void reserve(const Device& device, std::int64_t voxels);
};

/// Sorts voxels into the order of a grid's leaves, and finds the nodes in which they lie. Voxels beyond kMostCoordinate
/// are left out. The memory must have room; of its counts only the fourth is written.
/// Cost: a sort of 64-bit keys, three scans of integers; no wait.
void find_topology(TopologyMemory& memory, const Array<vec3i>& voxels);
/// The part of find_topology() after the sort, for keys that are in order already.
void number_nodes(TopologyMemory& memory, std::int64_t voxels);

}  // namespace weft::detail
