// Transforms and spatial algebra: a kernel gives the host's results, and both agree with the closed form.
#include "../faces.h"

using namespace weft;
using weft::test::expect_near;
using weft::test::faces_agree;
using weft::test::kTolerance;
using weft::test::random_values;

namespace {

DEVICE_TEST(LibraryTransform);

template <class F>
void each_real(F f) {
  f(half()), f(float()), f(double());
}

template <class T>
std::vector<transformation<T>> transforms(int n, unsigned seed) {
  std::vector<transformation<T>> t;
  const auto p = random_values<vec3d>(n, -2, 2, seed);
  const auto q = random_values<quatd>(n, -1, 1, seed + 1);
  for (std::size_t i = 0; i < p.size(); ++i) t.push_back(transformation<T>(transformd(p[i], normalize(q[i]))));
  return t;
}

vec4d homogeneous(const vec3d& v, double w) { return {v, w}; }

TEST_P(LibraryTransform, transforms_are_their_matrices) {
  each_real([&]<class T>(T) {
    const auto a = transforms<T>(16, 1), b = transforms<T>(16, 3);
    const auto v = random_values<vec<3, T>>(16, -2, 2, 5);
    const double eps = 16 * kTolerance<T>;
    const auto points = faces_agree(
        device(), eps, "transform_point", [](auto&& t, auto&& x) { return transform_point(t, x); }, a, v);
    const auto vectors = faces_agree(
        device(), eps, "transform_vector", [](auto&& t, auto&& x) { return transform_vector(t, x); }, a, v);
    const auto products = faces_agree(
        device(), eps, "a * b", [](auto&& s, auto&& t) { return s * t; }, a, b);
    const auto multiplied = faces_agree(
        device(), eps, "transform_multiply", [](auto&& s, auto&& t) { return transform_multiply(s, t); }, a, b);
    const auto matrices = faces_agree(
        device(), eps, "transform_to_matrix", [](auto&& t, auto&&) { return transform_to_matrix(t); }, a, v);
    const auto again = faces_agree(
        device(), eps, "transform_from_matrix",
        [](auto&& t, auto&&) { return transform_to_matrix(transform_from_matrix(transform_to_matrix(t))); }, a, v);
    const auto none = faces_agree(
        device(), eps, "transform_inverse", [](auto&& t, auto&&) { return t * transform_inverse(t); }, a, v);
    const auto parts = faces_agree(
        device(), 0, "parts",
        [](auto&& t, auto&&) {
          using S = ScalarFaceOf<decltype(t)>;
          return TransformOf<S>(transform_get_translation(t), transform_get_rotation(t));
        },
        a, v);
    const auto by_matrix = faces_agree(
        device(), eps, "by matrix",
        [](auto&& t, auto&& x) {
          return transform_point(transform_to_matrix(t), x) + transform_vector(transform_to_matrix(t), x) * 2;
        },
        a, v);
    for (std::size_t n = 0; n < a.size(); ++n) {
      const transformd t(a[n]);
      const mat44d m = transform_to_matrix(t);
      const vec3d x(v[n]);
      const vec4d p = m * homogeneous(x, 1), d = m * homogeneous(x, 0);
      expect_near(homogeneous(vec3d(points[n]), 1), p, eps, "point");
      expect_near(homogeneous(vec3d(vectors[n]), 0), d, eps, "vector");
      expect_near(vec3d(by_matrix[n]), vec3d{p.x, p.y, p.z} + vec3d{d.x, d.y, d.z} * 2, 2 * eps, "by matrix");
      expect_near(transform_to_matrix(transformd(products[n])), m * transform_to_matrix(transformd(b[n])), 2 * eps,
                  "product");
      expect_near(products[n], multiplied[n], 0, "transform_multiply");
      expect_near(mat44d(matrices[n]), m, eps, "matrix");
      expect_near(mat44d(again[n]), m, 2 * eps, "from matrix");
      expect_near(transformd(none[n]), transform_identity<double>(), 2 * eps, "inverse");
      EXPECT_EQ(parts[n], a[n]);
    }
  });
}

TEST_P(LibraryTransform, composed_matrices_come_apart_again) {
  each_real([&]<class T>(T) {
    const auto t = transforms<T>(16, 6);
    const auto s = random_values<vec<3, T>>(16, 0.5, 3, 8);
    const double eps = 16 * kTolerance<T>;
    const auto matrices = faces_agree(
        device(), eps, "transform_compose", [](auto&& x, auto&& y) { return transform_compose(x.p, x.q, y); }, t, s);
    const auto again = faces_agree(
        device(), eps, "transform_decompose",
        [](auto&& x, auto&& y) {
          const auto [p, q, scale] = transform_decompose(transform_compose(x.p, x.q, y));
          return transform_compose(p, q, scale);
        },
        t, s);
    const auto scales = faces_agree(
        device(), eps, "scale",
        [](auto&& x, auto&& y) { return transform_decompose(transform_compose(x.p, x.q, y)).scale; }, t, s);
    for (std::size_t n = 0; n < t.size(); ++n) {
      mat44d scaling = mat44d::identity();
      for (int k = 0; k < 3; ++k) scaling(k, k) = double(s[n][k]);
      expect_near(mat44d(matrices[n]), transform_to_matrix(transformd(t[n])) * scaling, eps, "compose");
      expect_near(again[n], matrices[n], 2 * eps, "decompose");
      expect_near(scales[n], s[n], 2 * eps, "scale");
    }
  });
}

TEST_P(LibraryTransform, identities_exist_on_both_faces) {
  Array<transformd> t = zeros<transformd>(device(), 2);
  Array<quath> q = zeros<quath>(device(), 1);
  launch(kernel("identity",
                [](Arr<transformd> t, Arr<quath> q) {
                  t[0] = transform_identity<Double>();
                  t[1] = transform_identity<double>() * t[0];
                  q[0] = quat_identity<Half>() * quat_identity<half>();
                }),
         1, t, q);
  EXPECT_EQ(t.at(0), (transformd{vec3d(), quatd{0, 0, 0, 1}}));
  EXPECT_EQ(t.at(1), t.at(0));
  EXPECT_EQ(q.at(0), (quath{0, 0, 0, 1}));
  EXPECT_EQ(transform_identity(), (transform{vec3(), quat_identity()}));
}

TEST_P(LibraryTransform, spatial_products_have_their_matrices) {
  each_real([&]<class T>(T) {
    using V = vec<6, T>;
    const auto a = random_values<V>(16, -2, 2, 9), b = random_values<V>(16, -2, 2, 10);
    const double eps = 8 * kTolerance<T>;
    auto agree = [&](const char* what, auto f) { return faces_agree(device(), eps, what, f, a, b); };
    const auto parts = agree("parts", [](auto&& x, auto&& y) {
      using S = ScalarFaceOf<decltype(x), decltype(y)>;
      return VecOf<6, S>(spatial_bottom(x), spatial_top(y));
    });
    const auto dots = agree("spatial_dot", [](auto&& x, auto&& y) { return spatial_dot(x, y); });
    const auto crossed = agree("spatial_cross", [](auto&& x, auto&& y) { return spatial_cross(x, y); });
    const auto dual = agree("spatial_cross_dual", [](auto&& x, auto&& y) { return spatial_cross_dual(x, y); });
    for (std::size_t n = 0; n < a.size(); ++n) {
      const vec<6, double> x(a[n]), y(b[n]);
      const vec3d w{x[0], x[1], x[2]}, v{x[3], x[4], x[5]};
      // The matrix of the cross product with x is [w^ 0; v^ w^]; that of its dual is the negative transpose.
      const mat<6, 6, double> m = spatial_adjoint(skew(w), skew(v));
      expect_near(vec<6, double>(crossed[n]), m * y, 2 * eps, "cross");
      expect_near(vec<6, double>(dual[n]), -(transpose(m) * y), 2 * eps, "dual");
      double sum = 0;
      for (int k = 0; k < 6; ++k) sum += x[k] * y[k];
      EXPECT_NEAR(double(dots[n]), sum, 2 * eps * 6);
      EXPECT_EQ(parts[n], (V{a[n][3], a[n][4], a[n][5], b[n][0], b[n][1], b[n][2]}));
    }
  });
}

TEST_P(LibraryTransform, the_adjoint_matrix_moves_twists) {
  each_real([&]<class T>(T) {
    const auto t = transforms<T>(16, 11);
    const auto twist = random_values<vec<6, T>>(16, -1, 1, 13);
    const double eps = 32 * kTolerance<T>;
    const auto moved = faces_agree(
        device(), eps, "spatial_adjoint",
        [](auto&& x, auto&& y) {
          const auto r = quat_to_matrix(x.q);
          return spatial_adjoint(r, skew(x.p) * r) * y;
        },
        t, twist);
    for (std::size_t n = 0; n < t.size(); ++n) {
      // The velocity of a point of the moving body is the same before and after the change of frame.
      const transformd x(t[n]);
      const vec<6, double> before(twist[n]), after(moved[n]);
      const vec3d point{0.3, -0.7, 0.5}, there = transform_point(x, point);
      const vec3d v = spatial_bottom(before) + cross(spatial_top(before), point);
      expect_near(spatial_bottom(after) + cross(spatial_top(after), there), transform_vector(x, v), 2 * eps, "adjoint");
    }
  });
}

}  // namespace
