// Queries far from the origin, where a point in absolute coordinates is off by more than a test accepts.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "../../../runtime/geometry/shapes/closest.h"
#include "../check_gradient.h"
#include "../faces.h"
#include "../mesh/mesh_asked.h"

using namespace weft;
using weft::test::ask_points;
using weft::test::on_device;
using weft::test::PointRow;

namespace {

DEVICE_TEST(FarGeometry);
GRADIENT_TEST(FarGeometryGradient);

/// The float that is `steps` floats further.
float moved(float x, int steps) {
  for (; steps > 0; --steps) x = std::nextafter(x, INFINITY);
  for (; steps < 0; ++steps) x = std::nextafter(x, -INFINITY);
  return x;
}

/// A convex mesh: a point is inside if it is on the inner side of all faces.
struct Convex {
  MeshData data;
  explicit Convex(const vec3& by, int subdivisions) : data(shapes::icosphere(1, subdivisions)) {
    for (vec3& p : data.points) p += by;
  }
  vec3d corner(std::size_t k) const { return vec3d(data.points[std::size_t(data.indices[k])]); }
  /// The largest of the distances from the planes of the faces, below 0 inside. Not exact for a mesh that was moved
  /// with rounding, which is not quite convex.
  double outside(const vec3& point) const {
    double most = -1e30;
    for (std::size_t f = 0; f < data.indices.size(); f += 3) {
      const vec3d a = corner(f), n = normalize(cross(corner(f + 1) - a, corner(f + 2) - a));
      most = std::max(most, dot(vec3d(point) - a, n));
    }
    return most;
  }
};

void check_signs(const Device& device, const Convex& mesh, const std::vector<vec3>& points, double unsure,
                 const char* what) {
  const Mesh m(device, mesh.data, {.winding_number = true});
  for (const MeshSign sign : {MeshSign::normal, MeshSign::majority, MeshSign::winding}) {
    const std::vector<PointRow> got = ask_points(device, m, points, 10, sign);
    int wrong = 0, asked = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double outside = mesh.outside(points[i]);
      if (std::abs(outside) <= unsure) continue;
      ++asked;
      wrong += got[i].sign != (outside < 0 ? -1 : 1);
    }
    EXPECT_EQ(wrong, 0) << what << ", sign " << int(sign) << ", of " << asked;
    EXPECT_GT(asked, int(points.size()) / 3);
  }
}

TEST_P(FarGeometry, signs_are_right_an_ulp_above_and_below_faces) {
  for (const float away : {0.f, 50.f, 5000.f}) {
    const Convex mesh(vec3{away, away, away}, on_reference() ? 1 : 3);
    std::vector<vec3> points;
    for (std::size_t f = 0; f < mesh.data.indices.size(); f += 3) {
      const vec3d middle = (mesh.corner(f) + mesh.corner(f + 1) + mesh.corner(f + 2)) / 3;
      const vec3d n = cross(mesh.corner(f + 1) - mesh.corner(f), mesh.corner(f + 2) - mesh.corner(f));
      const int along = argmax(abs(n));
      for (const int steps : {-3, -1, 1, 3}) {
        vec3 p(middle);
        p[along] = moved(p[along], steps);
        points.push_back(p);
      }
    }
    check_signs(device(), mesh, points, 1e-7, ("at " + std::to_string(away)).c_str());
  }
}

TEST_P(FarGeometry, signs_are_right_near_edges_and_vertices) {
  // The coordinates are moved without rounding, so the mesh stays convex; close to it, its edges and vertices decide.
  MeshData box = shapes::box({1, 2, 1.5f});
  for (vec3& p : box.points) p += vec3{4096, -4096, 4096};
  Convex mesh(vec3(), 0);
  mesh.data = box;
  std::mt19937 engine(5);
  std::vector<vec3> points;
  for (int i = 0; i < 300; ++i) {
    const std::size_t f = engine() % (box.indices.size() / 3) * 3;
    const double t = i % 2 ? 0 : engine() * 0x1p-32;
    vec3 p(mesh.corner(f) * (1 - t) + mesh.corner(f + 1) * t);
    for (int k = 0; k < 3; ++k) p[k] = moved(p[k], int(engine() % 7) - 3);
    points.push_back(p);
  }
  // An ulp is 2^-12 there, so only points on the surface are nearer.
  check_signs(device(), mesh, points, 1e-5, "box");
}

TEST_P(FarGeometry, points_of_faces_are_rounded_once) {
  const Convex mesh(vec3{5000, -3000, 7000}, 2);
  const int n = on_reference() ? 200 : 5000;
  const Array<vec3> out = zeros<vec3>(device(), n), by_velocity = zeros<vec3>(device(), n);
  const std::vector<vec2> weights = test::random_values<vec2>(n, 0, 0.5, 9);
  const Array<vec3> points(device(), mesh.data.points);
  const Mesh m(points, Array<int>(device(), mesh.data.indices), {.velocities = points});
  const int faces = int(mesh.data.indices.size() / 3);
  launch(kernel("evaluate",
                [=](Var<MeshArrays> mesh, Arr<const vec2> w, Arr<vec3> out, Arr<vec3> by_velocity) {
                  Int i = tid();
                  out[i] = mesh_eval_position(mesh, i % faces, w[i].x, w[i].y);
                  by_velocity[i] = mesh_eval_velocity(mesh, i % faces, w[i].x, w[i].y);
                }),
         n, m, Array<vec2>(device(), weights), out, by_velocity);
  const std::vector<vec3> got = out.to_vector();
  EXPECT_EQ(by_velocity.to_vector(), got);
  for (int i = 0; i < n; ++i) {
    const std::size_t f = std::size_t(i % faces) * 3;
    const double u = weights[std::size_t(i)].x, v = weights[std::size_t(i)].y;
    const vec3d p = mesh.corner(f) * u + mesh.corner(f + 1) * v + mesh.corner(f + 2) * (1 - u - v);
    for (int k = 0; k < 3; ++k) {
      const float x = got[std::size_t(i)][k];
      ASSERT_LE(std::abs(x - p[k]), 0.501 * (std::nextafter(std::abs(x), INFINITY) - std::abs(x)) + 1e-6) << i;
    }
  }
}

