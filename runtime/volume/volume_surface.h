// Surfaces of volumes and of dense blocks of values, as triangles.
#pragma once
#include "volume.h"

namespace weft {

/// A surface as the arrays from which a Mesh is made.
struct VolumeSurface {
  Array<vec3> points;
  Array<int> indices;  ///< three for each triangle
};

/// The surface on which a volume has a value, by marching cubes: a point on each edge between two voxels of which one
/// has less, and triangles that turn counterclockwise as seen from the greater values. In world space.
///
/// The surface has no holes where it runs between voxels, one of which lies in a leaf: not between two tiles, or a tile
/// and the background. A NaN counts as a greater value.
/// \param value  0 is the surface of a level set
/// Gradient: none; refused while a tape records values that carry one.
/// Errors: Error(invalid_argument) for a volume whose values are no real numbers; in a capture.
/// Cost: a pass over all voxels of leaves and beside them, with memory of 16 bytes for each; waits.
/// Source: Lorensen and Cline, "Marching Cubes" (1987).
VolumeSurface to_mesh(const Volume& volume, double value = 0, Loc loc = Loc::here());
/// The same of a dense block, element (i, j, k) of which belongs to the point matrix * (i, j, k) + translation. The
/// surface is open where it leaves the block. Errors: Error(invalid_argument) for a null array; in a capture.
VolumeSurface to_mesh(const Array<float, 3>& values, double value = 0, const mat33& matrix = mat33::identity(),
                      const vec3& translation = {}, Loc loc = Loc::here());

}  // namespace weft
