// Gradients of rays and closest points: to the query, the ray and the vertices, on every feature.
#include <weft/runtime/geometry/primitives.h>

#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(GeometryGradient);

/// Joins the coordinates of several points into one list.
std::vector<double> joined(std::initializer_list<std::vector<double>> parts) {
  std::vector<double> all;
  for (const auto& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}
/// The points, and for each of them some near it.
Points and_near(const Points& points, double by) {
  Points all = points;
  for (const std::vector<double>& p : points)
    for (const std::vector<double>& step : random_points(int(p.size()), -by, by, 3)) {
      all.push_back(p);
      for (std::size_t k = 0; k < p.size(); ++k) all.back()[k] += step[k];
    }
  return all;
}

const std::vector<double> kA = {0, 0, 0}, kB = {2, 0, 0.5}, kC = {0.5, 1.5, 0};

const auto kRayTriangle = of("ray and triangle", [](Vec3d o, Vec3d d, Vec3d a, Vec3d b, Vec3d c) {
  const auto hit = intersect_ray_triangle(o, d, a, b, c);
  return std::tuple(hit.t, hit.u, hit.v, Double(hit.t * hit.u));
});

TEST_P(GeometryGradient, of_rays_that_hit) {
  expect_gradient(kRayTriangle, and_near({joined({{0.7, 0.4, 3}, {0.1, 0.05, -1}, kA, kB, kC}),
                                          joined({{0.7, 0.4, -3}, {0.1, 0.05, 2}, kA, kB, kC}),
                                          joined({{-4, 0.4, 1}, {2.5, 0.05, -0.4}, kA, kB, kC}),
                                          joined({{0.8, 4, 0.6}, {0, -2, 0}, kA, kB, {0.5, 0.2, 1.5}})},
                                         0.05));
}

TEST_P(GeometryGradient, of_rays_that_miss_is_zero) {
  const std::vector<double> zeros(15);
  expect_chosen(kRayTriangle, joined({{5, 0.4, 3}, {0.1, 0.05, -1}, kA, kB, kC}), zeros);
  expect_chosen(kRayTriangle, joined({{0.7, 0.4, 3}, {0, 0, 0}, kA, kB, kC}), zeros);
  expect_chosen(kRayTriangle, joined({{0.7, 0.4, 3}, {0, 0, -1}, kA, kA, kC}), zeros);
}

/// Weights, lengths / size and squares / size^2 have gradients of 1 / size: times the size, these are equal.
TEST_P(GeometryGradient, of_closest_points_in_float32_at_every_size) {
  const auto loss_of = kernel("loss", [](Arr<const vec3> p, Arr<float> loss, Float by_size) {
    const auto found = closest_point_triangle(Vec3(p[0]), Vec3(p[1]), Vec3(p[2]), Vec3(p[3]));
    loss[0] =
        dot(found.weights, Vec3(0.4f, -0.7f, 1.1f)) + found.point.x * by_size + found.distance_sq * by_size * by_size;
  });
  // The points are above the face, beside an edge and beside a corner.
  for (const vec3& q : {vec3{0.7f, 0.4f, 1}, vec3{1, -0.8f, 0.6f}, vec3{-0.5f, -0.3f, 0.2f}}) {
    std::vector<vec3> want;
    for (const int power : {0, -50, -40, -27, -16, 16, 27, 40, 49}) {
      const float s = std::ldexp(1.f, power);
      const Array<vec3> p =
          Array<vec3>(device(), {q * s, vec3{0, 0, 0} * s, vec3{2, 0, 0.5f} * s, vec3{0.5f, 1.5f, 0} * s})
              .requires_grad();
      Array<float> loss = zeros<float>(device(), 1);
      Tape tape;
      tape.record([&] { launch(loss_of, 1, p, loss, 1 / s); });
      tape.backward(loss);
      std::vector<vec3> got = p.grad().to_vector();
      for (vec3& g : got) g = g * s;
      if (power == 0) want = got;
      for (std::size_t k = 0; k < 4; ++k) EXPECT_LE(length(got[k] - want[k]), 1e-4f) << power << ", point " << k;
    }
    EXPECT_GT(length(want[0]), 0.1f);
  }
}

TEST_P(GeometryGradient, of_rays_through_an_edge_is_that_of_the_plane) {
  // The ray hits one of the triangles that share the edge from a to b. t follows its height over the edge.
  expect_chosen(of("t",
                   [](Vec3d o, Vec3d d, Vec3d a, Vec3d b, Vec3d c) {
                     return intersect_ray_triangle(o, d, a, b, c).t + intersect_ray_triangle(o, d, b, a, -c).t;
                   }),
                joined({{0.5, 0, 1}, {0, 0, -1}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}}),
                joined({{0, 0, 1}, {0, 0, 1}, {0, 0, -0.5}, {0, 0, -0.5}, {0, 0, 0}}));
}

