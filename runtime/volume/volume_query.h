// Volumes in kernels: values of voxels, values between them and their slopes, space, numbers of voxels.
#pragma once
#include <memory>

#include "../../frontend/kernels/names.h"
#include "../../frontend/language/struct_var.h"
#include "tree/volume_arrays.h"
#include "volume_value.h"

namespace weft {

/// The data of a Volume in a kernel, by its id(), as bvh_at() finds a hierarchy. By the id of a volume that is gone,
/// and by 0, all values are 0; debug mode reports them. The data are read-only.
Var<VolumeArrays> volume_at(In<std::uint64_t> id, Loc loc = Loc::here());

/// The volume of a call: an argument of the kernel, or a handle (Volume::id()).
class VolumeInKernel {
 public:
  VolumeInKernel(const Var<VolumeArrays>& arrays) : arrays(arrays) {}
  VolumeInKernel(const UInt64& id, Loc loc = Loc::here()) : arrays(volume_at(id, loc)), held(true) {}
  Var<VolumeArrays> arrays;
  bool held = false;  ///< whether it was found by its handle, so that its values have no gradient
};

/// The way from voxels to values between them.
enum class VolumeSampling {
  closest,  ///< the value of the closest voxel; halves are rounded away from 0
  linear,   ///< from the 2 x 2 x 2 voxels around
  cubic     ///< from the 4 x 4 x 4 voxels around, by Catmull-Rom splines: continuous slopes
};

namespace detail {
class LeafCache;
}  // namespace detail

/// The type of values between voxels: float for half, else T.
template <VolumeValue T>
using VolumeSampled = Var<typename detail::VolumeValueOf<T>::Sampled>;

/// A value between voxels and its derivative by the coordinates of index space.
template <VolumeValue T>
struct VolumeSlope {
  VolumeSampled<T> value;
  Var<typename detail::VolumeValueOf<T>::Slope> gradient;
};

/// A volume that is read at several places in turn: voxels near the last one are found without a walk from the root.
/// Make it before a loop, and use it inside.
///
///   VolumeAccessor<float> density(volume);
///   While (t < end) { sum += density.sample(origin + direction * t) * step; t += step; }
///
/// Any integer coordinates are valid: where the grid has no voxel, it has the value of a tile or its background.
///
/// Gradient: from values to the stored values (Volume::values() with requires_grad(); not by handles), and from samples
/// to the point, as the sampled function has it; where the linear one has a kink, that of the upper side. None of
/// integers, and none to the point with VolumeSampling::closest.
/// Errors: a launch refuses a volume of another type than T: "argument 1.float32_values is an empty array". By a
/// handle, such a volume has the value 0, and debug mode reports it.
template <VolumeValue T>
class VolumeAccessor {
 public:
  explicit VolumeAccessor(const VolumeInKernel& volume, Loc loc = Loc::here());
  VolumeAccessor(VolumeAccessor&&) noexcept;
  ~VolumeAccessor();

  /// The value of a voxel, active or not.
  Var<T> lookup(In<vec3i> voxel, Loc loc = Loc::here());
  /// The value at a point of index space, where voxel (i, j, k) has its value at the point (i, j, k).
  ///
  /// A point with a NaN gives NaN from reals, and as closest the voxel 0 along that axis; coordinates beyond 2^31 count
  /// as the last integer.
  /// Errors: Error(invalid_kernel) for integers, unless closest.
  VolumeSampled<T> sample(In<vec3> point, VolumeSampling how = VolumeSampling::linear, Loc loc = Loc::here());
  /// The value and its slope. Errors: Error(invalid_kernel) for VolumeSampling::closest, which has none.
  VolumeSlope<T> sample_slope(In<vec3> point, VolumeSampling how = VolumeSampling::linear,
                              Loc loc = Loc::here()) requires VolumeSloped<T>;
  /// Sets the value of a voxel. A voxel outside of all leaves stays as it is; none becomes active, and statistics of
  /// nodes stay as they were.
  /// Errors: Error(invalid_kernel) for a volume found by its handle, whose data are read-only.
  void store(In<vec3i> voxel, In<T> value, Loc loc = Loc::here());

