// Meshes, hierarchies of boxes and hash grids in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "../../../runtime/geometry/bvh.h"
#include "../../../runtime/geometry/hash_grid.h"
#include "../../../runtime/geometry/mesh.h"
#include "../host/arrays.h"
#include "../module.h"
#include "live_ids.h"

namespace weft::python {

namespace {

BvhBuilder builder_from(const std::string& name) {
  if (name == "hploc") return BvhBuilder::hploc;
  if (name == "lbvh") return BvhBuilder::lbvh;
  throw nb::value_error("a builder is \"hploc\" or \"lbvh\"");
}

weft::Array<int> groups_from(nb::handle groups) {
  return groups.is_none() ? weft::Array<int>() : typed<int>(groups, "groups");
}

Mesh make_mesh(nb::handle points, nb::handle indices, nb::handle velocities, bool winding_number,
               const std::string& builder, int leaf_size) {
  MeshOptions options;
  if (!velocities.is_none()) options.velocities = typed<vec3>(velocities, "the velocities of a mesh");
  options.builder = builder_from(builder);
  options.leaf_size = leaf_size;
  options.winding_number = winding_number;
  const auto at = typed<vec3>(points, "the points of a mesh");
  const auto corners = typed<int>(indices, "the indices of a mesh");
  Released released;
  return Mesh(at, corners, options);
}

Bvh make_bvh(nb::handle lowers, nb::handle uppers, nb::handle groups, const std::string& builder, int leaf_size,
             int curve_bits) {
  BvhOptions options;
  options.builder = builder_from(builder);
  options.leaf_size = leaf_size;
  options.curve_bits = curve_bits;
  options.groups = groups_from(groups);
  const auto low = typed<vec3>(lowers, "the lower bounds of boxes");
  const auto high = typed<vec3>(uppers, "the upper bounds of boxes");
  if (low.is_null()) throw nb::value_error("a hierarchy over no boxes");
  Released released;
  return Bvh(low.device(), low, high, options);
}

/// Calls a function that waits, without the GIL.
template <class F>
auto waiting(F f) {
  Released released;
  return f();
}

template <class T, unsigned kind>
std::uint64_t id_of(const Identified<T>& structure) {
  const Mesh* mesh = nullptr;
  if constexpr (std::is_same_v<T, Mesh>) mesh = &structure;
  return structure.live.keep(structure.device(), structure.id(), {kind, nullptr, mesh});
}

}  // namespace

void add_geometry(nb::module_& m) {
  nb::class_<Identified<Mesh>>(m, "Mesh", nb::dynamic_attr(), nb::is_weak_referenceable(),
                               "A triangle mesh that kernels query.")
      .def(
          "__init__",
          [](Identified<Mesh>* self, nb::handle points, nb::handle indices, nb::handle velocities, bool winding_number,
             const std::string& builder, int leaf_size) {
            new (self) Identified<Mesh>(make_mesh(points, indices, velocities, winding_number, builder, leaf_size));
          },
          nb::arg("points"), nb::arg("indices"), nb::arg("velocities").none() = nb::none(),
          nb::arg("winding_number") = false, nb::arg("builder") = "hploc", nb::arg("leaf_size") = 4)
      .def_prop_ro("id", &id_of<Mesh, kMeshId>)
      .def_prop_ro("size", [](const Identified<Mesh>& mesh) { return mesh.size(); })
      .def("refit", [](Identified<Mesh>& mesh) { mesh.refit(); })
      .def("rebuild", [](Identified<Mesh>& mesh) {
        Released released;
        mesh.rebuild();
      });
  nb::class_<Identified<Bvh>>(m, "Bvh", nb::dynamic_attr(), nb::is_weak_referenceable(), "A hierarchy of boxes.")
      .def(
          "__init__",
          [](Identified<Bvh>* self, nb::handle lowers, nb::handle uppers, nb::handle groups, const std::string& builder,
             int leaf_size, int curve_bits) {
            new (self) Identified<Bvh>(make_bvh(lowers, uppers, groups, builder, leaf_size, curve_bits));
          },
          nb::arg("lowers"), nb::arg("uppers"), nb::arg("groups").none() = nb::none(), nb::arg("builder") = "hploc",
          nb::arg("leaf_size") = 1, nb::arg("curve_bits") = 30)
      .def_prop_ro("id", &id_of<Bvh, kBvhId>)
      .def_prop_ro("size", [](const Identified<Bvh>& bvh) { return bvh.size(); })
      .def("depth", [](const Identified<Bvh>& bvh) { return waiting([&] { return bvh.depth(); }); })
      .def("ignored", [](const Identified<Bvh>& bvh) { return waiting([&] { return bvh.ignored(); }); })
      .def("refit", [](Identified<Bvh>& bvh) { bvh.refit(); })
      .def("rebuild", [](Identified<Bvh>& bvh) { bvh.rebuild(); });
  nb::class_<Identified<HashGrid>>(m, "HashGrid", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                   "Points in the cells of a grid.")
      .def(
          "__init__",
          [](Identified<HashGrid>* self, int dim_x, int dim_y, int dim_z, nb::handle device, bool deterministic) {
            new (self) Identified<HashGrid>(HashGrid(device_from(device), dim_x, dim_y, dim_z, {deterministic, false}));
          },
          nb::arg("dim_x"), nb::arg("dim_y"), nb::arg("dim_z"), nb::arg("device").none() = nb::none(),
          nb::arg("deterministic") = false)
      .def_prop_ro("id", &id_of<HashGrid, kHashGridId>)
      .def_prop_ro("size", [](const Identified<HashGrid>& grid) { return grid.size(); })
      .def_prop_ro("dims",
                   [](const Identified<HashGrid>& grid) {
                     const vec3i dims = grid.dims();
                     return std::tuple(dims[0], dims[1], dims[2]);
                   })
      .def(
          "build",
          [](Identified<HashGrid>& grid, nb::handle points, float cell_width, nb::handle groups) {
            grid.build(typed<vec3>(points, "the points of a grid"), cell_width, groups_from(groups));
          },
          nb::arg("points"), nb::arg("cell_width"), nb::arg("groups").none() = nb::none())
      .def("ignored", [](const Identified<HashGrid>& grid) { return waiting([&] { return grid.ignored(); }); })
      .def("reserve", [](Identified<HashGrid>& grid, std::int64_t points) { grid.reserve(points); });
}

}  // namespace weft::python
