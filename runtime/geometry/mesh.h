// Triangle meshes that kernels query: where a ray hits, which point is closest, which triangles overlap.
#pragma once
#include "bvh.h"
#include "mesh/mesh_arrays.h"
#include "mesh_data.h"

namespace weft {

struct MeshOptions {
  /// The velocities of the points, for mesh_eval_velocity(); or none.
  Array<vec3> velocities = {};
  BvhBuilder builder = BvhBuilder::hploc;
  /// The most triangles in a leaf, 1 to 8.
  int leaf_size = 4;
  /// Keeps the data that mesh_query_point(.., MeshSign::winding) needs, at 164 bytes a triangle.
  bool winding_number = false;
  /// Also builds the device's own structure, for queries with RaySearch::device.
  /// Errors: Error(unsupported) if the device has none (Device::has_ray_query()).
  bool ray_query = false;
};

namespace detail {
struct MeshState;
}

/// A triangle mesh and the hierarchy over its triangles. A handle: copies are the same mesh.
///
/// The arrays of points, indices and velocities are kept, not copied. After moving points, call refit(). After changing
/// indices, call rebuild(): until then the mesh cannot be used. Kernels take a mesh as `Var<MeshArrays>`, or by id().
///
/// Errors: Error(invalid_argument) for arrays and options that make no mesh (an index that names no point, a NaN in a
/// triangle's point, no triangles), and for every use after the indices have changed; Error(out_of_memory), after which
/// the mesh is refused until a rebuild() succeeds. See docs/geometry.md.
/// Cost: the device checks the triangles, and the constructor waits for the answer; a build of the hierarchy (Bvh); 148
/// bytes a triangle in addition to the given arrays.
class Mesh {
 public:
  /// A null mesh.
  Mesh() = default;
  Mesh(const Array<vec3>& points, const Array<int>& indices, const MeshOptions& options = {}, Loc loc = Loc::here());
  /// Takes the three indices of a triangle in one element. Errors: also Error(unsupported) for a strided view of
  /// triangles.
  Mesh(const Array<vec3>& points, const Array<vec3i>& triangles, const MeshOptions& options = {},
       Loc loc = Loc::here());
  /// Uploads a mesh of the host.
  Mesh(const Device& device, const MeshData& data, const MeshOptions& options = {}, Loc loc = Loc::here());

  /// Fits the hierarchy to points that have moved. Triangles that are now NaN or infinite are found by no query until a
  /// refit() with better points.
  /// Cost: a few launches on Device::stream(), no wait.
  void refit(Loc loc = Loc::here());
  /// Builds a new hierarchy over the moved points: queries are quicker after large deformations. Also takes changed
  /// indices, which it checks as the constructor does, with a wait; if they are refused, the mesh stays as it was.
  void rebuild(Loc loc = Loc::here());

  bool is_null() const { return !state_; }
  Device device() const;
  /// The number of triangles.
  std::int64_t size() const;
  const Array<vec3>& points() const;
  const Array<int>& indices() const;
  /// The velocities of the points; null if the mesh has none.
  const Array<vec3>& velocities() const;
  /// The hierarchy, to look at. Errors: its refit() and rebuild() are refused, as only the mesh changes it.
  const Bvh& tree() const;

  /// A value by which kernels find the mesh (mesh_at()), in arrays and structs too. It stays the same as long as the
  /// mesh lives.
  /// Cost: 300 bytes that stay with the device.
  std::uint64_t id(Loc loc = Loc::here()) const;
  /// The value that kernels take.
  const MeshArrays& kernel_argument() const;

 private:
  detail::MeshState& state() const;
  std::shared_ptr<detail::MeshState> state_;
};

}  // namespace weft
