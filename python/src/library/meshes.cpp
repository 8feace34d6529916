// The library's questions about meshes, hierarchies of boxes and grids, which kernels of Python's name by their ids.
#include <nanobind/stl/string.h>

#include "../../../runtime/geometry/bvh_query.h"
#include "../../../runtime/geometry/hash_grid_query.h"
#include "../../../runtime/geometry/mesh_query.h"
#include "../module.h"
#include "../trace/array_refs.h"
#include "../trace/kernel_ids.h"
#include "library.h"

namespace weft::python {

namespace {

using Handle = std::uint64_t;

/// Hit, t, u, v, sign, normal, face.
using RayHit = std::tuple<bool, float, float, float, float, vec3, int>;
/// Hit, sign, u, v, distance, face.
using PointHit = std::tuple<bool, float, float, float, float, int>;

auto parts_of(const MeshRayHit& h) { return std::tuple(h.hit, h.t, h.u, h.v, h.sign, h.normal, h.face); }
auto parts_of(const MeshPointHit& h) { return std::tuple(h.hit, h.sign, h.u, h.v, h.distance, h.face); }

/// The mesh with an id: its data, if the launch gives them, or what the device finds by the id.
MeshInKernel mesh_of(const UInt64& id) {
  const IdTrace* const trace = IdTrace::current();
  const Var<MeshArrays>* const given = trace ? trace->mesh(In<std::uint64_t>(id).id) : nullptr;
  return given ? MeshInKernel(*given) : MeshInKernel(id);
}

template <MeshSign sign>
void add_point_query(const char* name) {
  form<PointHit, Handle, vec3, float>(name, [](const auto& mesh, const auto& p, const auto& most) {
    return parts_of(mesh_query_point(mesh_of(mesh), p, most, sign));
  });
}

/// A query that a kernel goes through: the library's, which remembers where it is.
class Query {
 public:
  explicit Query(TreeQuery query) : trace_(tracing::Trace::current(here()).serial()), query_(std::move(query)) {}

  /// Finds the next result. Returns whether there is one, and its number, else `found`.
  nb::tuple next(Id found) {
    check_id(found);
    expect_type(found, ir::Type::i32, "the number of a query's result");
    tracing::Trace::owner_of(trace_, here());
    Var<int> place(found, detail::FromId{});
    const Var<bool> more = query_.next(place, here());
    return nb::make_tuple(more.read({}), place.read({}));
  }

 private:
  std::uint32_t trace_;
  TreeQuery query_;
};

/// The hierarchy with an id, or that of the mesh with an id.
BvhInKernel tree_of(Id id, bool is_mesh) {
  if (is_mesh) return BvhInKernel(mesh_of(traced_handle(id)).arrays.tree);
  return BvhInKernel(traced_handle(id));
}

/// The place where a query begins; nothing stands for the whole tree.
BvhRoot root_of(const Ids& root) {
  if (root.size() == 0) return {};
  return traced<int>(root, "a root");
}

/// All hits of a ray, which a kernel goes through.
class RayHits {
 public:
  explicit RayHits(MeshRayHits query) : trace_(tracing::Trace::current(here()).serial()), query_(std::move(query)) {}

  /// Finds the next hit. Returns whether there is one, and t, u, v, sign, normal and face.
  nb::tuple next() {
    tracing::Trace::owner_of(trace_, here());
    const Var<bool> more = query_.next(hit_, here());
    Ids normal(3);
    detail::read_ids<vec3>(hit_.normal, normal.data(), here());
    return nb::make_tuple(more.read({}), hit_.t.read({}), hit_.u.read({}), hit_.v.read({}), hit_.sign.read({}), normal,
                          hit_.face.read({}));
  }

