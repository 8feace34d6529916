// Gradients of the functions of vectors and matrices.
#include <cmath>

#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(VectorGradient);

#define UNARY(name, type) of(#name, [](type a) { return name(a); })
#define BINARY(name, type) of(#name, [](type a, type b) { return name(a, b); })

TEST_P(VectorGradient, of_operators) {
  const Points two = random_points(6, 0.5, 2) + random_points(6, -2, -0.5);
  expect_gradient(of("vectors +", [](Vec3d a, Vec3d b) { return a + b; }), two);
  expect_gradient(of("vectors -", [](Vec3d a, Vec3d b) { return -(a - b); }), two);
  expect_gradient(of("vectors *", [](Vec3d a, Vec3d b) { return a * b; }), two);
  expect_gradient(of("vectors /", [](Vec3d a, Vec3d b) { return a / b; }), two);
  expect_gradient(of("times number", [](Vec3d a, Double s) { return std::tuple(a * s, s * a, a / s); }),
                  random_points(4, 0.5, 2));
  expect_gradient(of("select", [](Vec3d a, Vec3d b) { return select(less(a, b), a * a, b); }), random_points(6, -1, 1));
  expect_gradient(of("component by a traced index",
                     [](Vec4d a) {
                       Int i = select(a.x > 0.0, Int(2), Int(1));
                       return std::tuple(Double(a[i]), a.w);
                     }),
                  {{1, 2, 3, 4}, {-1, 2, 3, 4}});
}

TEST_P(VectorGradient, of_products_and_lengths) {
  const Points one = random_points(3, -2, 2), two = random_points(6, -2, 2);
  expect_gradient(BINARY(dot, Vec3d), two);
  expect_gradient(BINARY(dot, Quatd), random_points(8, -2, 2));
  expect_gradient(BINARY(cross, Vec3d), two);
  expect_gradient(BINARY(outer, Vec3d), two);
  expect_gradient(BINARY(distance, Vec3d), two);
  expect_gradient(BINARY(cw_mul, Vec3d), two);
  expect_gradient(BINARY(cw_div, Vec3d), random_points(6, 0.5, 2));
  expect_gradient(UNARY(length, Vec3d), one + Points{{0, 1e6, 0}});
  expect_gradient(UNARY(length_sq, Vec3d), one + Points{{0, 0, 0}});
  expect_gradient(UNARY(normalize, Vec3d), one + Points{{0, 1, 0}});
  expect_gradient(UNARY(normalize, Quatd), random_points(4, -2, 2));
  expect_gradient(UNARY(skew, Vec3d), one);
  expect_gradient(UNARY(diag, Vec3d), one);
}

TEST_P(VectorGradient, of_functions_by_component) {
  const Points positive = random_points(3, 0.3, 3), two = random_points(6, 0.2, 2);
  expect_gradient(of("roots", [](Vec3d a) { return std::tuple(sqrt(a), rsqrt(a), abs(a), sign(a)); }), positive);
  expect_gradient(of("exponentials", [](Vec3d a) { return std::tuple(exp(a), exp2(a), log(a), log2(a)); }), positive);
  expect_gradient(of("angles", [](Vec3d a) { return std::tuple(sin(a), cos(a), tan(a)); }),
                  random_points(3, -1.2, 1.2));
  expect_gradient(of("pow", [](Vec3d a, Vec3d b) { return pow(a, b); }), two);
  expect_gradient(of("min and max", [](Vec3d a, Vec3d b) { return std::tuple(min(a, b), max(a, b)); }), two);
  expect_gradient(of("extremes", [](Vec3d a) { return std::tuple(min(a), max(a)); }), positive);
  expect_gradient(of("clamp", [](Vec3d a) { return clamp(a, 0.5, 1.5); }), positive);
  expect_gradient(of("frac and angles", [](Vec3d a) { return std::tuple(frac(a), radians(a), degrees(a)); }), positive);
  expect_gradient(of("lerp", [](Vec3d a, Vec3d b, Double t) { return lerp(a, b, t); }), random_points(7, -2, 2));
}

TEST_P(VectorGradient, is_chosen_where_functions_of_vectors_have_none) {
  expect_chosen(UNARY(length, Vec3d), {0, 0, 0}, {0, 0, 0});
  expect_chosen(UNARY(normalize, Vec3d), {0, 0, 0}, {0, 0, 0});
  expect_chosen(UNARY(normalize, Quatd), {0, 0, 0, 0}, {0, 0, 0, 0});
  expect_chosen(BINARY(distance, Vec3d), {1, 2, 3, 1, 2, 3}, {0, 0, 0, 0, 0, 0});
  expect_chosen(of("min", [](Vec3d a) { return min(a); }), {2, 1, 1}, {0, 1, 0});
  expect_chosen(of("max", [](Vec3d a) { return max(a); }), {2, 2, 1}, {1, 0, 0});
}

TEST_P(VectorGradient, of_operators_of_matrices) {
  expect_gradient(of("sums", [](Mat33d a, Mat33d b) { return std::tuple(a + b, a - b, -a); }),
                  random_points(18, -2, 2));
  expect_gradient(of("product", [](Mat33d a, Mat33d b) { return a * b; }), random_points(18, -2, 2));
  expect_gradient(of("oblong product", [](Mat<2, 3, double> a, Mat<3, 4, double> b) { return a * b; }),
                  random_points(18, -2, 2));
  expect_gradient(of("times vector", [](Mat33d a, Vec3d v) { return std::tuple(a * v, v * a); }),
                  random_points(12, -2, 2));
  expect_gradient(of("times number", [](Mat22d a, Double s) { return std::tuple(a * s, a / s); }),
                  random_points(5, 0.5, 2));
  expect_gradient(of("rows and columns",
                     [](Vec3d a, Vec3d b) {
                       Mat<2, 3, double> rows = matrix_from_rows(a, b);
                       Mat<3, 2, double> cols = matrix_from_cols(a, b);
                       return std::tuple(rows * cols, Vec3d(rows.row(1)), Vec3d(cols.col(0)));
                     }),
                  random_points(6, -2, 2));
  expect_gradient(UNARY(transpose, Mat33d), random_points(9, -2, 2));
  expect_gradient(UNARY(get_diag, Mat33d), random_points(9, -2, 2));
  expect_gradient(UNARY(trace, Mat33d), random_points(9, -2, 2));
  expect_gradient(BINARY(ddot, Mat33d), random_points(18, -2, 2));
  expect_gradient(of("lerp", [](Mat22d a, Mat22d b, Double t) { return lerp(a, b, t); }), random_points(9, -2, 2));
}

TEST_P(VectorGradient, of_float32_is_that_of_float64) {
  const Points one = random_points(3, -2, 2), two = random_points(6, -2, 2);
  expect_close(UNARY(length, Vec3), UNARY(length, Vec3d), one);
  expect_close(UNARY(normalize, Vec3), UNARY(normalize, Vec3d), one);
  expect_close(BINARY(cross, Vec3), BINARY(cross, Vec3d), two);
  expect_close(BINARY(distance, Vec3), BINARY(distance, Vec3d), two);
}

}  // namespace
