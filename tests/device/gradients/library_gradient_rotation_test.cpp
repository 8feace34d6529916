// Gradients of the functions of quaternions, transforms and spatial vectors.
#include <cmath>
#include <numbers>

#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(RotationGradient);

#define UNARY(name, type) of(#name, [](type a) { return name(a); })
#define BINARY(name, type) of(#name, [](type a, type b) { return name(a, b); })

/// The quaternion (or several, one after another) divided by its length, in float32.
std::vector<double> unit(std::vector<double> q) {
  for (std::size_t k = 0; k + 4 <= q.size(); k += 4) {
    const double l = std::sqrt(q[k] * q[k] + q[k + 1] * q[k + 1] + q[k + 2] * q[k + 2] + q[k + 3] * q[k + 3]);
    for (std::size_t i = k; i < k + 4; ++i) q[i] = float(q[i] / l);
  }
  return q;
}
Points units(const Points& points) {
  Points out;
  for (const std::vector<double>& p : points) out.push_back(unit(p));
  return out;
}

TEST_P(RotationGradient, of_products_of_quaternions) {
  const Points one = random_points(4, -1, 1), two = random_points(8, -1, 1);
  expect_gradient(of("product", [](Quatd a, Quatd b) { return a * b; }), two);
  expect_gradient(of("sum", [](Quatd a, Quatd b) { return std::tuple(a + b, a - b, a * 2.0); }), two);
  expect_gradient(UNARY(quat_inverse, Quatd), one);
  expect_gradient(of("rotate", [](Quatd q, Vec3d v) { return quat_rotate(q, v); }), random_points(7, -1, 1));
  expect_gradient(of("rotate back", [](Quatd q, Vec3d v) { return quat_rotate_inv(q, v); }), random_points(7, -1, 1));
  expect_gradient(UNARY(quat_to_matrix, Quatd), one + Points{{0, 0, 0, 1}, {1, 0, 0, 0}});
  expect_gradient(of("lerp", [](Quatd a, Quatd b, Double t) { return lerp(a, b, t); }), random_points(9, -1, 1));
}

TEST_P(RotationGradient, of_axis_and_angle) {
  const auto from = of("quat_from_axis_angle", [](Vec3d axis, Double a) { return quat_from_axis_angle(axis, a); });
  const auto to = of("quat_to_axis_angle", [](Quatd q) {
    auto [axis, angle] = quat_to_axis_angle(q);
    return std::tuple(axis, angle);
  });
  expect_gradient(from, random_points(4, -2, 2) +
                            Points{{1, 0, 0, 0}, {0, 2, 0, std::numbers::pi}, {0, 0, 1, 2 * std::numbers::pi}});
  expect_gradient(to, units(random_points(4, -1, 1)) + Points{{0.1, 0, 0, 1}, {0, -0.1, 0, -1}});
  // No turn has no axis. Half a turn has two axes that are right; the one of the quaternion with w >= 0 counts.
  expect_chosen(to, {0, 0, 0, 1}, {0, 0, 0, 0});
  expect_chosen(to, {0, 1, 0, 0}, {1, 0, 1, -2});
  expect_chosen(to, {0, 0, 0, -1}, {0, 0, 0, 0});
  expect_chosen(from, {0, 0, 0, 1}, {0, 0, 0, -0.5 * std::sin(0.5)});
}

TEST_P(RotationGradient, of_quaternions_of_matrices_and_angles) {
  // These turns have all axes, so that each part of the quaternion is the largest in one of them.
  const Points turns = {{1, 0, 0, 0, 1, 0, 0, 0, 1},           {0.8, -0.6, 0, 0.6, 0.8, 0, 0, 0, 1},
                        {1, 0, 0, 0, -1, 0, 0, 0, -1},         {-1, 0, 0, 0, 1, 0, 0, 0, -1},
                        {-1, 0, 0, 0, -1, 0, 0, 0, 1},         {0, 0, 1, 1, 0, 0, 0, 1, 0},
                        {-0.8, 0.6, 0, -0.6, -0.8, 0, 0, 0, 1}};
  Points close;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    close.push_back(random_points(9, -0.05, 0.05, 1)[0]);
    for (std::size_t k = 0; k < 9; ++k) close.back()[k] += turns[i][k];
  }
  expect_gradient(UNARY(quat_from_matrix, Mat33d), close + Points{turns[0], turns[1]});
  expect_gradient(of("quat_rpy", [](Double r, Double p, Double y) { return quat_rpy(r, p, y); }),
                  random_points(3, -3, 3) + Points{{0, 0, 0}});
}

