// The library's questions about meshes, hierarchies of boxes and grids, which kernels of Python's name by their ids.
#include <nanobind/stl/string.h>

#include "../../../runtime/geometry/bvh_query.h"
#include "../../../runtime/geometry/hash_grid_query.h"
#include "../../../runtime/geometry/mesh_query.h"
#include "../module.h"
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

template <MeshSign sign>
void add_point_query(const char* name) {
  form<PointHit, Handle, vec3, float>(name, [](const auto& mesh, const auto& p, const auto& most) {
    return parts_of(mesh_query_point(MeshInKernel(mesh), p, most, sign));
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

template <class T>
Var<T> value(const Ids& ids, const char* what) {
  check_ids(ids.span());
  const DType& dtype = TypeOf<T>::get();
  expect_count(ids.size(), std::size_t(dtype.count()), what);
  for (const Id id : ids.span()) expect_type(id, dtype.type, what);
  return detail::from_ids<T>(ids.data());
}

UInt64 handle(Id id) {
  check_id(id);
  expect_type(id, ir::Type::u64, "the id of a structure");
  return UInt64(id, detail::FromId{});
}

BvhRoot root_of(const BvhInKernel& bvh, const Ids& group) {
  if (group.size() == 0) return {};
  return bvh_group_root(bvh, value<int>(group, "a group"));
}

}  // namespace

void add_mesh_functions() {
  form<RayHit, Handle, vec3, vec3, float>("mesh_query_ray",
                                          [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                            return parts_of(mesh_query_ray(MeshInKernel(mesh), o, d, most));
                                          });
  form<bool, Handle, vec3, vec3, float>("mesh_query_ray_anyhit",
                                        [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                          return mesh_query_ray_anyhit(MeshInKernel(mesh), o, d, most);
                                        });
  form<int, Handle, vec3, vec3, float>("mesh_query_ray_count",
                                       [](const auto& mesh, const auto& o, const auto& d, const auto& most) {
                                         return mesh_query_ray_count(MeshInKernel(mesh), o, d, most);
                                       });
  add_point_query<MeshSign::none>("mesh_query_point_no_sign");
  add_point_query<MeshSign::majority>("mesh_query_point_sign_majority");
  add_point_query<MeshSign::normal>("mesh_query_point_sign_normal");
  add_point_query<MeshSign::winding>("mesh_query_point_sign_winding");
  form<PointHit, Handle, vec3, float>("mesh_query_furthest_point",
                                      [](const auto& mesh, const auto& p, const auto& least) {
                                        return parts_of(mesh_query_furthest_point(MeshInKernel(mesh), p, least));
                                      });
  form<float, Handle, vec3>("mesh_winding_number",
                            [](const auto& mesh, const auto& p) { return mesh_winding_number(MeshInKernel(mesh), p); });
  form<vec3, Handle, int, float, float>("mesh_eval_position",
                                        [](const auto& mesh, const auto& f, const auto& u, const auto& v) {
                                          return mesh_eval_position(MeshInKernel(mesh), f, u, v);
                                        });
  form<vec3, Handle, int, float, float>("mesh_eval_velocity",
                                        [](const auto& mesh, const auto& f, const auto& u, const auto& v) {
                                          return mesh_eval_velocity(MeshInKernel(mesh), f, u, v);
                                        });
  form<vec3, Handle, int>("mesh_eval_face_normal",
                          [](const auto& mesh, const auto& f) { return mesh_eval_face_normal(MeshInKernel(mesh), f); });
  form<int, Handle>("mesh_face_count", [](const auto& mesh) { return mesh_face_count(MeshInKernel(mesh)); });
  form<vec3, Handle, int>("mesh_get_point",
                          [](const auto& mesh, const auto& k) { return mesh_get_point(MeshInKernel(mesh), k); });
  form<vec3, Handle, int>("mesh_get_velocity",
                          [](const auto& mesh, const auto& k) { return mesh_get_velocity(MeshInKernel(mesh), k); });
  form<int, Handle, int>("mesh_get_index",
                         [](const auto& mesh, const auto& k) { return mesh_get_index(MeshInKernel(mesh), k); });
  form<int, Handle, int>("hash_grid_point_id",
                         [](const auto& grid, const auto& i) { return hash_grid_point_id(HashGridInKernel(grid), i); });
}

void add_queries(nb::module_& m) {
  nb::class_<Query>(m, "Query", "What a query finds, in a kernel.").def("next", &Query::next);
  m.def("mesh_query_aabb", [](Id mesh, const Ids& lower, const Ids& upper) {
    const tracing::CallPlace place(here());
    return Query(mesh_query_aabb(MeshInKernel(handle(mesh)), value<vec3>(lower, "a bound"),
                                 value<vec3>(upper, "a bound"), here()));
  });
  m.def("mesh_query_sphere", [](Id mesh, const Ids& center, const Ids& radius) {
    const tracing::CallPlace place(here());
    return Query(mesh_query_sphere(MeshInKernel(handle(mesh)), value<vec3>(center, "a center"),
                                   value<float>(radius, "a radius"), here()));
  });
  m.def(
      "bvh_query_aabb",
      [](Id bvh, const Ids& lower, const Ids& upper, const Ids& group) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree(handle(bvh));
        return Query(bvh_query_aabb(tree, value<vec3>(lower, "a bound"), value<vec3>(upper, "a bound"),
                                    root_of(tree, group), here()));
      },
      nb::arg("bvh"), nb::arg("lower"), nb::arg("upper"), nb::arg("group") = nb::tuple());
  m.def(
      "bvh_query_ray",
      [](Id bvh, const Ids& origin, const Ids& direction, const Ids& most, const Ids& group) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree(handle(bvh));
        return Query(bvh_query_ray(tree, value<vec3>(origin, "an origin"), value<vec3>(direction, "a direction"),
                                   value<float>(most, "a distance"), root_of(tree, group), here()));
      },
      nb::arg("bvh"), nb::arg("origin"), nb::arg("direction"), nb::arg("max_dist"), nb::arg("group") = nb::tuple());
  m.def(
      "bvh_query_sphere",
      [](Id bvh, const Ids& center, const Ids& radius, const Ids& group) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree(handle(bvh));
        return Query(bvh_query_sphere(tree, value<vec3>(center, "a center"), value<float>(radius, "a radius"),
                                      root_of(tree, group), here()));
      },
      nb::arg("bvh"), nb::arg("center"), nb::arg("radius"), nb::arg("group") = nb::tuple());
  m.def(
      "bvh_query_capsule",
      [](Id bvh, const Ids& a, const Ids& b, const Ids& radius, const Ids& group) {
        const tracing::CallPlace place(here());
        const BvhInKernel tree(handle(bvh));
        return Query(bvh_query_capsule(tree, value<vec3>(a, "an end"), value<vec3>(b, "an end"),
                                       value<float>(radius, "a radius"), root_of(tree, group), here()));
      },
      nb::arg("bvh"), nb::arg("a"), nb::arg("b"), nb::arg("radius"), nb::arg("group") = nb::tuple());
  m.def(
      "hash_grid_query",
      [](Id grid, const Ids& point, const Ids& radius, const Ids& group) {
        const tracing::CallPlace place(here());
        const HashGridInKernel cells(handle(grid));
        const Vec3 at = value<vec3>(point, "a point");
        const Float reach = value<float>(radius, "a radius");
        if (group.size() == 0) return Query(hash_grid_query(cells, at, reach, here()));
        return Query(hash_grid_query(cells, at, reach, value<int>(group, "a group"), here()));
      },
      nb::arg("grid"), nb::arg("point"), nb::arg("radius"), nb::arg("group") = nb::tuple());
}

}  // namespace weft::python
