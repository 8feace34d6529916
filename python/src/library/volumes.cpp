// The library's functions of volumes, which kernels of Python's name by their ids.
#include <string>

#include "../../../runtime/volume/tree/interpolate.h"
#include "../../../runtime/volume/volume_query.h"
#include "../../../runtime/volume/volume_ray.h"
#include "../module.h"
#include "../trace/array_refs.h"
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

/// A value between voxels, and its derivative by the point.
template <class T, VolumeSampling how>
auto slope(const UInt64& id, const Vec3& point) {
  const VolumeSlope<T> found = volume_sample_slope<T>(VolumeInKernel(id), point, how);
  return std::tuple(found.value, found.gradient);
}

/// The functions for one type of values, whose names end with that type's.
template <class T>
void add_for(const std::string& type) {
  using Sampled = typename detail::VolumeValueOf<T>::Sampled;
  form<T, Handle, vec3i>(("volume_lookup_" + type).c_str(), [](const auto& volume, const auto& voxel) {
    return volume_lookup<T>(VolumeInKernel(volume), voxel);
  });
  if constexpr (VolumeNumber<T>)
    form<std::tuple<bool, float, vec3>, Handle, vec3, vec3, float, float>(
        ("volume_ray_" + type).c_str(),
        [](const auto& volume, const auto& origin, const auto& direction, const auto& most, const auto& value) {
          const VolumeRayHit hit = volume_ray<T>(VolumeInKernel(volume), origin, direction, most, value);
          return std::tuple(hit.hit, hit.t, hit.normal);
        });
  if constexpr (VolumeSloped<T>) {
    using Slope = typename detail::VolumeValueOf<T>::Slope;
    form<Sampled, Handle, vec3, int>(
        ("volume_sample_" + type).c_str(),
        [](const auto& volume, const auto& point, const auto& how) { return sampled<T>(volume, point, how); });
    form<Sampled, Handle, vec3>(("volume_cubic_" + type).c_str(), [](const auto& volume, const auto& point) {
      return volume_sample<T>(VolumeInKernel(volume), point, VolumeSampling::cubic);
    });
    form<std::tuple<Sampled, Slope>, Handle, vec3>(
        ("volume_slope_" + type).c_str(),
        [](const auto& volume, const auto& point) { return slope<T, VolumeSampling::linear>(volume, point); });
    form<std::tuple<Sampled, Slope>, Handle, vec3>(
        ("volume_cubic_slope_" + type).c_str(),
        [](const auto& volume, const auto& point) { return slope<T, VolumeSampling::cubic>(volume, point); });
  } else {
    form<T, Handle, vec3, int>(("volume_sample_" + type).c_str(),
                               [](const auto& volume, const auto& point, const auto&) {
                                 return volume_sample<T>(VolumeInKernel(volume), point, VolumeSampling::closest);
                               });
  }
}

/// The parts of a ray that lie in a volume's active space, which a kernel goes through.
class Segments {
 public:
  Segments(Id volume, const Ids& origin, const Ids& direction, const Ids& most)
      : trace_(tracing::Trace::current(here()).serial()),
        segments_(VolumeInKernel(traced_handle(volume)), traced<vec3>(origin, "an origin"),
                  traced<vec3>(direction, "a direction"), traced<float>(most, "a distance"), here()) {}

  /// Finds the next part. Returns whether there is one, and where it begins and ends.
  nb::tuple next() {
    tracing::Trace::owner_of(trace_, here());
    const tracing::CallPlace place(here());
    const Var<bool> more = segments_.next(begin_, end_, here());
    return nb::make_tuple(more.read({}), begin_.read({}), end_.read({}));
  }

 private:
  std::uint32_t trace_;
  VolumeSegments segments_;
  Float begin_ = 0.f, end_ = 0.f;
};

