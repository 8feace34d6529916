// Which leaves things in space touch: pairs of a leaf and a thing, in the order of leaves. Internal to volumes.
#pragma once
#include "topology.h"

namespace weft::detail {

/// The pairs of each leaf, one leaf after the other, and in a leaf by the numbers of things.
struct LeafPairs {
  TopologyMemory memory;  ///< the keys are of the leaves' first voxels, pair by pair
  Array<int> things;      ///< by pair
  std::int64_t count = 0;
};

/// Finds the leaves that spheres touch, in index space.
/// \param radii  (n), or (1) for all
/// \param scale  voxels in a unit of the centers and radii
/// \param margin  added to each radius, in voxels
/// Errors: Error(invalid_argument) for spheres that are not finite, have no radius, or are too far away;
/// Error(unsupported) for spheres that are too large, or too many pairs.
LeafPairs pairs_of_spheres(const Array<vec3>& centers, const Array<float>& radii, float scale, float margin);

/// The topology of the leaves that may have a voxel within `margin` voxels of triangles. `pairs` receives the number of
/// its keys. Errors: likewise.
TopologyMemory leaves_of_triangles(const Array<vec3>& points, const Array<int>& indices, float scale, float margin,
                                   std::int64_t& pairs);

}  // namespace weft::detail
