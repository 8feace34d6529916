// Parts that the queries on meshes share. Internal to the library's queries.
#pragma once
#include <array>

#include "../bvh/traverse.h"
#include "../mesh_query.h"

namespace weft::detail {

/// A triangle in the leaves of a mesh's tree.
struct Corners {
  Vec3 a, b, c;
  Int face;
  Corners(const Var<MeshArrays>& mesh, const Int& place);
};

/// The points of a face in the kernel's arguments, which carry gradients.
std::array<Vec3, 3> points_of(const MeshInKernel& mesh, const Int& face);

/// Makes numbers found at `face` (-1: none) depend on the mesh's points, without changing them. Walks read copies of
/// the points, so that a tape, which follows what kernels read, would see no dependence.
void depend_on_points(const MeshInKernel& mesh, const Int& face, std::initializer_list<Float*> numbers);

/// Counts the triangles that a ray hits.
Int count_hits(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t);

/// Implements mesh_winding_number().
Float winding_number(const Var<MeshArrays>& mesh, const Vec3& point, float accuracy);
/// Reports, in debug mode, a mesh without the data of winding numbers.
/// \param query  the name of the calling function
void check_winding_numbers(const char* query, const Var<MeshArrays>& mesh, Loc loc);

}  // namespace weft::detail
