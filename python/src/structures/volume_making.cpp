// Volumes that Python makes of meshes, spheres, points and dense blocks.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "../../../runtime/volume/grid/build.h"
#include "../../../runtime/volume/volume_from.h"
#include "../module.h"
#include "volume_values.h"

namespace weft::python {

namespace {

MeshSign sign_from(const std::string& name) {
  if (name == "none") return MeshSign::none;
  if (name == "majority") return MeshSign::majority;
  if (name == "normal") return MeshSign::normal;
  if (name == "winding") return MeshSign::winding;
  throw nb::value_error("the sign of a mesh's level set is told by \"normal\", \"majority\", \"winding\" or \"none\"");
}

VolumeObject of_mesh(const Identified<Mesh>& mesh, const std::string& sign, float voxel_size, float half_width,
                     const std::string& name) {
  const MeshSign by = sign_from(sign);
  Released released;
  return volume_from_mesh(mesh, by, {voxel_size, half_width, name});
}

VolumeObject of_spheres(nb::handle centers, nb::handle radii, float voxel_size, float half_width,
                        const std::string& name) {
  const auto at = typed<vec3>(centers, "the centers of spheres");
  const auto r = typed<float>(radii, "the radii of spheres");
  Released released;
  return volume_from_spheres(at, r, {voxel_size, half_width, name});
}

VolumeObject of_points(nb::handle points, float radius, float voxel_size, const std::string& name) {
  const auto at = typed<vec3>(points, "the points of a volume");
  VolumeFromOptions options;
  options.voxel_size = voxel_size;
  options.name = name;
  Released released;
  return volume_from_points(at, radius, options);
}

VolumeObject of_block(nb::handle values, std::tuple<int, int, int> lower, const std::vector<double>& background,
                      const std::vector<double>& matrix, const std::vector<double>& translation,
                      const std::string& name) {
  const VolumeOptions options = volume_options(matrix, translation, name, {0, 0, 0});
  const vec3i first(std::get<0>(lower), std::get<1>(lower), std::get<2>(lower));
  return for_values(array_from(values).dtype(), [&]<class T>() -> VolumeObject {
    const auto block = typed<T, 3>(values, "the values of a block");
    const T value = value_from<T>(background);
    Released released;
    return Volume::from_dense<T>(block, first, value, options);
  });
}

/// An index grid of voxels of the host.
/// \param voxels  three int32 for each
/// \param all  numbers all voxels of their leaves, else these alone
VolumeObject of_indices(const nb::bytes& voxels, bool all, const std::vector<double>& matrix,
                        const std::vector<double>& translation, nb::handle device) {
  const VolumeOptions options = volume_options(matrix, translation, {}, {0, 0, 0});
  const Device on = device_from(device);
  std::vector<vec3i> at(voxels.size() / sizeof(vec3i));
  if (!at.empty()) std::memcpy(at.data(), voxels.c_str(), at.size() * sizeof(vec3i));
  Released released;
  grids::GridPlan plan;
  plan.type = all ? VolumeType::index : VolumeType::on_index;
  plan.grid_class = VolumeClass::index;
  plan.matrix = options.matrix;
  plan.translation = options.translation;
  plan.background.resize(sizeof(std::uint64_t));
  const std::vector<std::byte> grid = grids::build_grid(plan, grids::leaves_of(at, all));
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(grid.data()), grid.size());
  return Volume(weft::Array<std::uint8_t>(on, bytes));
}

}  // namespace

void add_volume_making(nb::module_& m) {
  m.def("volume_of_indices", &of_indices, nb::arg("voxels"), nb::arg("all"), nb::arg("matrix"), nb::arg("translation"),
        nb::arg("device"), "An index grid.");
  m.def("volume_from_mesh", &of_mesh, nb::arg("mesh"), nb::arg("sign"), nb::arg("voxel_size"), nb::arg("half_width"),
        nb::arg("name"), "The level set of a mesh.");
  m.def("volume_from_spheres", &of_spheres, nb::arg("centers"), nb::arg("radii"), nb::arg("voxel_size"),
        nb::arg("half_width"), nb::arg("name"), "The level set of spheres.");
  m.def("volume_from_points", &of_points, nb::arg("points"), nb::arg("radius"), nb::arg("voxel_size"), nb::arg("name"),
        "The density of points.");
  m.def("volume_from_dense", &of_block, nb::arg("values"), nb::arg("lower"), nb::arg("background"), nb::arg("matrix"),
        nb::arg("translation"), nb::arg("name"), "A volume of a dense block of values.");
}

}  // namespace weft::python
