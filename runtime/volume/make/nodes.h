// Writes the nodes of a grid in the memory of a device. Internal to volumes.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "../grid/check.h"
#include "topology.h"

namespace weft::stored {

/// Where the nodes of a grid in the making lie, in words of 4 bytes. Vectors are by level: leaves, lower, upper nodes.
struct NodePlaces {
  int root = 0;    ///< place of the root
  int tiles = 0;   ///< place of its first tile
  int tile = 0;    ///< size of a tile
  int entry = 0;   ///< size of an entry of an inner node
  vec3i first{};   ///< place of the first node
  vec3i size{};    ///< of a node
  vec3i values{};  ///< place of the values or entries in a node
  vec3i room{};    ///< nodes for which there is memory
};
WEFT_STRUCT(NodePlaces, root, tiles, tile, entry, first, size, values, room);

}  // namespace weft::stored

namespace weft::detail {

using stored::NodePlaces;

/// The parts of a kind of grid as they are before anything is known of them, in the memory of a device.
struct NodeTemplates {
  Array<unsigned> head;      ///< header, tree and root
  Array<unsigned> tile;      ///< of the root
  Array<unsigned> nodes[3];  ///< by level
};
/// Takes them from the bytes of a grid with one leaf, which has no active voxels. The head is that of a grid with these
/// places.
NodeTemplates templates_of(const Device& device, std::span<const std::byte> grid, const grids::Grid& facts,
                           const grids::Levels& levels);

/// The places of a grid's parts, where each level has room for so many nodes (leaves, lower, upper nodes).
/// Errors: NoGrid for more memory than grids may have.
grids::Levels levels_with(const grids::Layout& layout, const vec3i& room);
NodePlaces places_of(const grids::Layout& layout, const grids::Levels& levels);
/// The size of a grid with these places, in bytes.
std::uint64_t bytes_with(const grids::Layout& layout, const grids::Levels& levels);

/// Counts the nodes of a topology that there is room for. A node for which there is no room is left out, with all that
/// comes after it.
void count_nodes(const TopologyMemory& memory, std::int64_t voxels, const vec3i& room);

/// Writes a grid with the nodes that count_nodes() has counted, whose values are the background's. It is one once
/// finish_nodes() has run.
/// \param all  all voxels of the leaves are active, else the voxels of the topology
void link_nodes(const TopologyMemory& memory, std::int64_t voxels, bool all, const NodeTemplates& templates,
                const NodePlaces& places, const Array<unsigned>& words);
/// Finds the boxes and the numbers of active voxels from the masks of leaves, which may have changed since, and writes
/// them into nodes and header.
/// \param voxels_before  (leaves that there is room for, and 1) receives the numbers of active voxels, see VolumeArrays
void finish_nodes(const TopologyMemory& memory, std::int64_t voxels, const NodePlaces& places,
                  const Array<unsigned>& words, const Array<int>& voxels_before);

}  // namespace weft::detail
