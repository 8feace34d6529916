// What the queries on meshes share. Internal to the library's queries.
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

/// The points of a face, as the kernel's arguments hold them: those that carry gradients.
std::array<Vec3, 3> points_of(const MeshInKernel& mesh, const Int& face);

/// Says that numbers found at `face`, -1 for none, come of the mesh's points, and changes nothing. Walks read copies of
/// the points: a tape, which looks at what kernels read, would not know.
void depend_on_points(const MeshInKernel& mesh, const Int& face, std::initializer_list<Float*> numbers);

/// How many triangles a ray hits.
Int count_hits(const Var<MeshArrays>& mesh, const Vec3& origin, const Vec3& direction, const Float& max_t);

/// See mesh_winding_number().
Float winding_number(const Var<MeshArrays>& mesh, const Vec3& point, float accuracy);
/// In debug mode: reports a mesh that has not what these need. \param query  the name of the function that asks
void check_winding_numbers(const char* query, const Var<MeshArrays>& mesh, Loc loc);

}  // namespace weft::detail