template <class F, class X, class... Y>
auto on_both(const Device& device, const F& f, const std::vector<X>& x, const std::vector<Y>&... y) {
  auto got = on_device(device, f, x, y...);
  std::vector<decltype(got)> both{got, got};
  for (std::size_t i = 0; i < x.size(); ++i) both[0][i] = f(x[i], y[i]...);
  return both;
}

TEST_P(FarGeometry, closest_points_of_triangles_are_rounded_once) {
  const int n = 2000;
  const vec3 away{8000, -6000, 5000};
  auto corners = [&](unsigned seed) {
    std::vector<vec3> p = test::random_values<vec3>(n, -1, 1, seed);
    for (vec3& x : p) x += away;
    return p;
  };
  const auto a = corners(1), b = corners(2), c = corners(3), q = corners(4);
  const auto nearest = [](auto&& p, auto&& x, auto&& y, auto&& z) { return closest_point_triangle(p, x, y, z).point; };
  for (const auto& got : on_both(device(), nearest, q, a, b, c))
    for (std::size_t i = 0; i < std::size_t(n); ++i) {
      const vec3d exact = closest_point_triangle(vec3d(q[i]), vec3d(a[i]), vec3d(b[i]), vec3d(c[i])).point;
      // A narrow triangle lets the point slide along it.
      const vec3d n = cross(vec3d(b[i]) - vec3d(a[i]), vec3d(c[i]) - vec3d(a[i]));
      if (length(n) < 0.05) continue;
      for (int k = 0; k < 3; ++k) {
        const float x = got[i][k];
        ASSERT_LE(std::abs(x - exact[k]), 0.501 * (std::nextafter(std::abs(x), INFINITY) - std::abs(x)) + 2e-5) << i;
      }
    }
}

TEST_P(FarGeometry, distances_of_segments_and_boxes_do_not_depend_on_the_origin) {
  const int n = 5000;
  std::mt19937 engine(3);
  // Multiples of 2^-10 have room beside 8192.
  const auto place = [&] { return float(int(engine() % 4096) - 2048) * 0x1p-10f; };
  std::vector<vec3> a, b, lower, upper, far_a, far_b, far_lower, far_upper;
  const vec3 away{8192, -8192, 4096};
  for (int i = 0; i < n; ++i) {
    const vec3 p(place(), place(), place()), q(place(), place(), place());
    a.push_back(vec3(place(), place(), place()) * 2), b.push_back(vec3(place(), place(), place()) * 2);
    lower.push_back(min(p, q)), upper.push_back(max(p, q));
    far_a.push_back(a.back() + away), far_b.push_back(b.back() + away);
    far_lower.push_back(lower.back() + away), far_upper.push_back(upper.back() + away);
    ASSERT_EQ(far_a.back() - away, a.back());
  }
  const auto distance_sq = [](auto&& x, auto&& y, auto&& lo, auto&& hi) {
    return distance_sq_segment_box(x, y, lo, hi);
  };
  const auto near = on_both(device(), distance_sq, a, b, lower, upper);
  const auto far = on_both(device(), distance_sq, far_a, far_b, far_lower, far_upper);
  for (std::size_t face = 0; face < 2; ++face)
    for (std::size_t i = 0; i < std::size_t(n); ++i) {
      const double exact = distance_sq_segment_box(vec3d(a[i]), vec3d(b[i]), vec3d(lower[i]), vec3d(upper[i]));
      ASSERT_EQ(far[face][i], near[face][i]) << i;
      ASSERT_NEAR(std::sqrt(double(far[face][i])), std::sqrt(exact), 3e-6) << i;
    }
}

TEST_P(FarGeometryGradient, of_squared_distances_is_as_exact_as_near_the_origin) {
  const auto single = test::of(
      "distance_sq", [](Vec3 q, Vec3 a, Vec3 b, Vec3 c) { return closest_point_triangle(q, a, b, c).distance_sq; });
  const auto exact = test::of(
      "distance_sq", [](Vec3d q, Vec3d a, Vec3d b, Vec3d c) { return closest_point_triangle(q, a, b, c).distance_sq; });
  test::Points points = test::random_points(12, -1, 1, 40);
  for (auto& p : points)
    for (std::size_t k = 0; k < p.size(); ++k) p[k] = float(p[k] + (k % 3 == 1 ? -6000. : 8000.));
  expect_close(single, exact, points, 1e-4);
}

}  // namespace
