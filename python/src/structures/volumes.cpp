// Volumes in Python: files, arrays that hold grids, grids from voxels, and surfaces.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "../../../runtime/array_create.h"
#include "../../../runtime/launch.h"
#include "../../../runtime/volume/volume_query.h"
#include "../../../runtime/volume/volume_surface.h"
#include "../module.h"
#include "live_ids.h"
#include "volume_values.h"

namespace weft::python {

const DType* values_of(const Volume& volume) {
  switch (volume.info().type) {
#define WEFT_CASE(T, kind, S, slope) \
  case VolumeType::kind: return &TypeOf<T>::get();
    WEFT_VOLUME_TYPES(WEFT_CASE)
#undef WEFT_CASE
    default: return nullptr;
  }
}

Array values_array(const Volume& volume) {
  const DType* const type = values_of(volume);
  if (!type) throw nb::type_error("an index grid has no values");
  return for_values(*type, [&]<class T>() { return Array(*type, volume.values<T>()); });
}

VolumeOptions volume_options(const std::vector<double>& matrix, const std::vector<double>& translation,
                             const std::string& name, std::tuple<int, int, int> room) {
  if (matrix.size() != 9 || translation.size() != 3)
    throw nb::type_error("a transform is a matrix of 9 numbers and a translation of 3");
  VolumeOptions options;
  options.name = name;
  for (int k = 0; k < 9; ++k) options.matrix(k / 3, k % 3) = matrix[std::size_t(k)];
  options.translation = {translation[0], translation[1], translation[2]};
  options.room = {std::get<0>(room), std::get<1>(room), std::get<2>(room)};
  return options;
}

namespace {

VolumeCodec codec_from(const std::string& name) {
  if (name == "none") return VolumeCodec::none;
  if (name == "zip") return VolumeCodec::zip;
  if (name == "blosc") return VolumeCodec::blosc;
  throw nb::value_error("a codec is \"none\", \"zip\" or \"blosc\"");
}

VolumeObject make_volume(nb::handle dtype, nb::handle voxels, bool all, const std::vector<double>& background,
                         const std::vector<double>& matrix, const std::vector<double>& translation,
                         const std::string& name, std::tuple<int, int, int> room) {
  const VolumeOptions options = volume_options(matrix, translation, name, room);
  const auto at = typed<vec3i>(voxels, "the voxels of a volume");
  return for_values(type_from(dtype), [&]<class T>() -> VolumeObject {
    const T value = value_from<T>(background);
    Released released;
    return all ? Volume::allocate_by_tiles<T>(at, value, options) : Volume::allocate_by_voxels<T>(at, value, options);
  });
}

/// The least corners of the leaves.
weft::Array<vec3i> leaves_of(const Volume& volume) {
  static const auto list = kernel("list leaves", [](Var<VolumeArrays> volume, Arr<vec3i> corners) {
    Int l = tid();
    const Int leaf = volume.leaf + l * volume.leaf_words;
    const auto along = [&](int axis) { return bitcast<int>(volume.words[leaf + axis]) & ~7; };
    corners[l] = Vec3i(along(0), along(1), along(2));
  });
  const std::int64_t leaves = volume.info().leaves;
  const auto corners = weft::empty<vec3i>(volume.device(), leaves);
  if (leaves > 0) launch(list, leaves, volume, corners);
  return corners;
}

/// The active voxels of an index grid, leaf by leaf, and the number of each.
std::pair<weft::Array<vec3i>, weft::Array<int>> numbered_voxels(const Volume& volume) {
  static const auto list = kernel("list voxels", [](Var<VolumeArrays> volume, Arr<vec3i> voxels, Arr<int> numbers) {
    Int n = tid();
    const Vec3i voxel = volume_voxel(volume, n);
    voxels[n] = voxel;
    numbers[n] = volume_lookup_index(volume, voxel);
  });
  const std::int64_t count = volume.info().voxels;
  const auto voxels = weft::empty<vec3i>(volume.device(), count);
  const auto numbers = weft::empty<int>(volume.device(), count);
  if (count > 0) launch(list, count, volume, voxels, numbers);
  return {voxels, numbers};
}

nb::dict facts_of(const Volume& volume) {
  const VolumeInfo& info = volume.info();
  nb::dict facts;
  facts["name"] = info.name;
  facts["type"] = to_string(info.type);
  facts["voxels"] = info.voxels;
  facts["leaves"] = info.leaves;
  facts["left_out"] = info.left_out;
  facts["bytes"] = info.bytes;
  facts["lower"] = nb::make_tuple(info.lower.x, info.lower.y, info.lower.z);
  facts["upper"] = nb::make_tuple(info.upper.x, info.upper.y, info.upper.z);
  facts["translation"] = nb::make_tuple(info.translation.x, info.translation.y, info.translation.z);
  facts["voxel_size"] = nb::make_tuple(info.voxel_size.x, info.voxel_size.y, info.voxel_size.z);
  nb::list matrix, background;
  for (int k = 0; k < 9; ++k) matrix.append(info.matrix(k / 3, k % 3));
  for (int k = 0; k < 4; ++k) background.append(info.background[k]);
  facts["matrix"] = matrix;
  facts["background"] = background;
  return facts;
}

std::uint64_t id_of(const VolumeObject& volume) {
  return volume.live.keep(volume.device(), volume.id(), {kVolumeId, &volume});
}

template <class T>
nb::object object_for(const weft::Array<T>& array) {
  return make_object(Array(TypeOf<T>::get(), array));
}
nb::object objects_for(const VolumeSurface& surface) {
  return nb::make_tuple(object_for(surface.points), object_for(surface.indices));
}

nb::object surface_of_block(nb::handle values, double value, const std::vector<float>& scale,
                            const std::vector<float>& translation) {
  if (scale.size() != 3 || translation.size() != 3) throw nb::type_error("a scale and a translation have 3 numbers");
  const auto block = typed<float, 3>(values, "the values of a block");
  mat33 matrix{};
  for (int k = 0; k < 3; ++k) matrix(k, k) = scale[std::size_t(k)];
  VolumeSurface surface;
  {
    Released released;
    surface = to_mesh(block, value, matrix, {translation[0], translation[1], translation[2]});
  }
  return objects_for(surface);
}

}  // namespace

void add_volumes(nb::module_& m) {
  nb::class_<VolumeObject>(m, "Volume", nb::dynamic_attr(), nb::is_weak_referenceable(), "A sparse grid of voxels.")
      .def_static(
          "make_from_file",
          [](const std::string& path, nb::handle device, const std::string& name, int index) {
            const Device on = device_from(device);
            Released released;
            return VolumeObject(Volume::load(on, path, {name, index}));
          },
          nb::arg("path"), nb::arg("device").none(), nb::arg("name"), nb::arg("index"))
      .def_static(
          "make_from_bytes",
          [](nb::bytes file, nb::handle device, const std::string& name, int index) {
            const Device on = device_from(device);
            const std::span content(reinterpret_cast<const std::byte*>(file.c_str()), file.size());
            Released released;
            return VolumeObject(Volume::load(on, content, {name, index}));
          },
          nb::arg("file"), nb::arg("device").none(), nb::arg("name"), nb::arg("index"))
      .def_static(
          "make_from_array",
          [](nb::handle array) { return VolumeObject(Volume(typed<std::uint8_t>(array, "the memory of a volume"))); })
      .def_static("make", &make_volume, nb::arg("dtype"), nb::arg("voxels"), nb::arg("all"), nb::arg("background"),
                  nb::arg("matrix"), nb::arg("translation"), nb::arg("name"), nb::arg("room"))
      .def_static("names", [](const std::string& path) { return Volume::names(path); })
      .def_prop_ro("id", &id_of)
      .def_prop_ro("native_device", [](const VolumeObject& volume) { return volume.device(); })
      .def("facts", [](const VolumeObject& volume) { return facts_of(volume); })
      .def("value_type",
           [](const VolumeObject& volume) -> nb::object {
             const DType* const type = values_of(volume);
             return type ? type->object() : nb::none();
           })
      .def("values", [](const VolumeObject& volume) { return make_object(values_array(volume)); })
      .def("leaves", [](const VolumeObject& volume) { return object_for(leaves_of(volume)); })
      .def("voxels",
           [](const VolumeObject& volume) {
             const auto [voxels, numbers] = numbered_voxels(volume);
             return nb::make_tuple(object_for(voxels), object_for(numbers));
           })
      .def("rebuild",
           [](VolumeObject& volume, nb::handle voxels, bool all) {
             const auto at = typed<vec3i>(voxels, "the voxels of a volume");
             Released released;
             all ? volume.rebuild_by_tiles(at) : volume.rebuild_by_voxels(at);
           })
      .def("save",
           [](const VolumeObject& volume, const std::string& path, const std::string& codec) {
             const VolumeCodec by = codec_from(codec);
             Released released;
             volume.save(path, by);
           })
      .def("bytes",
           [](const VolumeObject& volume) {
             const std::vector<std::byte> grid = volume.bytes();
             return nb::bytes(grid.data(), grid.size());
           })
      .def("surface", [](const VolumeObject& volume, double value) {
        VolumeSurface surface;
        {
          Released released;
          surface = to_mesh(volume, value);
        }
        return objects_for(surface);
      });
  m.def("surface_of_block", &surface_of_block, nb::arg("values"), nb::arg("value"), nb::arg("scale"),
        nb::arg("translation"), "Marching cubes over a block of values: points, and three indices for each triangle.");
}

}  // namespace weft::python
