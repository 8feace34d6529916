// Handles: structures of the device as 64-bit values, which kernels keep in arrays and structs and follow.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/struct_var.h"
#include "../bvh/bvh_node.h"
#include "../hash_grid/hash_grid_arrays.h"
#include "../mesh/mesh_arrays.h"

namespace weft {

/// The data of a Bvh in a kernel, by its id(). Queries find nothing by 0, by the id of a freed hierarchy, and by the
/// handle of a structure of another kind; debug mode reports all of these, and the thread ends. Any other number that
/// is no id() is an error of the program.
///
/// The data is read-only. A launch whose kernel uses handles is ordered with all work on all hierarchies, meshes and
/// hash grids of its device, and keeps them.
/// Gradient: none to the data. A tape refuses such a launch by Error(not_differentiable) while the points of a mesh
/// have gradients, and the way back if one of the structures has changed since.
/// Cost: a few dependent reads.
Var<BvhData> bvh_at(In<std::uint64_t> id, Loc loc = Loc::here());
/// The data of a Mesh, likewise. The functions of mesh_query.h and bvh_query.h also take such a number itself.
Var<MeshArrays> mesh_at(In<std::uint64_t> id, Loc loc = Loc::here());
/// The data of a HashGrid, likewise. A grid that was not built yet has no points, and debug mode reports it too.
Var<HashGridArrays> hash_grid_at(In<std::uint64_t> id, Loc loc = Loc::here());

}  // namespace weft
