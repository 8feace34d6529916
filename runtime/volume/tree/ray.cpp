// Rays through the tree of a volume: a digital differential analyzer whose steps are as large as the cubes they cross.
//
// A ray has a voxel, which is the primary thing, and the t at which it enters the cube around that voxel: a step finds
// the side by which the ray leaves the cube, and the voxel beyond that side. Rounding may put t a little off, but each
// step moves the voxel on, so that the ray never stays where it is and never goes back.
//
//   a ray along x from voxel (3, 1, 1), cubes: (0 .. 7) is a leaf, 8 and on the background up to 4095
//   for a surface:  3, 4, 5, 6, 7 voxel by voxel; then one step to 4096
//   for segments:   the leaf in one step; then one to 4096
#include "../../../frontend/language/detach.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/vector.h"
#include "../grid/layout.h"
#include "../volume_ray.h"
#include "leaf_cache.h"

namespace weft {

namespace detail {

namespace {

/// A ray of index space, cut to the box of what is active and one voxel around it.
class TreeRay {
 public:
  TreeRay(const Var<VolumeArrays>& volume, const Vec3& origin, const Vec3& direction, const Float& max_t)
      : volume_(volume), origin_(origin), direction_(direction), end_(max_t) {
    Float length = 0.f;
    Bool usable = max_t >= 0.f;
    for (int k = 0; k < 3; ++k) {
      usable = usable & (origin[k] - origin[k] == 0.f) & (direction[k] - direction[k] == 0.f);
      length += abs(direction[k]);
      lower_[k] = 0, upper_[k] = -1;
    }
    If (volume.tag != 0u) {
      const Int box = volume.root;
      for (int k = 0; k < 3; ++k) {
        lower_[k] = bitcast<int>(volume.words[box + k]);
        upper_[k] = bitcast<int>(volume.words[box + 3 + k]);
      }
    }
    Bool empty = (!usable) | (length <= 0.f) | (lower_[0] > upper_[0]);
    for (int k = 0; k < 3; ++k) {
      const Float low = Float(lower_[k]) - 1.f, high = Float(upper_[k]) + 2.f;
      const Float a = (low - origin[k]) / direction[k], b = (high - origin[k]) / direction[k];
      const Bool rests = direction[k] == 0.f;
      empty = empty | (rests & ((origin[k] < low) | (origin[k] > high)));
      t_ = max(t_, select(rests, t_, min(a, b)));
      end_ = min(end_, select(rests, end_, max(a, b)));
      lower_[k] -= 1, upper_[k] += 1;
    }
    going_ = (!empty) & (t_ < end_);
    for (int k = 0; k < 3; ++k) voxel_[k] = clamp(Int(floor(origin[k] + t_ * direction[k])), lower_[k], upper_[k]);
  }

  const Bool& going() const { return going_; }
  const Float& t() const { return t_; }
  Vec3 at(const Float& t) const { return origin_ + direction_ * t; }
  VolumeBlock block() const { return find_block(volume_, voxel_); }

  /// The t at which the ray leaves the cube of that size around its voxel, and moves on from there.
  Float leave(const Int& log) {
    const Int mask = (Int(1) << log) - 1;
    Float leaves[3];
    Int low[3];
    for (int k = 0; k < 3; ++k) {
      low[k] = voxel_[k] & ~mask;
      const Float side = Float(low[k]) + select(direction_[k] > 0.f, Float(mask) + 1.f, 0.f);
      leaves[k] = select(direction_[k] == 0.f, kNever, (side - origin_[k]) / direction_[k]);
    }
    const Bool by_x = (leaves[0] <= leaves[1]) & (leaves[0] <= leaves[2]), by_y = (!by_x) & (leaves[1] <= leaves[2]);
    const Bool by[3] = {by_x, by_y, !(by_x | by_y)};
    const Float t = max(t_, select(by_x, leaves[0], select(by_y, leaves[1], leaves[2])));
    for (int k = 0; k < 3; ++k) {
      const Int inside = clamp(Int(floor(origin_[k] + t * direction_[k])), low[k], low[k] + mask);
      voxel_[k] = select(by[k], select(direction_[k] > 0.f, low[k] + mask + 1, low[k] - 1), inside);
      going_ = going_ & (voxel_[k] >= lower_[k]) & (voxel_[k] <= upper_[k]);
    }
    t_ = t;
    going_ = going_ & (t < end_);
    return min(t, end_);
  }

