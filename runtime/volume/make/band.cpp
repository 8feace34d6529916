// See band.h.
#include "band.h"

#include <cmath>

#include "../../../frontend/support/invalid.h"
#include "../../launch.h"
#include "../../work/observe.h"
#include "../tree/leaf_cache.h"
#include "with_nodes.h"

namespace weft::detail {

namespace {

/// A voxel is active if its value is within the limit, or, of fog, not 0.
auto make_masks(bool level_set) {
  return kernel("volume_masks", [level_set](Var<VolumeArrays> volume, Arr<unsigned> words, Arr<const float, 2> values,
                                            Float limit, Int mask) {
    auto [leaf, word] = tid<2>();
    UInt bits = 0u;
    for (int b = 0; b < 32; ++b) {
      const Float x = values(leaf, word * 32 + b);
      const Bool active = level_set ? Bool(abs(x) < limit) : Bool(x != 0.f);
      bits |= select(active, UInt(1u << b), UInt(0u));
    }
    words[volume.leaf + leaf * volume.leaf_words + mask + word] = bits;
  });
}
const auto& masks_kernel(bool level_set) {
  static const decltype(make_masks(true)) both[] = {make_masks(false), make_masks(true)};
  return both[level_set];
}

}  // namespace

void check_band(const ArrayBase& array, const VolumeFromOptions& o, const char* what) {
  if (!(o.voxel_size > 0) || !std::isnormal(o.voxel_size) || !std::isnormal(1 / o.voxel_size))
    invalid("{} with voxels of side {}", what, o.voxel_size);
  if (!(o.half_width >= 1) || o.half_width > 64) invalid("{} with a band of {} voxels: 1 to 64", what, o.half_width);
  refuse_making_in_capture();
  refuse_gradient(array, what);
}

void refuse_gradient(const ArrayBase& array, const char* what) {
  tell_recorder({.kind = OperationKind::untaped,
                 .to = &array,
                 .from = &array,
                 .what = what,
                 .instead = "make the volume in Tape::unrecorded()"});
}

grids::GridPlan band_plan(const VolumeFromOptions& options, VolumeClass grid_class, float background) {
  VolumeOptions facts;
  facts.name = options.name;
  facts.grid_class = grid_class;
  facts.matrix = mat33d::identity() * double(options.voxel_size);
  return plan_of(VolumeType::float32, bytes_of(background), facts);
}

Vec3 voxel_at(const Var<VolumeArrays>& volume, const Int& leaf, const Int& n) {
  return Vec3(voxel_in_leaf(volume, volume.leaf + leaf * volume.leaf_words, n));
}

void mask_band(const VolumeState& volume, bool level_set, float limit) {
  const Array<float, 2> values = LeafValues<float>(volume);
  launch(masks_kernel(level_set), {values.shape(0), 16}, volume.arrays, volume.arrays.words, values, limit,
         int(grids::kLeafMask / 4));
}

}  // namespace weft::detail