TEST_P(GeometryGradient, of_rays_and_boxes) {
  const auto f = of("ray and box", [](Vec3d o, Vec3d d, Vec3d lower, Vec3d upper) {
    const auto ray = ray_data(o, d);
    const auto found = intersect_ray_box(ray, lower, upper);
    return std::tuple(found.enter, found.leave);
  });
  expect_gradient(f, and_near({joined({{-2, 0.3, 0.4}, {1, 0.1, 0.15}, {0, 0, 0}, {1, 1, 1}}),
                               joined({{0.4, 0.3, 3}, {0.1, 0.1, -1}, {0, 0, 0}, {1, 1, 1}})},
                              0.02));
}

const auto kClosest = of("closest point", [](Vec3d p, Vec3d a, Vec3d b, Vec3d c) {
  const auto found = closest_point_triangle(p, a, b, c);
  return std::tuple(found.point, found.weights, found.distance_sq);
});

TEST_P(GeometryGradient, of_closest_points_on_the_face) {
  expect_gradient(kClosest,
                  and_near({joined({{0.7, 0.4, 1}, kA, kB, kC}), joined({{0.9, 0.3, -2}, kA, kB, kC})}, 0.05));
}

TEST_P(GeometryGradient, of_closest_points_on_edges) {
  expect_gradient(kClosest, and_near({joined({{0.7, -1, 0.4}, kA, kB, kC}), joined({{2, 2, 0.3}, kA, kB, kC}),
                                      joined({{-1, 1, 0.2}, kA, kB, kC})},
                                     0.05));
}

TEST_P(GeometryGradient, of_closest_points_at_vertices) {
  expect_gradient(kClosest, and_near({joined({{-1, -1, 0.4}, kA, kB, kC}), joined({{4, -0.5, 0.3}, kA, kB, kC}),
                                      joined({{0.5, 4, 0.2}, kA, kB, kC})},
                                     0.05));
}

TEST_P(GeometryGradient, of_closest_points_of_triangles_without_area) {
  // The triangles are three points on a line, two equal points and one, and a single point: the vertices that hold the
  // closest point get the gradient.
  const auto squared =
      of("distance", [](Vec3d p, Vec3d a, Vec3d b, Vec3d c) { return closest_point_triangle(p, a, b, c).distance_sq; });
  expect_chosen(squared, {1, 1, 0, 0, 0, 0, 4, 0, 0, 4, 0, 0}, {0, 2, 0, 0, -1.5, 0, 0, -0.5, 0, 0, 0, 0});
  expect_chosen(squared, {1, 2, 2, 1, 0, 0, 1, 0, 0, 1, 0, 0}, {0, 4, 4, 0, -4, -4, 0, 0, 0, 0, 0, 0});
  expect_chosen(squared, {1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 0}, std::vector<double>(12));
}