 private:
  static constexpr float kNever = 3e38f;
  const Var<VolumeArrays> volume_;
  const Vec3 origin_, direction_;
  Float t_ = 0.f, end_;
  Vec3i voxel_, lower_, upper_;
  Bool going_ = false;
};

/// The derivative of a volume's values by world space, from that by index space: the transposed inverse of the matrix.
Vec3 in_world(const Var<VolumeArrays>& volume, const Vec3& slope) {
  Vec3 r;
  for (int k = 0; k < 3; ++k)
    r[k] = slope.x * volume.transform[9 + k] + slope.y * volume.transform[12 + k] + slope.z * volume.transform[15 + k];
  return r;
}

/// The steps by which a place between two voxels is found.
constexpr int kRefinements = 24;

}  // namespace

class SegmentWalk {
 public:
  SegmentWalk(const VolumeInKernel& volume, const Vec3& origin, const Vec3& direction, const Float& max_t)
      : ray_(volume.arrays, origin, direction, max_t) {}

  Bool next(Float& begin, Float& end) {
    Bool found = false;
    While (ray_.going()) {
      const VolumeBlock block = ray_.block();
      If (found & !block.active) {
        Break();
      }
      const Float from = ray_.t(), to = ray_.leave(block.log);
      If (block.active) {
        If (!found) {
          begin = from;
        }
        end = to;
        found = true;
      }
    }
    return found;
  }

 private:
  TreeRay ray_;
};

}  // namespace detail

template <VolumeNumber T>
VolumeRayHit volume_ray(const VolumeInKernel& volume, In<vec3> origin, In<vec3> direction, In<float> max_t,
                        In<float> value, Loc loc) {
  tracing::CallPlace place(loc);
  const Vec3 o = volume_world_to_index(volume, origin, loc), d = volume_world_to_index_dir(volume, direction, loc);
  const Float wanted = detail::value(value);
  VolumeAccessor<T> values(volume, loc);
  const auto above = [&](const Vec3& p) { return cast<float>(values.sample(p, VolumeSampling::linear, loc)) - wanted; };

  // The search is without gradients: the last step below has them.
  detail::TreeRay ray(volume.arrays, detach(o), detach(d), detach(detail::value(max_t)));
  Float before = 0.f, begin = 0.f, end = 0.f;
  Bool met = false;
  If (ray.going()) {
    before = detach(above(ray.at(ray.t())));
  }
  While (ray.going() & !met) {
    const detail::VolumeBlock block = ray.block();
    begin = ray.t();
    end = ray.leave(select(block.leaf != 0, 0, block.log));
    const Float after = detach(above(ray.at(end)));
    met = (before < 0.f) != (after < 0.f);
    If (!met) {
      before = after;
    }
  }
  VolumeRayHit result{met, 0.f, Vec3(0.f, 0.f, 0.f)};
  If (met) {
    for (auto step : range(detail::kRefinements)) {
      (void)step;
      const Float middle = 0.5f * (begin + end);
      const Bool is_before = (detach(above(ray.at(middle))) < 0.f) == (before < 0.f);
      begin = select(is_before, middle, begin);
      end = select(is_before, end, middle);
    }
    const Float found = detach(0.5f * (begin + end));
    const Vec3 p = o + d * found;
    const auto at = values.sample_slope(p, VolumeSampling::linear, loc);
    const Vec3 slope = detach(Vec3(cast<float>(at.gradient.x), cast<float>(at.gradient.y), cast<float>(at.gradient.z)));
    // Newton's step is next to nothing, but t moves by it as the surface moves.
    const Float steep = detach(dot(slope, d));
    const Float off = cast<float>(at.value) - wanted;
    result.t = found - select(abs(steep) > 0.f, off / steep - detach(off / steep), 0.f);
    result.normal = normalize(detail::in_world(volume.arrays, slope));
  }
  return result;
}

#define WEFT_RAY(T) \
  template VolumeRayHit volume_ray<T>(const VolumeInKernel&, In<vec3>, In<vec3>, In<float>, In<float>, Loc);
WEFT_RAY(half)
WEFT_RAY(float)
WEFT_RAY(double)
#undef WEFT_RAY

VolumeSegments::VolumeSegments(const VolumeInKernel& volume, In<vec3> origin, In<vec3> direction, In<float> max_t,
                               Loc loc) {
  tracing::CallPlace place(loc);
  walk_ = std::make_unique<detail::SegmentWalk>(volume, detach(volume_world_to_index(volume, origin, loc)),
                                                detach(volume_world_to_index_dir(volume, direction, loc)),
                                                detach(detail::value(max_t)));
}
VolumeSegments::VolumeSegments(VolumeSegments&&) noexcept = default;
VolumeSegments::~VolumeSegments() = default;

Bool VolumeSegments::next(Float& begin, Float& end, Loc loc) {
  tracing::CallPlace place(loc);
  return walk_->next(begin, end);
}

}  // namespace weft
