// The library's functions of volumes, which kernels of Python's name by their ids.
#include <string>

#include "../../../runtime/volume/volume_query.h"
#include "../module.h"
#include "library.h"

namespace weft::python {

namespace {

using Handle = std::uint64_t;

/// A value between voxels, by a number of the way: 0 closest, 1 linear.
template <class T>
auto sampled(const UInt64& id, const Vec3& point, const Int& how) {
  VolumeAccessor<T> values{VolumeInKernel(id)};
  VolumeSampled<T> result = typename detail::VolumeValueOf<T>::Sampled{};
  If (how == 0) {
    result = values.sample(point, VolumeSampling::closest);
  }
  Else { result = values.sample(point, VolumeSampling::linear); }
  return result;
}

/// The functions for one type of values, whose names end with that type's.
template <class T>
void add_for(const std::string& type) {
  using Sampled = typename detail::VolumeValueOf<T>::Sampled;
  form<T, Handle, vec3i>(("volume_lookup_" + type).c_str(), [](const auto& volume, const auto& voxel) {
    return volume_lookup<T>(VolumeInKernel(volume), voxel);
  });
  if constexpr (VolumeSloped<T>) {
    using Slope = typename detail::VolumeValueOf<T>::Slope;
    form<Sampled, Handle, vec3, int>(
        ("volume_sample_" + type).c_str(),
        [](const auto& volume, const auto& point, const auto& how) { return sampled<T>(volume, point, how); });
    if constexpr (Flat<T>::count <= 3)
      form<std::tuple<Sampled, Slope>, Handle, vec3>(
          ("volume_slope_" + type).c_str(), [](const auto& volume, const auto& point) {
            const auto slope = volume_sample_slope<T>(VolumeInKernel(volume), point);
            return std::tuple(slope.value, slope.gradient);
          });
  } else {
    form<T, Handle, vec3, int>(("volume_sample_" + type).c_str(),
                               [](const auto& volume, const auto& point, const auto&) {
                                 return volume_sample<T>(VolumeInKernel(volume), point, VolumeSampling::closest);
                               });
  }
}

}  // namespace

void add_volume_functions() {
#define WEFT_ADD(T, kind, S, slope) add_for<T>(#kind);
  WEFT_VOLUME_TYPES(WEFT_ADD)
#undef WEFT_ADD
  form<vec3, Handle, vec3>("volume_index_to_world", [](const auto& volume, const auto& p) {
    return volume_index_to_world(VolumeInKernel(volume), p);
  });
  form<vec3, Handle, vec3>("volume_world_to_index", [](const auto& volume, const auto& p) {
    return volume_world_to_index(VolumeInKernel(volume), p);
  });
  form<vec3, Handle, vec3>("volume_index_to_world_dir", [](const auto& volume, const auto& d) {
    return volume_index_to_world_dir(VolumeInKernel(volume), d);
  });
  form<vec3, Handle, vec3>("volume_world_to_index_dir", [](const auto& volume, const auto& d) {
    return volume_world_to_index_dir(VolumeInKernel(volume), d);
  });
  form<int, Handle, vec3i>("volume_lookup_index", [](const auto& volume, const auto& voxel) {
    return volume_lookup_index(VolumeInKernel(volume), voxel);
  });
  form<int, Handle>("volume_voxel_count",
                    [](const auto& volume) { return volume_voxel_count(VolumeInKernel(volume)); });
  form<vec3i, Handle, int>("volume_voxel",
                           [](const auto& volume, const auto& n) { return volume_voxel(VolumeInKernel(volume), n); });
}

}  // namespace weft::python
