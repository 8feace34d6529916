// The passes that run on the device when a mesh is made and when its points have moved. Internal to the runtime.
#pragma once
#include "../../../frontend/kernels/kernel.h"
#include "../../launch.h"
#include "mesh_arrays.h"

namespace weft::detail {

/// Computes the box of each triangle.
void triangle_boxes(const MeshArrays& mesh, const Array<vec3>& lowers, const Array<vec3>& uppers);
/// Fills MeshArrays::corners in the tree's order.
void gather_corners(const MeshArrays& mesh);
/// Fills MeshArrays::far_fields.
/// \param arrived  by node; zeros before and after
void sum_far_fields(const MeshArrays& mesh, const Array<int>& arrived);

}  // namespace weft::detail