TEST_P(GeometryGradient, of_edges) {
  const auto f = of("edges", [](Vec3d p1, Vec3d q1, Vec3d p2, Vec3d q2) {
    const auto found = closest_point_edge_edge(p1, q1, p2, q2);
    return std::tuple(found.s, found.t, found.distance);
  });
  expect_gradient(f, and_near({joined({{-1, 0, 0}, {2, 0.2, 0}, {0, -1, 1}, {0.3, 2, 1.4}}),  // inner points
                               joined({{-1, 0, 0}, {2, 0.2, 0}, {0, 1, 1}, {0.3, 2, 1.4}}),   // an end and an inner one
                               joined({{1, 0, 0}, {2, 0.2, 0}, {0, -1, 1}, {0.1, 2, 1.4}}),   // the other way round
                               joined({{1, 0, 0}, {2, 0.2, 0}, {0, 1, 1}, {-1, 3, 1.4}})},
                              0.05));  // two ends
  // Edges that meet have no direction in which they part.
  expect_chosen(of("distance", [](Vec3d p1, Vec3d q1, Vec3d p2,
                                  Vec3d q2) { return closest_point_edge_edge(p1, q1, p2, q2).distance; }),
                {-1, 0, 0, 1, 0, 0, 0, -1, 0, 0, 1, 0}, std::vector<double>(12));
}

TEST_P(GeometryGradient, of_distances_from_boxes_and_of_solid_angles) {
  const std::vector<double> lower = {0, 0, 0}, upper = {1, 1.2, 1.4};
  expect_gradient(of("point and box", [](Vec3d p, Vec3d lo, Vec3d hi) { return distance_sq_point_box(p, lo, hi); }),
                  and_near({joined({{2, 0.5, 0.5}, lower, upper}), joined({{-1, 2, 3}, lower, upper}),
                            joined({{0.3, 0.4, 0.5}, lower, upper})},
                           0.05));
  const auto segment =
      of("segment and box", [](Vec3d a, Vec3d b, Vec3d lo, Vec3d hi) { return distance_sq_segment_box(a, b, lo, hi); });
  expect_gradient(segment, and_near({joined({{3, 0.5, 0.5}, {0.5, 4, 0.6}, lower, upper}),
                                     joined({{2, 3, 2}, {3, 4, 5}, lower, upper}),
                                     joined({{0.2, 0.3, 0.4}, {3, 4, 5}, lower, upper})},
                                    0.05));
  const auto angle = of("solid angle", [](Vec3d p, Vec3d a, Vec3d b, Vec3d c) { return solid_angle(p, a, b, c); });
  expect_gradient(angle, and_near({joined({{0.7, 0.4, 1}, kA, kB, kC}), joined({{3, 0.4, -1}, kA, kB, kC})}, 0.05));
  expect_chosen(angle, joined({{1, 0, 0}, {0, 0, 0}, {2, 0, 0}, {3, 0, 0}}), std::vector<double>(12));
}

TEST_P(GeometryGradient, of_float32_are_those_of_float64) {
  expect_close(of("closest point",
                  [](Vec3 p, Vec3 a, Vec3 b, Vec3 c) {
                    const auto found = closest_point_triangle(p, a, b, c);
                    return std::tuple(found.point, found.weights, found.distance_sq);
                  }),
               kClosest, and_near({joined({{0.75, 0.5, 1}, kA, kB, kC}), joined({{0.75, -1, 0.5}, kA, kB, kC})}, 0),
               1e-5);
  expect_close(of("ray and triangle",
                  [](Vec3 o, Vec3 d, Vec3 a, Vec3 b, Vec3 c) {
                    const auto hit = intersect_ray_triangle(o, d, a, b, c);
                    return std::tuple(hit.t, hit.u, hit.v, Float(hit.t * hit.u));
                  }),
               kRayTriangle, and_near({joined({{0.75, 0.5, 3}, {0.125, 0.25, -1}, kA, kB, kC})}, 0), 1e-5);
}

}  // namespace
