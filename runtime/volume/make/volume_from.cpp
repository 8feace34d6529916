// Volumes of spheres and of points: each leaf goes through the spheres that touch it, voxel by voxel.
//
//   pairs    of leaves and spheres, in the order of leaves; the leaves are the volume's
//   values   a thread for each voxel: all spheres of its leaf, the same for the 512 threads of a leaf
//   masks    a thread for each word of a leaf's mask
#include "../volume_from.h"

#include <cmath>
#include <numbers>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/vector.h"
#include "../../../frontend/support/invalid.h"
#include "../../array_create.h"
#include "../../launch.h"
#include "../../work/observe.h"
#include "band.h"
#include "pairs.h"
#include "with_nodes.h"

namespace weft {

namespace detail {

namespace {

const auto& begins_kernel() {
  static const auto k = kernel("volume_pair_begins", [](Arr<const int> leaf_ranks, Arr<int> begins) {
    Int i = tid(), leaf = leaf_ranks[i] - 1;
    If ((i == 0) | (leaf_ranks[max(i - 1, 0)] != leaf_ranks[i])) {
      begins[leaf] = i;
    }
    If (i == leaf_ranks.shape(0) - 1) {
      begins[leaf + 1] = i + 1;
    }
  });
  return k;
}

auto make_values(bool level_set) {
  return kernel(
      level_set ? "volume_distances" : "volume_density",
      [level_set](Var<VolumeArrays> volume, Arr<float, 2> values, Arr<const int> begins, Arr<const int> things,
                  Arr<const vec3> centers, Arr<const float> radii, Float scale, Float limit) {
        auto [leaf, n] = tid<2>();
        const Vec3 voxel = voxel_at(volume, leaf, n);
        Float result = level_set ? limit : Float(0.f);
        for (auto k : range(begins[leaf], begins[leaf + 1])) {
          const Int i = things[k];
          const Vec3 apart = voxel - centers[i] * scale;
          const Float radius = radii[select(radii.shape(0) == 1, 0, i)];
          if (level_set) {
            result = min(result, length(apart) / scale - radius);
          } else {
            const Float reach = radius * scale, near = 1.f - dot(apart, apart) / (reach * reach);
            result += select(near > 0.f, near * near * near, 0.f);
          }
        }
        values(leaf, n) = level_set ? max(result, -limit) : result * limit;
      });
}
const auto& values_kernel(bool level_set) {
  static const decltype(make_values(true)) both[] = {make_values(false), make_values(true)};
  return both[level_set];
}

void check(const Array<vec3>& centers, const Array<float>& radii, const VolumeFromOptions& o, const char* what) {
  if (centers.is_null() || radii.is_null()) invalid("{} of a null array", what);
  check_band(centers, o, what);
  refuse_gradient(radii, what);
}

/// \param margin  around the spheres, in voxels
/// \param limit  the background of a level set; the density of a point at its center
std::shared_ptr<VolumeState> from_spheres(const Array<vec3>& centers, const Array<float>& radii, bool level_set,
                                          float margin, float limit, const VolumeFromOptions& options) {
  const HeardBy nobody(nullptr);
  const Device device = centers.device();
  const float scale = 1 / options.voxel_size, background = level_set ? limit : 0;
  LeafPairs pairs = pairs_of_spheres(centers, radii, scale, margin);
  return explained(ErrorKind::invalid_argument, "a volume cannot be made", [&] {
    const Array<int> ranks = pairs.memory.ranks[0].slice(0, pairs.count);
    auto made = with_nodes(device, pairs.memory, pairs.count,
                           band_plan(options, level_set ? VolumeClass::level_set : VolumeClass::fog, background), {});
    const VolumeMaking& m = *made->making;
    link_nodes(m.memory, pairs.count, true, m.templates, m.places, made->arrays.words);
    const int leaves = m.places.room.x;
    if (leaves > 0) {
      made->grid.info.leaves = leaves;
      const Array<int> begins = empty<int>(device, std::int64_t(leaves) + 1);
      launch(begins_kernel(), pairs.count, ranks, begins);
      const Array<float, 2> values = LeafValues<float>(*made);
      launch(values_kernel(level_set), {leaves, 512}, made->arrays, values, begins, pairs.things, centers, radii, scale,
             limit);
      mask_band(*made, level_set, limit);
    }
    finish_nodes(m.memory, pairs.count, m.places, made->arrays.words, made->arrays.voxels_before);
    made->read_counts();
    return made;
  });
}

}  // namespace
}  // namespace detail

Volume volume_from_spheres(const Array<vec3>& centers, const Array<float>& radii, const VolumeFromOptions& options,
                           Loc loc) {
  return detail::called_from(loc, [&] {
    detail::check(centers, radii, options, "a volume of spheres");
    if (radii.size() != centers.size())
      invalid("a volume of {} spheres is given {} radii", centers.size(), radii.size());
    const float limit = options.half_width * options.voxel_size;
    return Volume(detail::from_spheres(centers, radii, true, options.half_width, limit, options));
  });
}

Volume volume_from_points(const Array<vec3>& points, float radius, const VolumeFromOptions& options, Loc loc) {
  return detail::called_from(loc, [&] {
    if (!(radius > 0) || !std::isfinite(radius)) invalid("a volume of points of radius {}", radius);
    if (points.is_null()) invalid("a volume of points of a null array");
    const Array<float> radii(points.device(), std::vector<float>{radius});
    detail::check(points, radii, options, "a volume of points");
    const double density = 315 / (64 * std::numbers::pi * std::pow(double(radius), 3));
    return Volume(detail::from_spheres(points, radii, false, 0, float(density), options));
  });
}

}  // namespace weft
