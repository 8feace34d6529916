// Queries on triangle meshes, in kernels: rays, closest and furthest points, overlaps, and values on the surface.
#pragma once
#include "bvh_query.h"
#include "mesh/mesh_arrays.h"

namespace weft {

/// The mesh of a query: an argument of the kernel, or a handle (Mesh::id(), see structures/handle.h).
class MeshInKernel {
 public:
  MeshInKernel(const Var<MeshArrays>& arrays);
  MeshInKernel(const UInt64& id, Loc loc = Loc::here()) : MeshInKernel(mesh_at(id, loc)) {}
  Var<MeshArrays> arrays;
  bool held = false;  ///< whether the mesh is no argument of the kernel, so that its points have no gradient
};

// ---- Rays

/// The method that finds which triangle a ray hits.
enum class RaySearch {
  walk,    ///< a walk through the mesh's hierarchy: the same on all devices
  device,  ///< the device's own ray query for meshes with MeshOptions::ray_query, a walk for others. Devices without
           ///< ray queries (Device::has_ray_query()) refuse kernels that ask for it. Adjoints walk.
};

/// The result of a ray; if it hits nothing, all numbers are 0 and face is -1.
struct MeshRayHit {
  Bool hit;
  Float t;      ///< in multiples of the direction's length
  Float u, v;   ///< the point is u a + v b + (1 - u - v) c of the face's points
  Float sign;   ///< 1: the ray hits the front of the face, seen from which its points run counter-clockwise; -1: its
                ///< back
  Vec3 normal;  ///< of the face, of length 1, away from its front
  Int face = -1;
};

/// Finds the first triangle on a ray: the one with the least t of all with 0 <= t < max_t. Watertight as
/// intersect_ray_triangle, which says what happens at edges and vertices; boxes lose no hit by rounding.
///
/// Gradient: of t, u, v and normal, to origin, direction and the mesh's points, as the hit moves on its triangle's
/// plane. That the ray may come to hit another triangle is not part of it. (Gradients flow to the points if the mesh is
/// an argument of the kernel; a tape refuses a kernel that finds meshes by their handles while one of them has points
/// with gradients.)
///
/// With RaySearch::device the device decides which triangle is hit: a ray that passes within a few ulp of an edge may
/// hit the other triangle there, t = 0 (on the surface itself) and t just below max_t may be no hits, and a device
/// whose search is not watertight may miss. t, u and v are those of a walk to the triangle that the device found,
/// unless the walk misses it.
///
/// \param max_t  in multiples of the direction's length
MeshRayHit mesh_query_ray(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction,
                          In<float> max_t = std::numeric_limits<float>::infinity(), RaySearch by = RaySearch::walk,
                          Loc loc = Loc::here());

/// Whether a ray hits anything with 0 <= t < max_t. Ends at the first triangle that it finds.
Bool mesh_query_ray_anyhit(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction,
                           In<float> max_t = std::numeric_limits<float>::infinity(), RaySearch by = RaySearch::walk,
                           Loc loc = Loc::here());

/// The number of triangles that a ray hits with 0 <= t < max_t. On a closed mesh it is odd from inside and even from
/// outside, through edges and vertices too.
Int mesh_query_ray_count(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction,
                         In<float> max_t = std::numeric_limits<float>::infinity(), Loc loc = Loc::here());

/// All hits of a ray in order of t; hits with equal t in order of their faces.
///
///   for (auto hit : mesh_query_ray_all(mesh, origin, direction)) { thickness += hit.sign * hit.t; }
///
/// A loop of the kernel, as those of TreeQuery.
/// Cost: a walk through the tree for each hit, and a last one that finds no more.
using MeshRayHits = detail::QueryLoop<MeshRayHit>;
MeshRayHits mesh_query_ray_all(const MeshInKernel& mesh, In<vec3> origin, In<vec3> direction,
                               In<float> max_t = std::numeric_limits<float>::infinity(), Loc loc = Loc::here());

// ---- Points

/// The way in which mesh_query_point tells inside from outside.
enum class MeshSign {
  none,      ///< does not tell: the sign is 1
  majority,  ///< by rays along the axes: inside where at least two of three hit an odd number of triangles
  normal,   ///< by the normal of the closest face, or that of all faces at the closest edge or vertex weighted by their
            ///< angles (Baerentzen & Aanaes 2005): for closed meshes
  winding,  ///< inside where the winding number is above 0.5 (Barill et al. 2018): for meshes with holes as well.
            ///< Needs MeshOptions::winding_number: without it the sign is NaN
};

/// The result for a point; if nothing is found, all numbers are 0 and face is -1.
struct MeshPointHit {
  Bool hit;
  Float sign;      ///< -1 inside, else 1
  Float u, v;      ///< the closest point is u a + v b + (1 - u - v) c of the face's points
  Float distance;  ///< without a sign
  Int face = -1;
};

/// Finds the closest point of a mesh, if it is closer than max_dist. Among several equally close points the result is
/// one of them.
///
/// Gradient: of u, v and distance, to the point and the mesh's points, as the closest point moves on the face, edge or
/// vertex where it was found. Through u and v, mesh_eval_position() has the gradient of the closest point. Gradients to
/// points of the mesh flow as for mesh_query_ray(). The gradient of a distance of 0 is 0.
MeshPointHit mesh_query_point(const MeshInKernel& mesh, In<vec3> point,
                              In<float> max_dist = std::numeric_limits<float>::infinity(),
                              MeshSign sign = MeshSign::none, Loc loc = Loc::here());

/// Finds the point of a mesh that is furthest away, if it is further than min_dist: a vertex. sign is 1.
/// Gradient: as mesh_query_point().
MeshPointHit mesh_query_furthest_point(const MeshInKernel& mesh, In<vec3> point, In<float> min_dist = 0.f,
                                       Loc loc = Loc::here());

/// The number of times that the mesh winds around a point: 1 inside and 0 outside a closed mesh, and in between if the
/// mesh has holes. Parts of the mesh that are further away than `accuracy` times their radius count by three terms of
/// their expansion. Needs MeshOptions::winding_number; without it the result is NaN.
/// Gradient: none.
/// Source: Barill et al. 2018, Fast winding numbers for soups and clouds, second order.
Float mesh_winding_number(const MeshInKernel& mesh, In<vec3> point, float accuracy = 2, Loc loc = Loc::here());

// ---- Overlaps: loops over faces, see TreeQuery

/// Finds the triangles whose boxes share a point with the box [lower, upper]; touching counts. A box with lower > upper
/// along an axis, or a NaN, shares none.
TreeQuery mesh_query_aabb(const MeshInKernel& mesh, In<vec3> lower, In<vec3> upper, Loc loc = Loc::here());
/// Finds the triangles with a point no further than `radius` from `center`. It finds all of them, and none that is
/// further by more than 1e-6 of the largest difference between a coordinate of the center and of a corner. (For a
/// triangle that is narrower than a two-hundredth of its length the bound is 2e-5; rounding of the distance allows no
/// less.) A radius of 0 asks for triangles through the point. A negative radius, or NaN, finds none.
TreeQuery mesh_query_sphere(const MeshInKernel& mesh, In<vec3> center, In<float> radius, Loc loc = Loc::here());

// ---- Values on a face. Gradients: to the mesh's points (if the mesh is an argument of the kernel), u and v.

/// The position u a + v b + (1 - u - v) c, from the face's points.
Vec3 mesh_eval_position(const MeshInKernel& mesh, In<int> face, In<float> u, In<float> v, Loc loc = Loc::here());
/// The velocity, interpolated as the position is; 0 if the mesh has none.
Vec3 mesh_eval_velocity(const MeshInKernel& mesh, In<int> face, In<float> u, In<float> v, Loc loc = Loc::here());
/// The normal of a face, of length 1, away from its front; 0 for a face without area.
Vec3 mesh_eval_face_normal(const MeshInKernel& mesh, In<int> face, Loc loc = Loc::here());
/// The number of triangles.
Int mesh_face_count(const MeshInKernel& mesh, Loc loc = Loc::here());
/// The point, and the velocity, of corner k of the mesh, which is corner k % 3 of face k / 3.
Vec3 mesh_get_point(const MeshInKernel& mesh, In<int> k, Loc loc = Loc::here());
Vec3 mesh_get_velocity(const MeshInKernel& mesh, In<int> k, Loc loc = Loc::here());
/// The index of the point of corner k.
Int mesh_get_index(const MeshInKernel& mesh, In<int> k, Loc loc = Loc::here());

}  // namespace weft
