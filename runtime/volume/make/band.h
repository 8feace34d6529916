// What volumes of meshes, spheres and points share: their checks, their facts, and which of their voxels are active.
// Internal to volumes.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../tree/volume_state.h"
#include "../volume_from.h"

namespace weft::detail {

/// Errors: Error(invalid_argument) for options that are out of range, and in a capture; Error(not_differentiable) while
/// a tape records an array that carries gradients.
/// \param what  in messages; lives as long as the program
void check_band(const ArrayBase& array, const VolumeFromOptions& options, const char* what);
void refuse_gradient(const ArrayBase& array, const char* what);

grids::GridPlan band_plan(const VolumeFromOptions& options, VolumeClass grid_class, float background);

/// A voxel of a leaf by its number in the order of values.
Vec3 voxel_at(const Var<VolumeArrays>& volume, const Int& leaf, const Int& n);

/// Makes the voxels active whose values are within the limit, or, of fog, not 0.
void mask_band(const VolumeState& volume, bool level_set, float limit);

}  // namespace weft::detail
