// Functions of numbers, vectors and matrices: a kernel gives the host's results, and both agree with the closed form.
#include "../faces.h"

using namespace weft;
using weft::test::expect_near;
using weft::test::faces_agree;
using weft::test::kTolerance;
using weft::test::random_values;

namespace {

DEVICE_TEST(LibraryVector);

template <class F>
void each_real(F f) {
  f(half()), f(float()), f(double());
}

TEST_P(LibraryVector, products_and_lengths) {
  each_real([&]<class T>(T) {
    const auto a = random_values<vec<3, T>>(16, -2, 2, 1), b = random_values<vec<3, T>>(16, -2, 2, 2);
    const double eps = 2 * kTolerance<T>;
    auto agree = [&](const char* what, auto f) { return faces_agree(device(), eps, what, f, a, b); };
    const auto dots = agree("dot", [](auto&& x, auto&& y) { return dot(x, y); });
    const auto crossed = agree("cross", [](auto&& x, auto&& y) { return cross(x, y); });
    const auto lengths = agree("length", [](auto&& x, auto&&) { return length(x); });
    const auto squares = agree("length_sq", [](auto&& x, auto&&) { return length_sq(x); });
    const auto units = agree("normalize", [](auto&& x, auto&&) { return normalize(x); });
    const auto distances = agree("distance", [](auto&& x, auto&& y) { return distance(x, y); });
    for (std::size_t i = 0; i < a.size(); ++i) {
      const vec3d p(a[i]), q(b[i]);
      expect_near(double(dots[i]), p.x * q.x + p.y * q.y + p.z * q.z, 4 * eps, "dot");
      expect_near(double(squares[i]), p.x * p.x + p.y * p.y + p.z * p.z, 4 * eps, "length_sq");
      expect_near(double(lengths[i]), std::sqrt(p.x * p.x + p.y * p.y + p.z * p.z), 2 * eps, "length");
      expect_near(double(distances[i]), std::sqrt(double(length_sq(p - q))), 2 * eps, "distance");
      EXPECT_NEAR(dot(vec3d(crossed[i]), p), 0, 8 * eps);
      EXPECT_NEAR(double(length_sq(crossed[i])), length_sq(p) * length_sq(q) - dot(p, q) * dot(p, q), 40 * eps);
      EXPECT_NEAR(double(length(units[i])), 1, 2 * eps);
      expect_near(vec3d(units[i]) * length(p), p, 4 * eps, "normalize");
    }
  });
  // The cross product follows the right-hand rule; a zero vector has no direction.
  EXPECT_EQ(cross(vec3{1, 0, 0}, vec3{0, 1, 0}), (vec3{0, 0, 1}));
  const auto units = faces_agree(
      device(), 0, "normalize", [](auto&& x) { return normalize(x); }, std::vector<vec3>{{0, 0, 0}, {0, 3, 4}});
  EXPECT_EQ(units[0], vec3());
  expect_near(units[1], vec3{0, 0.6, 0.8}, 1e-6, "normalize");
}

TEST_P(LibraryVector, integer_vectors_have_the_functions_that_make_sense) {
  const std::vector<vec4i> a = {{3, -1, 4, 1}, {-5, 9, -2, 6}, {5, 3, 5, 8}, {-9, -7, -9, 3}};
  const std::vector<vec4i> b = {{1, 2, 3, 4}, {0, 9, -3, 7}, {5, 5, 5, 5}, {-8, 1, 0, 2}};
  auto agree = [&](const char* what, auto f) { return faces_agree(device(), 0, what, f, a, b); };
  EXPECT_EQ(agree("dot", [](auto&& x, auto&& y) { return dot(x, y); }), (std::vector<int>{17, 129, 105, 71}));
  EXPECT_EQ(agree("min", [](auto&& x, auto&&) { return min(x); }), (std::vector<int>{-1, -5, 3, -9}));
  EXPECT_EQ(agree("max", [](auto&& x, auto&&) { return max(x); }), (std::vector<int>{4, 9, 8, 3}));
  EXPECT_EQ(agree("argmin", [](auto&& x, auto&&) { return argmin(x); }), (std::vector<int>{1, 0, 1, 0}));
  EXPECT_EQ(agree("argmax", [](auto&& x, auto&&) { return argmax(x); }), (std::vector<int>{2, 1, 3, 3}));
  EXPECT_EQ(agree("abs", [](auto&& x, auto&&) { return abs(x); })[1], (vec4i{5, 9, 2, 6}));
  EXPECT_EQ(agree("sign", [](auto&& x, auto&&) { return sign(x); })[0], (vec4i{1, -1, 1, 1}));
  EXPECT_EQ(agree("min of two", [](auto&& x, auto&& y) { return min(x, y) + max(y, 2); })[0], (vec4i{3, 1, 6, 5}));
  EXPECT_EQ(agree("clamp", [](auto&& x, auto&& y) { return clamp(x, -2, y); })[3], (vec4i{-8, -2, -2, 2}));
  EXPECT_EQ(agree("floor_div", [](auto&& x, auto&&) { return floor_div(x, 4); })[3], (vec4i{-3, -2, -3, 0}));
  EXPECT_EQ(agree("less", [](auto&& x, auto&& y) { return less(x, y); })[1], (vec<4, bool>{true, false, false, true}));
  EXPECT_EQ(agree("greater_equal", [](auto&& x, auto&& y) { return greater_equal(x, y); })[2],
            (vec<4, bool>{true, false, true, true}));
  EXPECT_EQ(agree("equal", [](auto&& x, auto&& y) { return any(equal(x, y)); }),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(agree("cw", [](auto&& x, auto&& y) { return cw_mul(x, y) - cw_div(x, vec4i(2)); })[0],
            (vec4i{2, -2, 10, 4}));
}

TEST_P(LibraryVector, functions_of_numbers_work_component_by_component) {
  each_real([&]<class T>(T) {
    const auto a = random_values<vec<4, T>>(16, 0.1, 3, 3);
    const auto b = random_values<vec<4, T>>(16, -3, 3, 4);
    const double eps = 4 * kTolerance<T>;
    auto same = [&](const char* what, auto f) { faces_agree(device(), 0, what, f, b); };
    same("floor", [](auto&& x) { return floor(x); });
    same("ceil", [](auto&& x) { return ceil(x); });
    same("trunc", [](auto&& x) { return trunc(x); });
    same("round", [](auto&& x) { return round(x); });
    same("rint", [](auto&& x) { return rint(x); });
    same("abs", [](auto&& x) { return abs(x); });
    same("sign", [](auto&& x) { return sign(x); });
    same("min, max", [](auto&& x) { return min(x, 1) - max(x, vec<4, T>(-1)); });
    same("step", [](auto&& x) { return step(x); });
    same("nonzero", [](auto&& x) { return nonzero(floor(x)); });
    same("frac", [](auto&& x) { return frac(x); });
    auto agree = [&](const char* what, auto f) { faces_agree(device(), eps, what, f, a); };
    agree("sqrt", [](auto&& x) { return sqrt(x); });
    agree("rsqrt", [](auto&& x) { return rsqrt(x); });
    agree("radians", [](auto&& x) { return radians(x); });
    agree("degrees", [](auto&& x) { return degrees(x); });
    agree("exp", [](auto&& x) { return exp(x) + exp2(x); });
    agree("log", [](auto&& x) { return log(x) * log2(x); });
    if constexpr (sizeof(T) != 2) {
      faces_agree(
          device(), 5e-4, "sin", [](auto&& x) { return sin(x) + cos(x) + tan(x * 0.25); }, a);
    }
    agree("pow", [](auto&& x) { return pow(x, 2); });
  });
}

TEST_P(LibraryVector, interpolation_has_its_closed_forms) {
  each_real([&]<class T>(T) {
    const auto a = random_values<T>(20, -2, 2, 5), b = random_values<T>(20, -2, 2, 6);
    const auto t = random_values<T>(20, -0.5, 1.5, 7);
    const double eps = 2 * kTolerance<T>;
    const auto mixed = faces_agree(
        device(), eps, "lerp", [](auto&& x, auto&& y, auto&& s) { return lerp(x, y, s); }, a, b, t);
    const auto smooth = faces_agree(
        device(), eps, "smoothstep", [](auto&& x, auto&&, auto&& s) { return smoothstep(0 * x - T(0.25f), T(1), s); },
        a, b, t);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double s = double(t[i]), u = std::min(std::max((s + 0.25) / 1.25, 0.), 1.);
      expect_near(double(mixed[i]), double(a[i]) * (1 - s) + double(b[i]) * s, 2 * eps, "lerp");
      expect_near(double(smooth[i]), u * u * (3 - 2 * u), 4 * eps, "smoothstep");
    }
    const auto va = random_values<vec<3, T>>(20, -2, 2, 8), vb = random_values<vec<3, T>>(20, -2, 2, 9);
    faces_agree(
        device(), eps, "lerp of vectors", [](auto&& x, auto&& y, auto&& s) { return lerp(x, y, s) + lerp(x, y, 0.5); },
        va, vb, t);
  });
  EXPECT_EQ(lerp(vec2{0, 10}, vec2{1, 20}, 0.5), (vec2{0.5, 15}));
  EXPECT_EQ(smoothstep(0.f, 2.f, 1.f), 0.5f);
  EXPECT_EQ(step(-0.5f), 1.f);
  EXPECT_EQ(step(0.f), 0.f);
  EXPECT_EQ(nonzero(-3), 1);
  EXPECT_EQ(nonzero(0.), 0.);
  EXPECT_NEAR(degrees(radians(33.0)), 33, 1e-12);
  EXPECT_EQ(frac(-1.25), -0.25);
}

TEST_P(LibraryVector, places_of_extremes_pass_over_nans) {
  const float nan = std::nanf("");
  const std::vector<vec4> a = {{nan, 2, 1, 1}, {3, nan, 3, nan}, {nan, nan, nan, nan}, {0, -0.f, 5, 5}};
  EXPECT_EQ(faces_agree(
                device(), 0, "argmin", [](auto&& x) { return argmin(x); }, a),
            (std::vector<int>{2, 0, 0, 0}));
  EXPECT_EQ(faces_agree(
                device(), 0, "argmax", [](auto&& x) { return argmax(x); }, a),
            (std::vector<int>{1, 0, 0, 2}));
  EXPECT_EQ(faces_agree(
                device(), 0, "max", [](auto&& x) { return max(x) - min(x); }, std::vector<vec4>{a[0], a[1], a[3]}),
            (std::vector<float>{1, 0, 5}));
}

TEST_P(LibraryVector, matrices_from_vectors_and_back) {
  each_real([&]<class T>(T) {
    const auto a = random_values<vec<3, T>>(16, -2, 2, 1), b = random_values<vec<3, T>>(16, -2, 2, 2);
    const double eps = 4 * kTolerance<T>;
    const auto skews = faces_agree(
        device(), 0, "skew", [](auto&& x, auto&&) { return skew(x); }, a, b);
    const auto outers = faces_agree(
        device(), 0, "outer", [](auto&& x, auto&& y) { return outer(x, y); }, a, b);
    const auto diagonals = faces_agree(
        device(), 0, "diag", [](auto&& x, auto&&) { return diag(x); }, a, b);
    const auto same = faces_agree(
        device(), 0, "get_diag", [](auto&& x, auto&&) { return get_diag(diag(x)); }, a, b);
    const auto traces = faces_agree(
        device(), eps, "trace", [](auto&& x, auto&& y) { return trace(outer(x, y)); }, a, b);
    const auto rows = faces_agree(
        device(), 0, "rows",
        [](auto&& x, auto&& y) {
          return matrix_from_rows(x, y, vec<3, T>{1, 2, 3}, x);
        },
        a, b);
    const auto columns = faces_agree(
        device(), 0, "columns", [](auto&& x, auto&& y) { return matrix_from_cols(x, y); }, a, b);
    const auto m = random_values<mat<2, 3, T>>(16, -2, 2, 3), n = random_values<mat<2, 3, T>>(16, -2, 2, 4);
    const auto turned = faces_agree(
        device(), 0, "transpose", [](auto&& x, auto&&) { return transpose(x); }, m, n);
    const auto doubled = faces_agree(
        device(), eps, "ddot", [](auto&& x, auto&& y) { return ddot(x, y); }, m, n);
    const auto products = faces_agree(
        device(), eps, "cw", [](auto&& x, auto&& y) { return cw_mul(x, y) + cw_div(x, mat<2, 3, T>(2)); }, m, n);
    for (std::size_t i = 0; i < a.size(); ++i) {
      expect_near(skews[i] * b[i], cross(a[i], b[i]), eps, "skew");
      double sum = 0;
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
          EXPECT_EQ(outers[i](r, c), T(a[i][r] * b[i][c]));
          EXPECT_EQ(diagonals[i](r, c), r == c ? a[i][r] : T(0));
          if (r == 2) continue;
          EXPECT_EQ(turned[i](c, r), m[i](r, c));
          EXPECT_NEAR(double(products[i](r, c)), double(m[i](r, c)) * (double(n[i](r, c)) + 0.5), 8 * eps);
          sum += double(m[i](r, c)) * double(n[i](r, c));
        }
      EXPECT_EQ(same[i], a[i]);
      EXPECT_NEAR(double(traces[i]), double(dot(a[i], b[i])), 8 * eps);
      EXPECT_EQ(rows[i].row(0), a[i]);
      EXPECT_EQ(rows[i].row(2), (vec<3, T>{1, 2, 3}));
      EXPECT_EQ(columns[i].col(1), b[i]);
      EXPECT_NEAR(double(doubled[i]), sum, 8 * eps);
    }
  });
}

}  // namespace
