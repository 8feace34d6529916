// Volumes that are made on their device, from arrays of voxels or values, and made again.
#include <algorithm>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/any_floats.h"
#include "../../../frontend/support/invalid.h"
#include "../../algorithms/compact.h"
#include "../../array_create.h"
#include "../../geometry/structures/change.h"
#include "../../launch.h"
#include "../../tape.h"
#include "../../work/capture.h"
#include "../../work/observe.h"
#include "../tree/leaf_cache.h"
#include "../tree/volume_state.h"
#include "with_nodes.h"

namespace weft {

namespace detail {

namespace {

void write(VolumeState& s, std::int64_t voxels, bool all) {
  const VolumeMaking& m = *s.making;
  link_nodes(m.memory, voxels, all, m.templates, m.places, s.arrays.words);
  finish_nodes(m.memory, voxels, m.places, s.arrays.words, s.arrays.voxels_before);
}

std::shared_ptr<VolumeState> make(const Array<vec3i>& voxels, bool all, const grids::GridPlan& plan,
                                  const VolumeRoom& room) {
  if (voxels.is_null()) invalid("a volume is made of a null array");
  refuse_making_in_capture();
  return explained(ErrorKind::invalid_argument, "a volume cannot be made", [&] {
    const HeardBy nobody(nullptr);
    TopologyMemory memory;
    memory.reserve(voxels.device(), std::max<std::int64_t>(voxels.size(), room.leaves));
    find_topology(memory, voxels);
    auto made = with_nodes(voxels.device(), std::move(memory), voxels.size(), plan, room);
    write(*made, voxels.size(), all);
    made->read_counts();
    return made;
  });
}

void rebuild(VolumeState& s, const Array<vec3i>& voxels, bool all) {
  if (!s.making) invalid("a volume is rebuilt that was not made on its device, from arrays");
  require_array(s.arrays.words.device(), voxels, "a volume", "voxels");
  VolumeMaking& m = *s.making;
  const bool captured = Capture::current() != nullptr;
  if (captured && voxels.size() > m.memory.keys.size())
    invalid("a volume is rebuilt of {} voxels in a capture, and has memory for {}: rebuild it so before", voxels.size(),
            m.memory.keys.size());
  Tape::unrecorded([&] {
    m.memory.reserve(s.arrays.words.device(), voxels.size());
    find_topology(m.memory, voxels);
    count_nodes(m.memory, voxels.size(), m.places.room);
    if (!captured) {
      const std::vector<int> counts = m.memory.counts.to_vector();
      if (counts[3] + counts[4] > 0) m.memory.counts.zero();  // nothing is left out, as nothing is done
      refuse_far(counts[3]);
      if (counts[4] > 0)
        invalid("a volume with room for {} leaves, {} lower and {} upper nodes is rebuilt with {} leaves more than fit",
                m.places.room.x, m.places.room.y, m.places.room.z, counts[4]);
    }
    write(s, voxels.size(), all);
  });
  m.changes = true;
}

// ---- Dense blocks

template <class T>
Bool differs(const Var<T>& a, const Var<T>& b) {
  if constexpr (Scalar<T>) {
    if constexpr (RealScalar<T>)
      return (a != b) & ((a == a) | (b == b));
    else
      return a != b;
  } else {
    Bool any = false;
    for (int k = 0; k < Flat<T>::count; ++k) any = any | differs<typename Flat<T>::scalar>(a[k], b[k]);
    return any;
  }
}

/// The voxels of a block that differ from the background.
template <class T>
Array<vec3i> filled_voxels(const Array<T, 3>& values, const vec3i& lower, const T& background) {
  static const auto mark = kernel("volume_filled", [](Arr<const T, 3> values, Arr<int> marks, Var<T> background) {
    const tracing::AnyFloats any;
    auto [i, j, k] = tid<3>();
    marks[(i * values.shape(1) + j) * values.shape(2) + k] = Int(differs<T>(values(i, j, k), background));
  });
  static const auto list =
      kernel("volume_voxels", [](Arr<const int> places, Arr<vec3i> voxels, Vec3i size, Vec3i lower) {
        Int i = tid(), at = places[i];
        voxels[i] = lower + Vec3i(at / (size.y * size.z), at / size.z % size.y, at % size.z);
      });
  const Device device = values.device();
  const std::int64_t n = values.size();
  const vec3i size{int(values.shape(0)), int(values.shape(1)), int(values.shape(2))};
  if (n == 0) return empty<vec3i>(device, 0);
  const auto marks = empty<int>(device, n), places = empty<int>(device, n), count = empty<int>(device, 1);
  launch(mark, {size.x, size.y, size.z}, values, marks, background);
  compact_indices(marks, places, count);
  const auto voxels = empty<vec3i>(device, count.to_vector()[0]);
  if (voxels.size() > 0) launch(list, voxels.size(), places, voxels, size, lower);
  return voxels;
}

template <class T>
void copy_block(const Volume& volume, const Array<T, 3>& values, const vec3i& lower) {
  static const auto copy =
      kernel("volume_copy", [](Var<VolumeArrays> volume, Arr<T, 2> leaves, Arr<const T, 3> values, Vec3i lower) {
        const tracing::AnyFloats any;
        auto [l, n] = tid<2>();
        const Vec3i voxel = voxel_in_leaf(volume, volume.leaf + l * volume.leaf_words, n) - lower;
        Bool inside = true;
        for (int k = 0; k < 3; ++k) {
          inside = inside & (voxel[k] >= 0) & (voxel[k] < values.shape(k));
        }
        If (inside) {
          leaves(l, n) = values(voxel[0], voxel[1], voxel[2]);
        }
      });
  const std::int64_t leaves = volume.info().leaves;
  if (leaves > 0) launch(copy, {leaves, 512}, volume, volume.values<T>(), values, lower);
}

template <VolumeValue T>
std::shared_ptr<VolumeState> make_of(const Array<vec3i>& voxels, bool all, const T& background,
                                     const VolumeOptions& options) {
  return make(voxels, all, plan_of(VolumeValueOf<T>::type, bytes_of(background), options), options.room);
}

}  // namespace
}  // namespace detail

template <VolumeValue T>
Volume Volume::allocate_by_tiles(const Array<vec3i>& voxels, const T& background, const VolumeOptions& options,
                                 Loc loc) {
  return detail::called_from(loc, [&] { return Volume(detail::make_of(voxels, true, background, options)); });
}
template <VolumeValue T>
Volume Volume::allocate_by_voxels(const Array<vec3i>& voxels, const T& background, const VolumeOptions& options,
                                  Loc loc) {
  return detail::called_from(loc, [&] { return Volume(detail::make_of(voxels, false, background, options)); });
}
template <VolumeValue T>
Volume Volume::from_dense(const Array<T, 3>& values, vec3i lower, const T& background, const VolumeOptions& options,
                          Loc loc) {
  return detail::called_from(loc, [&] {
    if (values.is_null()) invalid("a volume is made of a null array");
    const detail::HeardBy nobody(nullptr);
    const Volume made = allocate_by_voxels(detail::filled_voxels(values, lower, background), background, options, loc);
    detail::copy_block(made, values, lower);
    return made;
  });
}

#define WEFT_VOLUME_OF(T, kind, S, slope)                                                                  \
  template Volume Volume::allocate_by_tiles<T>(const Array<vec3i>&, const T&, const VolumeOptions&, Loc);  \
  template Volume Volume::allocate_by_voxels<T>(const Array<vec3i>&, const T&, const VolumeOptions&, Loc); \
  template Volume Volume::from_dense<T>(const Array<T, 3>&, vec3i, const T&, const VolumeOptions&, Loc);
WEFT_VOLUME_TYPES(WEFT_VOLUME_OF)
#undef WEFT_VOLUME_OF

void Volume::rebuild_by_tiles(const Array<vec3i>& voxels, Loc loc) {
  detail::called_from(loc, [&] { detail::rebuild(state(), voxels, true); });
}
void Volume::rebuild_by_voxels(const Array<vec3i>& voxels, Loc loc) {
  detail::called_from(loc, [&] { detail::rebuild(state(), voxels, false); });
}

}  // namespace weft
