// Volumes with the nodes of a topology. Internal to volumes.
#pragma once
#include "../tree/volume_state.h"

namespace weft::detail {

/// Errors: Error(invalid_argument) in a capture, which cannot allocate.
void refuse_making_in_capture();
/// Errors: Error(invalid_argument) for a number of voxels too far away that is not 0.
void refuse_far(std::int64_t far);

/// A volume with memory for the nodes of a topology, and for more if there is to be room for them. Nothing is written
/// yet. Waits for the numbers of nodes.
/// \param voxels  the number of keys in the memory, which has room for as many and for the leaves
/// Errors: grids::NoGrid; Error(invalid_argument) for voxels that are too far away
std::shared_ptr<VolumeState> with_nodes(const Device& device, TopologyMemory memory, std::int64_t voxels,
                                        const grids::GridPlan& plan, const VolumeRoom& room);

}  // namespace weft::detail
