// What is computed of a mesh on the device when it is made and when its points have moved. Internal to the runtime.
#pragma once
#include "../../../frontend/kernels/kernel.h"
#include "../../launch.h"
#include "mesh_arrays.h"

namespace weft::detail {

/// The box of each triangle.
void triangle_boxes(const MeshArrays& mesh, const Array<vec3>& lowers, const Array<vec3>& uppers);
/// MeshArrays::corners, by the tree's order.
void gather_corners(const MeshArrays& mesh);
/// MeshArrays::far_fields. \param arrived  by node; zeros before and after
void sum_far_fields(const MeshArrays& mesh, const Array<int>& arrived);

}  // namespace weft::detail