TEST_P(RotationGradient, of_slerp) {
  const auto slerp = of("quat_slerp", [](Quatd a, Quatd b, Double t) { return quat_slerp(a, b, t); });
  Points points;
  for (std::vector<double> p : units(random_points(8, -1, 1))) {
    p.push_back(0.3);
    points.push_back(p);
  }
  expect_gradient(slerp, points);
  // The two quaternions are without a turn between them, or with hardly any, or with half a turn.
  const std::vector<double> a = unit({0.1, 0.2, 0.3, 0.9});
  for (double e : {0., 1e-12, 1e-9, 1e-5})
    for (double t : {0., 0.25, 1.})
      expect_gradient(slerp, {{a[0], a[1], a[2], a[3], a[0] + e, a[1] - e, a[2], a[3], t}}, 1e-7);
  expect_gradient(slerp, {{0, 0, 0, 1, 0.6, 0, 0.8, 0.01, 0.5}});
}

TEST_P(RotationGradient, of_the_turn_between_directions) {
  const auto between = BINARY(quat_between, Vec3d);
  expect_gradient(between, random_points(6, -1, 1) + Points{{0, 1, 0, 0, 1, 0}, {1, 0, 0, 0, 2, 0}});
  // For opposite directions any axis across is right; the chosen one turns with a.
  expect_chosen(between, {0, 0, 1, 0, 0, -1}, {0, 1, 0, 0, 0, 0});
}

TEST_P(RotationGradient, of_transforms) {
  expect_gradient(of("product", [](Transformd a, Transformd b) { return transform_multiply(a, b); }),
                  random_points(14, -1, 1));
  expect_gradient(UNARY(transform_inverse, Transformd), random_points(7, -1, 1));
  expect_gradient(
      of("parts", [](Transformd a) { return std::tuple(transform_get_translation(a), transform_get_rotation(a)); }),
      random_points(7, -1, 1));
  expect_gradient(of("point", [](Transformd a, Vec3d v) { return transform_point(a, v); }), random_points(10, -1, 1));
  expect_gradient(of("vector", [](Transformd a, Vec3d v) { return transform_vector(a, v); }), random_points(10, -1, 1));
  expect_gradient(of("point by matrix", [](Mat44d a, Vec3d v) { return transform_point(a, v); }),
                  random_points(19, -1, 1));
  expect_gradient(of("vector by matrix", [](Mat44d a, Vec3d v) { return transform_vector(a, v); }),
                  random_points(19, -1, 1));
  expect_gradient(of("compose", [](Vec3d p, Quatd q, Vec3d s) { return transform_compose(p, q, s); }),
                  random_points(10, -1, 1));
  expect_gradient(UNARY(transform_to_matrix, Transformd), random_points(7, -1, 1));
}

TEST_P(RotationGradient, of_transforms_from_matrices) {
  Points close;
  for (std::vector<double> p : random_points(16, -0.2, 0.2)) {
    for (std::size_t i = 0; i < 4; ++i) p[5 * i] += 1;
    close.push_back(p);
  }
  expect_gradient(of("decompose",
                     [](Mat44d m) {
                       auto [p, q, s] = transform_decompose(m);
                       return std::tuple(p, q, s);
                     }),
                  close);
  expect_gradient(UNARY(transform_from_matrix, Mat44d), close);
}

TEST_P(RotationGradient, of_spatial_products) {
  expect_gradient(BINARY(spatial_dot, SpatialVectord), random_points(12, -1, 1));
  expect_gradient(BINARY(spatial_cross, SpatialVectord), random_points(12, -1, 1));
  expect_gradient(BINARY(spatial_cross_dual, SpatialVectord), random_points(12, -1, 1));
  expect_gradient(of("parts", [](SpatialVectord a) { return std::tuple(spatial_top(a), spatial_bottom(a)); }),
                  random_points(6, -1, 1));
  expect_gradient(of("adjoint", [](Mat33d r, Mat33d s, SpatialVectord v) { return spatial_adjoint(r, s) * v; }),
                  random_points(24, -1, 1));
}

TEST_P(RotationGradient, of_float32_is_that_of_float64) {
  Points points;
  for (std::vector<double> p : units(random_points(8, -1, 1))) {
    p.push_back(0.25);
    points.push_back(p);
  }
  expect_close(of("quat_slerp", [](Quat a, Quat b, Float t) { return quat_slerp(a, b, t); }),
               of("quat_slerp", [](Quatd a, Quatd b, Double t) { return quat_slerp(a, b, t); }), points, 1e-4);
  expect_close(BINARY(quat_between, Vec3), BINARY(quat_between, Vec3d), random_points(6, 0, 1), 1e-4);
}

}  // namespace
