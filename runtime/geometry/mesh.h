// Triangle meshes that kernels ask: where a ray hits, which point is closest, what overlaps.
#pragma once
#include "bvh.h"
#include "mesh/mesh_arrays.h"
#include "mesh_data.h"

namespace weft {

struct MeshOptions {
  /// Of the points, for mesh_eval_velocity(); or none.
  Array<vec3> velocities = {};
  BvhBuilder builder = BvhBuilder::hploc;
  /// Most triangles in a leaf, 1 to 8.
  int leaf_size = 4;
  /// Keep what mesh_query_point(.., MeshSign::winding) needs, at 164 bytes a triangle.
  bool winding_number = false;
  /// Also build the device's own structure, for queries with RaySearch::device.
  /// Errors: Error(unsupported) where the device has none (Device::has_ray_query()).
  bool ray_query = false;
};

namespace detail {
struct MeshState;
}

/// A triangle mesh and the hierarchy over its triangles. A handle: copies are the same mesh.
///
/// The arrays of points, indices and velocities are kept, not copied. Who moves points says refit() afterwards, who
/// changes indices rebuild(): until then the mesh cannot be used. Kernels take a mesh as `Var<MeshArrays>`, or by id().
///
/// Errors: Error(invalid_argument) for no triangles, a number of indices that is no multiple of 3, an index that names
/// no point, a triangle with a NaN or infinite point, velocities that are not as many as points, a leaf size out of
/// range, null arrays and arrays on another device, and for every use after the indices have changed (by whatever the
/// runtime knows of: not through memory of the host that an array is wrapped around). Error(out_of_memory); where a
/// refit or a rebuild ran out of memory the mesh cannot be used until a rebuild() that does not.
/// Cost: the triangles are looked at on the device, and their making waits for the answer; a build of the hierarchy
/// (Bvh); 148 bytes a triangle beside the arrays that it is given.
class Mesh {
 public:
  /// A null mesh.
  Mesh() = default;
  Mesh(const Array<vec3>& points, const Array<int>& indices, const MeshOptions& options = {}, Loc loc = Loc::here());
  /// With the three indices of a triangle in one element. Errors: also Error(unsupported) for a strided view of them.
  Mesh(const Array<vec3>& points, const Array<vec3i>& triangles, const MeshOptions& options = {},
       Loc loc = Loc::here());
  /// From the host.
  Mesh(const Device& device, const MeshData& data, const MeshOptions& options = {}, Loc loc = Loc::here());

  /// The points have moved: new bounds for the same hierarchy. Triangles that have come to be NaN or infinite are found
  /// by no query until a refit() with better points.
  /// Cost: a few launches on Device::stream(), and no wait.
  void refit(Loc loc = Loc::here());
  /// A new hierarchy over the moved points: queries are quicker after large deformations. Also takes changed indices,
  /// which it checks as the constructor does, with a wait; it leaves the mesh as it was where they are refused.
  void rebuild(Loc loc = Loc::here());

  bool is_null() const { return !state_; }
  Device device() const;
  /// Number of triangles.
  std::int64_t size() const;
  const Array<vec3>& points() const;
  const Array<int>& indices() const;
  /// Null where the mesh has none.
  const Array<vec3>& velocities() const;
  /// To look at. Errors: its own refit() and rebuild() are refused.
  const Bvh& tree() const;

  /// A value by which kernels find the mesh (mesh_at()), in arrays and structs too: stays the same as long as the mesh
  /// lives. Cost: 300 bytes that stay with the device.
  std::uint64_t id(Loc loc = Loc::here()) const;
  /// What kernels are given.
  const MeshArrays& kernel_argument() const;

 private:
  detail::MeshState& state() const;
  std::shared_ptr<detail::MeshState> state_;
};

}  // namespace weft
