// The data of a triangle mesh in a kernel.
#pragma once
#include "../bvh/bvh_node.h"

namespace weft::stored {

/// The parameter type of a mesh: `kernel("k", [](Var<MeshArrays> mesh, ...) {...})` is launched with a Mesh.
struct MeshArrays {
  /// detail::kMeshTag while the mesh lives, else 0; see BvhData::tag.
  unsigned tag = 0;
  int has_velocities = 0, has_far_fields = 0;
  Array<vec3> points;
  /// The points of the triangles, three for each, counter-clockwise as seen from its front.
  Array<int> indices;
  /// The velocities of the points; one element if the mesh has none.
  Array<vec3> velocities;
  /// The hierarchy over the triangles.
  BvhData tree;
  /// The triangles' corners, three for each place in the leaves, so that queries read from one region. The w of the
  /// first corner holds the bits of an int, the number of the triangle.
  Array<vec4> corners;
  /// Ten rows for each node, for winding numbers (see mesh_winding.cpp); one element if the mesh has none.
  Array<vec4> far_fields;
  /// The device's own form of the triangles, for RaySearch::device; one element if the mesh has none.
  Array<std::uint8_t> ray_memory;
  /// The device's name for that form; 0: none.
  std::uint64_t ray_structure = 0;
};
WEFT_STRUCT(MeshArrays, tag, has_velocities, has_far_fields, points, indices, velocities, tree, corners, far_fields,
            ray_memory, ray_structure);
/// What a launch that is given the mesh by value checks: that its indices have not changed. Internal.
detail::StructureUse weft_structure_of(const MeshArrays& mesh);

}  // namespace weft::stored

namespace weft {

using stored::MeshArrays;

namespace detail {
/// The first word of a structure of this kind in memory.
inline constexpr unsigned kMeshTag = 0x4853454du;
}  // namespace detail

}  // namespace weft
