// The library's questions about shapes: rays, boxes, triangles, edges.
#include "../../../runtime/geometry/primitives.h"
#include "library.h"

namespace weft::python {

namespace {

template <class N>
void add_shapes() {
  using V = vec<3, N>;
  form<std::tuple<bool, N, N>, V, V, V, V, N>(
      "intersect_ray_box", [](const auto& o, const auto& d, const auto& lower, const auto& upper, const auto& most) {
        const auto r = intersect_ray_box(o, d, lower, upper, most);
        return std::tuple(r.hit, r.enter, r.leave);
      });
  form<std::tuple<bool, N, N, N, N>, V, V, V, V, V, N>(
      "intersect_ray_triangle",
      [](const auto& o, const auto& d, const auto& a, const auto& b, const auto& c, const auto& most) {
        const auto r = intersect_ray_triangle(o, d, a, b, c, most);
        return std::tuple(r.hit, r.t, r.u, r.v, r.sign);
      });
  form<bool, V, V, V, V>("intersect_box_box", [](const auto& a, const auto& b, const auto& c, const auto& d) {
    return intersect_box_box(a, b, c, d);
  });
  form<bool, V, N, V, V>("intersect_sphere_box", [](const auto& p, const auto& r, const auto& l, const auto& u) {
    return intersect_sphere_box(p, r, l, u);
  });
  form<bool, V, V, N, V, V>("intersect_capsule_box",
                            [](const auto& a, const auto& b, const auto& r, const auto& l, const auto& u) {
                              return intersect_capsule_box(a, b, r, l, u);
                            });
  form<bool, V, V, V, V, V, V>("intersect_tri_tri",
                               [](const auto& a, const auto& b, const auto& c, const auto& d, const auto& e,
                                  const auto& f) { return intersect_tri_tri(a, b, c, d, e, f); });
  form<N, V, V, V, V>("solid_angle", [](const auto& q, const auto& a, const auto& b, const auto& c) {
    return solid_angle(q, a, b, c);
  });
  form<std::tuple<V, V, N>, V, V, V, V>("closest_point_triangle",
                                        [](const auto& q, const auto& a, const auto& b, const auto& c) {
                                          const auto r = closest_point_triangle(q, a, b, c);
                                          return std::tuple(r.point, r.weights, r.distance_sq);
                                        });
  form<std::tuple<N, N, N>, V, V, V, V, N>("closest_point_edge_edge", [](const auto& p1, const auto& q1, const auto& p2,
                                                                         const auto& q2, const auto& epsilon) {
    const auto r = closest_point_edge_edge(p1, q1, p2, q2, epsilon);
    return std::tuple(r.s, r.t, r.distance);
  });
  form<N, V, V, V>("distance_sq_point_box",
                   [](const auto& q, const auto& l, const auto& u) { return distance_sq_point_box(q, l, u); });
  form<N, V, V, V, V>("distance_sq_segment_box", [](const auto& a, const auto& b, const auto& l, const auto& u) {
    return distance_sq_segment_box(a, b, l, u);
  });
}

}  // namespace

void add_shape_functions() {
  add_shapes<float>();
  add_shapes<double>();
}

}  // namespace weft::python
