// Rays, closest points and overlaps in kernels: as on the host, and watertight on every device.
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/geometry/primitives.h>

#include <cmath>

#include "../faces.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Geometry);

/// The number of times that each ray crosses a mesh, and the sum of the signs. The rays come from inside or outside of
/// the mesh and pass through its vertices and edges.
struct Crossings {
  std::vector<int> count, sum;
};
Crossings crossings(const Device& device, const MeshData& mesh, const std::vector<vec3>& origins,
                    const std::vector<vec3>& directions) {
  const int n = int(origins.size());
  Array<int> count = zeros<int>(device, n), sum = zeros<int>(device, n);
  launch(kernel("crossings",
                [](Arr<int> count, Arr<int> sum, Arr<const vec3> o, Arr<const vec3> d, Arr<const vec3> points,
                   Arr<const int> indices) {
                  Int i = tid();
                  const auto ray = ray_data(o[i], d[i]);
                  Int crossed = 0, signs = 0;
                  for (auto t : range(indices.shape(0) / 3)) {
                    const auto hit = intersect_ray_triangle(ray, points[indices[t * 3]], points[indices[t * 3 + 1]],
                                                            points[indices[t * 3 + 2]]);
                    crossed += Int(hit.hit);
                    signs += Int(hit.sign);
                  }
                  count[i] = crossed;
                  sum[i] = signs;
                }),
         n, count, sum, Array<vec3>(device, origins), Array<vec3>(device, directions), Array<vec3>(device, mesh.points),
         Array<int>(device, mesh.indices));
  return {count.to_vector(), sum.to_vector()};
}

TEST_P(Geometry, rays_through_edges_and_vertices_cross_closed_meshes_rightly) {
  struct Solid {
    MeshData mesh;
    vec3 inside;
  };
  const int rays = on_reference() ? 200 : 10000;
  for (const Solid& s : {Solid{shapes::box({2, 2, 2}, 2), {0, 0, 0}}, Solid{shapes::icosphere(1, 1), {0.1f, 0, 0.2f}},
                         Solid{shapes::torus(1, 0.5f, 8, 6), {0, 0, 0.9f}}}) {
    std::vector<vec3> origins, directions;
    const std::vector<vec3> noise = random_values<vec3>(rays, -4, 4, 5);
    const std::size_t count = s.mesh.indices.size();
    for (std::size_t i = 0; i < std::size_t(rays); ++i) {
      auto corner = [&](std::size_t k) { return s.mesh.points[std::size_t(s.mesh.indices[(3 * i + k) % count])]; };
      const vec3 place = i % 3 == 0   ? corner(0)
                         : i % 3 == 1 ? (corner(0) + corner(1)) * 0.5f
                                      : lerp(corner(1), corner(2), 0.3f);
      vec3 origin = i % 2 ? s.inside : noise[i];
      if (i % 2 == 0) origin[int(i / 2 % 3)] = 4;
      origins.push_back(origin), directions.push_back(place - origin);
    }
    const Crossings c = crossings(device(), s.mesh, origins, directions);
    int wrong = 0;
    for (std::size_t i = 0; i < std::size_t(rays); ++i)
      wrong += c.count[i] % 2 != int(i % 2) || c.sum[i] != -int(i % 2);
    EXPECT_EQ(wrong, 0) << "of " << rays;
  }
}

template <class T>
void expect_rays_agree(const Device& device) {
  using V = vec<3, T>;
  constexpr int n = 1000;
  const auto o = random_values<V>(n, -3, 3, 1), a = random_values<V>(n, -1, 1, 3), b = random_values<V>(n, -1, 1, 4);
  auto c = random_values<V>(n, -1, 1, 5), d = random_values<V>(n, -1, 1, 2);
  for (std::size_t i = 0; i < n; ++i) d[i] = (a[i] + b[i] + c[i]) / 3 - o[i] + d[i] * T(0.3);
  // The results are t, u, v and sign; a sign of 0 means a miss. Quotients of a device are not rounded like the host's,
  // which shows in a triangle that is seen edge-on.
  auto f = [](const auto& o, const auto& d, const auto& a, const auto& b, const auto& c) {
    const auto hit = intersect_ray_triangle(o, d, a, b, c);
    using S = std::decay_t<decltype(hit.t)>;
    return VecOf<4, S>(hit.t, hit.u, hit.v, hit.sign);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const V normal = normalize(cross(b[i] - a[i], c[i] - a[i]));
    const auto hit = f(o[i], d[i], a[i], b[i], c[i]);
    const T margin = (std::min)({hit.y, hit.z, T(1) - hit.y - hit.z});
    // Triangles that are hit or missed by little are replaced by plain cases.
    if (std::abs(dot(normal, normalize(d[i]))) < T(0.1) || (hit.w != T(0) && margin < T(1e-3)))
      c[i] = a[i] + cross(d[i], b[i] - a[i]);
  }
  const auto got = faces_agree(device, 100 * kTolerance<T>, "ray and triangle", f, o, d, a, b, c);
  EXPECT_GT(std::count_if(got.begin(), got.end(), [](const auto& h) { return h.w != T(0); }), n / 4);
  faces_agree(
      device, 100 * kTolerance<T>, "ray and box",
      [](const auto& o, const auto& d, const auto& a, const auto& b) {
        const auto lower = weft::min(a, b), upper = weft::max(a, b);
        const auto found = intersect_ray_box(o, d, lower, upper, 10);
        using S = std::decay_t<decltype(found.enter)>;
        const S zero = HostOf<S>(0);
        return VecOf<2, S>(select(found.hit, found.enter, zero), select(found.hit, found.leave, zero));
      },
      o, d, a, b);
}

