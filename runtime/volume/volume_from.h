// Volumes of meshes, of spheres and of points, made by kernels.
#pragma once
#include <string>

#include "../geometry/mesh.h"
#include "../geometry/mesh_query.h"
#include "volume.h"

namespace weft {

/// The facts of a volume that is made of things in world space.
struct VolumeFromOptions {
  float voxel_size = 0.1f;  ///< side of a voxel
  float half_width = 3;     ///< of the band of a level set around its surface, in voxels: 1 to 64
  std::string name = {};
};

/// The level set of a mesh: the distance from its closest point, in world units, negative inside, cut off at half_width
/// voxels on both sides. Leaves near triangles have values; all other voxels inside are in tiles.
/// \param sign  how inside is told; MeshSign::none gives distances without a sign
/// Gradient: none; refused while a tape records points that carry one.
/// Errors: Error(invalid_argument) for a null mesh, one without winding numbers if `sign` asks for them, options out of
/// range, in a capture, and for triangles beyond 2^20 voxels from the origin or of more than 2000 voxels;
/// Error(unsupported) for more than 2^31 pairs of a triangle and a leaf.
/// Cost: for each triangle the leaves near it, a sort of these, and a query of the mesh for each of their voxels.
/// Waits.
Volume volume_from_mesh(const Mesh& mesh, MeshSign sign = MeshSign::normal, const VolumeFromOptions& options = {},
                        Loc loc = Loc::here());
/// The level set of spheres: the distance from the surface of all spheres together, in world units, negative inside,
/// cut off at half_width voxels on both sides. Inside of other spheres it is the distance from the closest of their
/// surfaces, and so a bound of the distance from the union's.
/// \param centers, radii  (n) of the spheres
/// Gradient: none; refused while a tape records arrays that carry one.
/// Errors: Error(invalid_argument) for null arrays, different numbers of elements, options out of range, in a capture,
/// and for spheres that are not finite, have no radius, or lie beyond 2^20 voxels from the origin; Error(unsupported)
/// for spheres of more than 1000 voxels' radius, and more than 2^31 pairs of a sphere and a leaf.
/// Cost: for each sphere the leaves that it touches, inside too: a sort of these pairs, and 512 distances for each.
/// Waits.
Volume volume_from_spheres(const Array<vec3>& centers, const Array<float>& radii, const VolumeFromOptions& options = {},
                           Loc loc = Loc::here());
/// The density of points, as fog: at a voxel the number of points within `radius` in each unit of volume, by a kernel
/// that falls to 0 there: 315 / (64 pi) (1 - (d / radius)^2)^3 / radius^3. The sum over all voxels, times their volume,
/// is about the number of points where the radius is some voxels. The order of its sums is the same in each run.
/// Errors and cost: likewise.
/// Source: Mueller et al. 2003, Particle-Based Fluid Simulation for Interactive Applications
Volume volume_from_points(const Array<vec3>& points, float radius, const VolumeFromOptions& options = {},
                          Loc loc = Loc::here());

}  // namespace weft
