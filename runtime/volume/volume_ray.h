// Rays through volumes, in kernels: where they meet a surface, and which parts of them lie in active space.
#pragma once
#include <memory>

#include "volume_query.h"

namespace weft {

/// A type of values of which a volume has surfaces.
template <class T>
concept VolumeNumber = std::is_same_v<T, half> || std::is_same_v<T, float> || std::is_same_v<T, double>;

/// Where a ray meets a surface; if it meets none, all numbers are 0.
struct VolumeRayHit {
  Bool hit;
  Float t;      ///< in multiples of the direction's length
  Vec3 normal;  ///< of length 1, toward the greater values
};

/// Finds the first place on a ray at which the values of a volume, linear between voxels, pass a given one, with
/// 0 <= t < max_t, in world space. The ray visits cubes without leaves as a whole, and voxels of leaves one by one: a
/// surface that it meets twice between two voxels, or only where tiles or the background meet others, may be missed. A
/// ray that is not finite, or has no length, meets none.
///
/// Gradient: of t, to origin, direction, value, the stored values and Volume::transform(), as the surface moves. None
/// to the normal.
/// Errors: a launch refuses a volume of another type than T, see VolumeAccessor; one by its handle is not met.
/// Source: Museth, "Hierarchical Digital Differential Analyzer" (2014).
template <VolumeNumber T>
VolumeRayHit volume_ray(const VolumeInKernel& volume, In<vec3> origin, In<vec3> direction, In<float> max_t,
                        In<float> value = 0.f, Loc loc = Loc::here());

namespace detail {
class SegmentWalk;
}  // namespace detail

/// The parts of a ray that lie in leaves and in active tiles, one after the other, in world space; farther than a voxel
/// from the box of what is active there are none:
///
///   VolumeSegments segments(volume, origin, direction, max_t);
///   Float begin, end;
///   While (segments.next(begin, end)) {... march from t = begin to t = end ...}
///
/// Neighbouring cubes are one part. Gradient: none.
class VolumeSegments {
 public:
  VolumeSegments(const VolumeInKernel& volume, In<vec3> origin, In<vec3> direction, In<float> max_t,
                 Loc loc = Loc::here());
  VolumeSegments(VolumeSegments&&) noexcept;
  ~VolumeSegments();
  /// Advances to the next part. Returns whether there is one.
  Bool next(Float& begin, Float& end, Loc loc = Loc::here());

 private:
  std::unique_ptr<detail::SegmentWalk> walk_;
};

}  // namespace weft