TEST_P(Geometry, rays_find_the_same_on_both_faces) {
  expect_rays_agree<float>(device());
  expect_rays_agree<double>(device());
}

template <class T>
void expect_closest_points_agree(const Device& device) {
  using V = vec<3, T>;
  constexpr int n = 1000;
  const auto p = random_values<V>(n, -2, 2, 1), a = random_values<V>(n, -1, 1, 3), b = random_values<V>(n, -1, 1, 4);
  auto c = random_values<V>(n, -1, 1, 5);
  for (std::size_t i = 0; i < n; i += 10) c[i] = i % 20 ? b[i] : a[i];
  faces_agree(
      device, 200 * kTolerance<T>, "closest point of a triangle",
      [](const auto& p, const auto& a, const auto& b, const auto& c) {
        const auto found = closest_point_triangle(p, a, b, c);
        using S = std::decay_t<decltype(found.distance_sq)>;
        return VecOf<4, S>(found.point, found.distance_sq);
      },
      p, a, b, c);
  faces_agree(
      device, 200 * kTolerance<T>, "distance of edges",
      [](const auto& p, const auto& a, const auto& b, const auto& c) {
        return closest_point_edge_edge(p, a, b, c).distance;
      },
      p, a, b, c);
  faces_agree(
      device, 50 * kTolerance<T>, "distances of boxes",
      [](const auto& p, const auto& a, const auto& b, const auto& c) {
        const auto lower = weft::min(b, c), upper = weft::max(b, c);
        using S = std::decay_t<decltype(distance_sq_point_box(p, lower, upper))>;
        return VecOf<2, S>(distance_sq_point_box(p, lower, upper), distance_sq_segment_box(p, a, lower, upper));
      },
      p, a, b, c);
  // The point is on either side of the triangle. In its plane, but beside it, the sign turns, and the angle is small.
  faces_agree(
      device, sizeof(T) == 4 ? 1e-3 : 1e-12, "solid angle",
      [](const auto& p, const auto& a, const auto& b, const auto& c) { return solid_angle(p, a, b, c); }, p, a, b, c);
}

TEST_P(Geometry, closest_points_are_the_same_on_both_faces) {
  expect_closest_points_agree<float>(device());
  expect_closest_points_agree<double>(device());
}

TEST_P(Geometry, overlaps_are_the_same_on_both_faces) {
  constexpr int n = 2000;
  const auto a = random_values<vec3>(n, -1, 1, 1), b = random_values<vec3>(n, -1, 1, 2);
  const auto c = random_values<vec3>(n, -1, 1, 3), d = random_values<vec3>(n, -1, 1, 4);
  const auto e = random_values<vec3>(n, -1, 1, 5), f = random_values<vec3>(n, -1, 1, 6);
  // Except for the capsule's quotients, the arithmetic is exact, so that results are equal whole numbers.
  auto overlaps = [](const auto& a, const auto& b, const auto& c, const auto& d, const auto& e, const auto& f) {
    using B = std::decay_t<decltype(intersect_tri_tri(a, b, c, d, e, f))>;
    using I = FaceLike<B, int>;
    auto number = [](const B& x) { return select(x, I(1), I(0)); };
    const auto lower1 = weft::min(a, b), upper1 = weft::max(a, b), lower2 = weft::min(c, d), upper2 = weft::max(c, d);
    return VecOf<4, I>(number(B(intersect_tri_tri(a, b, c, d, e, f))),
                       number(B(intersect_box_box(lower1, upper1, lower2, upper2))),
                       number(B(intersect_sphere_box(e, 0.5f, lower1, upper1))),
                       number(B(intersect_capsule_box(e, f, 0.25f, lower1, upper1))));
  };
  const auto got = faces_agree(device(), 0, "overlaps", overlaps, a, b, c, d, e, f);
  vec4i sums;
  for (const vec4i& g : got) sums += g;
  for (int k = 0; k < 4; ++k) {
    EXPECT_GT(sums[k], n / 10) << k;
    EXPECT_LT(sums[k], n * 9 / 10) << k;
  }
}

TEST_P(Geometry, mixes_host_values_and_traced_ones) {
  Array<float> out = zeros<float>(device(), 6);
  launch(
      kernel("mixed",
             [](Arr<float> out, Vec3 origin) {
               const auto hit =
                   intersect_ray_triangle(origin, vec3{0, 0, -1}, vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}, 100);
               out[0] = hit.t;
               out[1] = select(intersect_ray_box(origin, vec3{0, 0, -1}, vec3{0, 0, 0}, vec3{1, 1, 1}).hit, 1.f, 0.f);
               out[2] = closest_point_triangle(origin, vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}).distance_sq;
               out[3] = closest_point_edge_edge(origin, vec3{1, 1, 3}, vec3{0, 0, 0}, vec3{1, 1, 0}, 0).distance;
               out[4] = select(intersect_sphere_box(origin, 3, vec3{0, 0, -1}, vec3{1, 1, 0}), 1.f, 0.f);
               out[5] = select(intersect_sphere_box(origin, 1, vec3{0, 0, -1}, vec3{1, 1, 0}), 1.f, 0.f);
             }),
      1, out, vec3{0.25f, 0.25f, 3});
  EXPECT_EQ(out.to_vector(), (std::vector<float>{3, 1, 9, 3, 1, 0}));
}

}  // namespace
