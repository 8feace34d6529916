// Meshes of simple shapes, for programs and tests.
#pragma once
#include "mesh_data.h"

/// Each function makes a mesh around the origin. The meshes of solids are watertight: every edge belongs to two
/// triangles, which run through it in opposite directions, no two points are equal, and fronts look outwards. Round
/// shapes have their points on the true surface. The axis of shapes that have one is y.
/// Errors: Error(invalid_argument) for sizes that are not finite or below 0, a solid without volume, counts below the
/// least, and meshes with more than 2^31 - 1 indices.
namespace weft::shapes {

/// \param size  lengths of the sides
/// \param segments  squares along each side of a face, at least 1; 12 segments^2 triangles
MeshData box(vec3 size = {1, 1, 1}, int segments = 1);

/// A sphere of nearly equal triangles: an icosahedron, each triangle of which is divided into 4, `subdivisions` times;
/// 20 * 4^subdivisions triangles.
MeshData icosphere(float radius = 1, int subdivisions = 3);

/// A sphere of meridians and parallels, with its poles on the axis.
/// \param slices  meridians, at least 3
/// \param stacks  bands from pole to pole, at least 2
MeshData uv_sphere(float radius = 1, int slices = 32, int stacks = 16);

/// A ring around the axis.
/// \param ring  radius of the circle along which the tube runs
/// \param tube  radius of the tube; less than ring
/// \param around  points along the ring, at least 3
/// \param across  points around the tube, at least 3; 2 around across triangles
MeshData torus(float ring = 1, float tube = 0.35f, int around = 48, int across = 24);

/// A tube along the knot that winds p times around the axis and q times around a ring of radius 1; 2 around across
/// triangles.
/// \param p, q  not 0, without common divisor; |q| > 1 makes a true knot with |p| > 1
/// \param tube  radius of the tube; if it is too large, the surface meets itself
/// \param around  points along the knot, at least 8 (|p| + |q|)
/// \param across  points around the tube, at least 3
MeshData torus_knot(int p = 2, int q = 3, float tube = 0.2f, int around = 400, int across = 24);

/// A flat sheet in the plane y = 0 that looks upwards, with points (i, j) in rows along x; 2 segments_x segments_z
/// triangles. Not closed.
MeshData grid(float size_x = 1, float size_z = 1, int segments_x = 8, int segments_z = 8);

/// \param slices  points around the axis, at least 3
MeshData cylinder(float radius = 0.5f, float height = 1, int slices = 32);
/// A cone with its base at -height / 2 and its tip at height / 2.
MeshData cone(float radius = 0.5f, float height = 1, int slices = 32);
/// The points within `radius` of a piece of the axis of length `height`.
/// \param stacks  bands of each half sphere, at least 1
MeshData capsule(float radius = 0.5f, float height = 1, int slices = 32, int stacks = 8);

/// Triangles with no point in common, placed at random: centres are uniform in [-1, 1]^3, corners within `size` of the
/// centre along each axis. One seed gives the same triangles on every machine. Not closed.
MeshData random_soup(int triangles, float size = 0.1f, unsigned seed = 0);

}  // namespace weft::shapes
