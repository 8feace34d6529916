// Signs of a level set where no distance tells them. Internal to volumes.
#pragma once
#include "../tree/volume_arrays.h"
#include "nodes.h"

namespace weft::detail {

/// The bits of a value that is not known yet: a NaN.
inline constexpr std::uint32_t kUnknown = 0x7fc00001u;

/// Gives each unknown voxel of the leaves the value `limit` with the sign of the known voxel that is closest along z,
/// else along y, else along x, where there is one. All voxels between are as far from the surface.
void spread_in_leaves(const Array<unsigned>& words, const NodePlaces& places, float limit);

/// Gives the entries of inner nodes that have no child the value `limit`, negative inside: the sign of what lies beside
/// them along an axis. Leaves have their values.
void spread_in_nodes(const Array<unsigned>& words, const NodePlaces& places, float limit);

}  // namespace weft::detail
