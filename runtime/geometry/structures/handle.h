// Handles: structures of the device as 64-bit values, which kernels keep in arrays and structs and follow.
#pragma once
#include <memory>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/struct_var.h"
#include "../bvh/bvh_node.h"
#include "../hash_grid/hash_grid_arrays.h"
#include "../mesh/mesh_arrays.h"

namespace weft {

/// What a Bvh is to kernels, by its id(). 0, and a hierarchy that is no more, have no boxes, so that queries find
/// nothing; so does the handle of a structure of another kind. Debug mode reports all of these, and the thread ends.
/// Any other number that is no id() is an error of the program.
///
/// What is found by a handle is only read. A launch whose kernel goes by handles is ordered with all work on all
/// hierarchies, meshes and hash grids of its device, and keeps them.
/// Gradient: none to what is found. A tape refuses such a launch by Error(not_differentiable) while the points of a
/// mesh have gradients, and the way back where one of the structures has changed meanwhile. Cost: a few dependent
/// reads.
Var<BvhData> bvh_at(In<std::uint64_t> id, Loc loc = Loc::here());
/// The same for a Mesh. The functions of mesh_query.h and bvh_query.h take such a number itself as well.
Var<MeshArrays> mesh_at(In<std::uint64_t> id, Loc loc = Loc::here());
/// The same for a HashGrid. One that was not built yet has no points, and debug mode reports it too.
Var<HashGridArrays> hash_grid_at(In<std::uint64_t> id, Loc loc = Loc::here());

namespace detail {
class Generation;
/// The array of one element becomes a handle, until its memory is gone; nobody else is given that. Who lets go of the
/// element sets it to zeros first. \param structure  see Handles::add()
void become_handle(const ArrayBase& element, std::shared_ptr<const Generation> structure = nullptr);
}  // namespace detail

}  // namespace weft