/// A value at a point among those that an array holds, in the order of volume_lookup_index().
template <class T>
Ids sample_index(Id volume, const Ids& point, Id how, const ArrayRef& values, const Ids& background) {
  const tracing::CallPlace place(here());
  const VolumeInKernel found{traced_handle(volume)};
  const Vec3 at = traced<vec3>(point, "a point");
  const Arr<const T> held(values.layout);
  const Var<T> otherwise = traced<T>(background, "the background");
  check_id(how);
  expect_type(how, ir::Type::i32, "a way of sampling");
  const Int way(how, detail::FromId{});
  Var<T> result = T{};
  If (way == 0) {
    result = volume_sample_index(found, at, VolumeSampling::closest, held, otherwise);
  }
  Else { result = volume_sample_index(found, at, VolumeSampling::linear, held, otherwise); }
  Ids ids(std::size_t(TypeOf<T>::get().count()));
  detail::read_ids<T>(result, ids.data(), here());
  return ids;
}

/// The derivative by the point of the value linear between voxels among those that an array holds.
template <class T>
Ids slope_index(Id volume, const Ids& point, const ArrayRef& values, const Ids& background) {
  const tracing::CallPlace place(here());
  const VolumeInKernel found{traced_handle(volume)};
  const Arr<const T> held(values.layout);
  const Var<T> otherwise = traced<T>(background, "the background");
  const detail::CellPoint cell(traced<vec3>(point, "a point"));
  Var<T> corners[8];
  for (int c = 0; c < 8; ++c) {
    const Int n =
        volume_lookup_index(found, Vec3i(cell.cell[0] + (c >> 2), cell.cell[1] + (c >> 1 & 1), cell.cell[2] + (c & 1)));
    corners[c] = otherwise;
    If ((n >= 0) & (n < held.shape(0))) {
      corners[c] = held[n];
    }
  }
  const auto slope = detail::trilinear_slope(corners, cell.rest);
  using Slope = typename detail::VolumeValueOf<T>::Slope;
  Var<Slope> result;
  for (int k = 0; k < 3; ++k) {
    if constexpr (Scalar<T>)
      result[k] = slope[std::size_t(k)];
    else
      for (int c = 0; c < 3; ++c) result(c, k) = slope[std::size_t(k)][c];
  }
  Ids ids(std::size_t(TypeOf<Slope>::get().count()));
  detail::read_ids<Slope>(result, ids.data(), here());
  return ids;
}

[[noreturn]] void refuse_values() {
  throw nb::type_error("the values of voxels are an array of one dimension of float32 or vec3f");
}

Ids slope_index_of(Id volume, const Ids& point, const ArrayRef& values, const Ids& background) {
  if (values.ndim() != 1 || values.is_null()) refuse_values();
  if (values.dtype == &TypeOf<float>::get()) return slope_index<float>(volume, point, values, background);
  if (values.dtype == &TypeOf<vec3>::get()) return slope_index<vec3>(volume, point, values, background);
  refuse_values();
}

Ids sample_index_of(Id volume, const Ids& point, Id how, const ArrayRef& values, const Ids& background) {
  if (values.ndim() != 1 || values.is_null()) refuse_values();
  if (values.dtype == &TypeOf<float>::get()) return sample_index<float>(volume, point, how, values, background);
  if (values.dtype == &TypeOf<vec3>::get()) return sample_index<vec3>(volume, point, how, values, background);
  refuse_values();
}

}  // namespace

void add_volume_queries(nb::module_& m) {
  nb::class_<Segments>(m, "VolumeSegments", "The parts of a ray in active space, in a kernel.")
      .def(nb::init<Id, const Ids&, const Ids&, const Ids&>())
      .def("next", &Segments::next);
  m.def("volume_slope_index", &slope_index_of, nb::arg("volume"), nb::arg("point"), nb::arg("values"),
        nb::arg("background"));
  m.def("volume_sample_index", &sample_index_of, nb::arg("volume"), nb::arg("point"), nb::arg("how"), nb::arg("values"),
        nb::arg("background"));
}

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