 private:
  std::unique_ptr<detail::LeafCache> cache_;
};

// ---- One value. Each call walks from the root; see VolumeAccessor for what these do, and for many.

template <VolumeValue T>
Var<T> volume_lookup(const VolumeInKernel& volume, In<vec3i> voxel, Loc loc = Loc::here()) {
  return VolumeAccessor<T>(volume, loc).lookup(voxel, loc);
}
template <VolumeValue T>
VolumeSampled<T> volume_sample(const VolumeInKernel& volume, In<vec3> point,
                               VolumeSampling how = VolumeSampling::linear, Loc loc = Loc::here()) {
  return VolumeAccessor<T>(volume, loc).sample(point, how, loc);
}
template <VolumeSloped T>
VolumeSlope<T> volume_sample_slope(const VolumeInKernel& volume, In<vec3> point,
                                   VolumeSampling how = VolumeSampling::linear, Loc loc = Loc::here()) {
  return VolumeAccessor<T>(volume, loc).sample_slope(point, how, loc);
}
template <VolumeValue T>
void volume_store(const VolumeInKernel& volume, In<vec3i> voxel, In<T> value, Loc loc = Loc::here()) {
  VolumeAccessor<T>(volume, loc).store(voxel, value, loc);
}

// ---- Space

/// A point of index space in world space: matrix * point + translation.
/// Gradient: to the point, and to Volume::transform().
Vec3 volume_index_to_world(const VolumeInKernel& volume, In<vec3> point, Loc loc = Loc::here());
/// A point of world space in index space. Gradient: likewise; the inverse has gradients of its own.
Vec3 volume_world_to_index(const VolumeInKernel& volume, In<vec3> point, Loc loc = Loc::here());
/// A direction, likewise, without the translation.
Vec3 volume_index_to_world_dir(const VolumeInKernel& volume, In<vec3> direction, Loc loc = Loc::here());
Vec3 volume_world_to_index_dir(const VolumeInKernel& volume, In<vec3> direction, Loc loc = Loc::here());

/// The value at a point of world space.
template <VolumeValue T>
VolumeSampled<T> volume_sample_world(const VolumeInKernel& volume, In<vec3> point,
                                     VolumeSampling how = VolumeSampling::linear, Loc loc = Loc::here()) {
  return volume_sample<T>(volume, volume_world_to_index(volume, point, loc), how, loc);
}

// ---- Voxels

/// The number of active voxels in leaves.
Int volume_voxel_count(const VolumeInKernel& volume, Loc loc = Loc::here());
/// The coordinates of active voxel `number` of the leaves, leaf by leaf. A number of no voxel gives the greatest
/// integer along each axis.
/// Cost: a binary search among the leaves.
Vec3i volume_voxel(const VolumeInKernel& volume, In<int> number, Loc loc = Loc::here());
/// The number of a voxel among all of the leaves, active or not: 512 * leaf + place. In an index grid the number that
/// the grid gives it, less one. Grids that number tiles and statistics, too, have gaps. -1 for voxels that have none.
Int volume_lookup_index(const VolumeInKernel& volume, In<vec3i> voxel, Loc loc = Loc::here());

/// The value at a point of index space among values that an array holds, by volume_lookup_index().
/// \param background  where voxels have no number, or one beyond the array
/// Gradient: to the point, to the values and to the background.
/// Errors: Error(invalid_kernel) for VolumeSampling::cubic.
Float volume_sample_index(const VolumeInKernel& volume, In<vec3> point, VolumeSampling how,
                          const Arr<const float>& values, In<float> background, Loc loc = Loc::here());
Vec3 volume_sample_index(const VolumeInKernel& volume, In<vec3> point, VolumeSampling how,
                         const Arr<const vec3>& values, In<vec3> background, Loc loc = Loc::here());

}  // namespace weft
