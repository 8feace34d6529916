// Meshes in files and meshes of simple shapes, as bytes that Python takes for arrays of NumPy's.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>

#include "../../../runtime/geometry/mesh_file.h"
#include "../../../runtime/geometry/mesh_shapes.h"
#include "../module.h"

namespace weft::python {

namespace {

/// The points as float32, three for each, and the indices as int32.
nb::tuple bytes_of(const MeshData& mesh) {
  return nb::make_tuple(nb::bytes(mesh.points.data(), mesh.points.size() * sizeof(vec3)),
                        nb::bytes(mesh.indices.data(), mesh.indices.size() * sizeof(int)));
}

nb::tuple load(const std::string& path) {
  MeshData mesh;
  {
    Released released;
    mesh = load_mesh(path);
  }
  return bytes_of(mesh);
}

template <class T>
std::vector<T> elements_of(const nb::bytes& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.c_str(), elements.size() * sizeof(T));
  return elements;
}

void save(const std::string& path, const nb::bytes& points, const nb::bytes& indices) {
  const MeshData mesh{elements_of<vec3>(points), elements_of<int>(indices)};
  Released released;
  save_mesh(path, mesh);
}

}  // namespace

void add_mesh_files(nb::module_& m) {
  m.def("load_mesh", &load, nb::arg("path"), "The points and indices of a file.");
  m.def("save_mesh", &save, nb::arg("path"), nb::arg("points"), nb::arg("indices"), "Writes a file.");
  m.def("shape_box", [](std::tuple<float, float, float> size, int segments) {
    return bytes_of(shapes::box({std::get<0>(size), std::get<1>(size), std::get<2>(size)}, segments));
  });
  m.def("shape_icosphere",
        [](float radius, int subdivisions) { return bytes_of(shapes::icosphere(radius, subdivisions)); });
  m.def("shape_uv_sphere",
        [](float radius, int slices, int stacks) { return bytes_of(shapes::uv_sphere(radius, slices, stacks)); });
  m.def("shape_torus", [](float ring, float tube, int around, int across) {
    return bytes_of(shapes::torus(ring, tube, around, across));
  });
  m.def("shape_torus_knot", [](int p, int q, float tube, int around, int across) {
    return bytes_of(shapes::torus_knot(p, q, tube, around, across));
  });
  m.def("shape_grid", [](float size_x, float size_z, int segments_x, int segments_z) {
    return bytes_of(shapes::grid(size_x, size_z, segments_x, segments_z));
  });
  m.def("shape_cylinder",
        [](float radius, float height, int slices) { return bytes_of(shapes::cylinder(radius, height, slices)); });
  m.def("shape_cone",
        [](float radius, float height, int slices) { return bytes_of(shapes::cone(radius, height, slices)); });
  m.def("shape_capsule", [](float radius, float height, int slices, int stacks) {
    return bytes_of(shapes::capsule(radius, height, slices, stacks));
  });
  m.def("shape_random_soup",
        [](int triangles, float size, unsigned seed) { return bytes_of(shapes::random_soup(triangles, size, seed)); });
}

}  // namespace weft::python