 private:
  std::uint32_t trace_;
  MeshRayHits query_;
  MeshRayHit hit_;
};

/// The points, the indices and the velocities of the mesh with an id.
nb::tuple arrays_of_mesh(Id mesh) {
  const tracing::CallPlace place(here());
  const MeshInKernel found = mesh_of(traced_handle(mesh));
  return nb::make_tuple(ArrayRef{found.arrays.points.layout(), &TypeOf<vec3>::get()},
                        ArrayRef{found.arrays.indices.layout(), &TypeOf<int>::get()},
                        ArrayRef{found.arrays.velocities.layout(), &TypeOf<vec3>::get()});
}

}  // namespace

void add_mesh_functions() {
  form<RayHit, Handle, vec3, vec3, float>("mesh_query_ray",
                                          [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                            return parts_of(mesh_query_ray(mesh_of(mesh), o, d, most));
                                          });
  form<bool, Handle, vec3, vec3, float>("mesh_query_ray_anyhit",
                                        [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                          return mesh_query_ray_anyhit(mesh_of(mesh), o, d, most);
                                        });
  form<int, Handle, vec3, vec3, float>("mesh_query_ray_count",
                                       [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                         return mesh_query_ray_count(mesh_of(mesh), o, d, most);
                                       });
  add_point_query<MeshSign::none>("mesh_query_point_no_sign");
  add_point_query<MeshSign::majority>("mesh_query_point_sign_majority");
  add_point_query<MeshSign::normal>("mesh_query_point_sign_normal");
  add_point_query<MeshSign::winding>("mesh_query_point_sign_winding");
  form<PointHit, Handle, vec3, float>("mesh_query_furthest_point",
                                      [](const auto& mesh, const auto& p, const auto& least) {
                                        return parts_of(mesh_query_furthest_point(mesh_of(mesh), p, least));
                                      });
  form<float, Handle, vec3>("mesh_winding_number",
                            [](const auto& mesh, const auto& p) { return mesh_winding_number(mesh_of(mesh), p); });
  form<vec3, Handle, int, float, float>("mesh_eval_position",
                                        [](const auto& mesh, const auto& f, const auto& u, const auto& v) {
                                          return mesh_eval_position(mesh_of(mesh), f, u, v);
                                        });
  form<vec3, Handle, int, float, float>("mesh_eval_velocity",
                                        [](const auto& mesh, const auto& f, const auto& u, const auto& v) {
                                          return mesh_eval_velocity(mesh_of(mesh), f, u, v);
                                        });
  form<vec3, Handle, int>("mesh_eval_face_normal",
                          [](const auto& mesh, const auto& f) { return mesh_eval_face_normal(mesh_of(mesh), f); });
  form<int, Handle>("mesh_face_count", [](const auto& mesh) { return mesh_face_count(mesh_of(mesh)); });
  form<vec3, Handle, int>("mesh_get_point",
                          [](const auto& mesh, const auto& k) { return mesh_get_point(mesh_of(mesh), k); });
  form<vec3, Handle, int>("mesh_get_velocity",
                          [](const auto& mesh, const auto& k) { return mesh_get_velocity(mesh_of(mesh), k); });
  form<int, Handle, int>("mesh_get_index",
                         [](const auto& mesh, const auto& k) { return mesh_get_index(mesh_of(mesh), k); });
  form<int, Handle, int>("bvh_get_group_root",
                         [](const auto& bvh, const auto& group) { return bvh_group_root(BvhInKernel(bvh), group); });
  // -1 where there is no such point, as before the grid's first build.
  form<int, Handle, int>("hash_grid_point_id", [](const auto& grid, const auto& i) {
    const HashGridInKernel held(grid);
    Int found = -1;
    If ((i >= 0) & (i < held.data.count)) {
      found = hash_grid_point_id(held, i);
    }
    return found;
  });
}

void add_queries(nb::module_& m) {
  nb::class_<Query>(m, "Query", "What a query finds, in a kernel.").def("next", &Query::next);
  nb::class_<RayHits>(m, "RayHits", "The hits of a ray, in a kernel.").def("next", &RayHits::next);
  m.def("mesh_query_ray_all", [](Id mesh, const Ids& origin, const Ids& direction, const Ids& most) {
    const tracing::CallPlace place(here());
    return RayHits(mesh_query_ray_all(mesh_of(traced_handle(mesh)), traced<vec3>(origin, "an origin"),
                                      traced<vec3>(direction, "a direction"), traced<float>(most, "a distance"),
                                      here()));
  });
  m.def("mesh_arrays", &arrays_of_mesh);
  m.def("mesh_query_aabb", [](Id mesh, const Ids& lower, const Ids& upper) {
    const tracing::CallPlace place(here());
    return Query(mesh_query_aabb(mesh_of(traced_handle(mesh)), traced<vec3>(lower, "a bound"),
                                 traced<vec3>(upper, "a bound"), here()));
  });
  m.def("mesh_query_sphere", [](Id mesh, const Ids& center, const Ids& radius) {
    const tracing::CallPlace place(here());
    return Query(mesh_query_sphere(mesh_of(traced_handle(mesh)), traced<vec3>(center, "a center"),
                                   traced<float>(radius, "a radius"), here()));
  });
  m.def(
      "bvh_query_aabb",
      [](Id bvh, const Ids& lower, const Ids& upper, const Ids& root, bool of_mesh) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree = tree_of(bvh, of_mesh);
        return Query(bvh_query_aabb(tree, traced<vec3>(lower, "a bound"), traced<vec3>(upper, "a bound"), root_of(root),
                                    here()));
      },
      nb::arg("bvh"), nb::arg("lower"), nb::arg("upper"), nb::arg("root"), nb::arg("of_mesh"));
  m.def(
      "bvh_query_ray",
      [](Id bvh, const Ids& origin, const Ids& direction, const Ids& most, const Ids& root, bool of_mesh) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree = tree_of(bvh, of_mesh);
        return Query(bvh_query_ray(tree, traced<vec3>(origin, "an origin"), traced<vec3>(direction, "a direction"),
                                   traced<float>(most, "a distance"), root_of(root), here()));
      },
      nb::arg("bvh"), nb::arg("origin"), nb::arg("direction"), nb::arg("max_dist"), nb::arg("root"),
      nb::arg("of_mesh"));
  m.def(
      "bvh_query_sphere",
      [](Id bvh, const Ids& center, const Ids& radius, const Ids& root, bool of_mesh) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree = tree_of(bvh, of_mesh);
        return Query(bvh_query_sphere(tree, traced<vec3>(center, "a center"), traced<float>(radius, "a radius"),
                                      root_of(root), here()));
      },
      nb::arg("bvh"), nb::arg("center"), nb::arg("radius"), nb::arg("root"), nb::arg("of_mesh"));
  m.def(
      "bvh_query_capsule",
      [](Id bvh, const Ids& a, const Ids& b, const Ids& radius, const Ids& root, bool of_mesh) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree = tree_of(bvh, of_mesh);
        return Query(bvh_query_capsule(tree, traced<vec3>(a, "an end"), traced<vec3>(b, "an end"),
                                       traced<float>(radius, "a radius"), root_of(root), here()));
      },
      nb::arg("bvh"), nb::arg("a"), nb::arg("b"), nb::arg("radius"), nb::arg("root"), nb::arg("of_mesh"));
  m.def(
      "hash_grid_query",
      [](Id grid, const Ids& point, const Ids& radius, const Ids& group) {
        const tracing::CallPlace place(here());
        const HashGridInKernel cells(traced_handle(grid));
        const Vec3 at = traced<vec3>(point, "a point");
        const Float reach = traced<float>(radius, "a radius");
        if (group.size() == 0) return Query(hash_grid_query(cells, at, reach, here()));
        return Query(hash_grid_query(cells, at, reach, traced<int>(group, "a group"), here()));
      },
      nb::arg("grid"), nb::arg("point"), nb::arg("radius"), nb::arg("group") = nb::tuple());
}

}  // namespace weft::python
