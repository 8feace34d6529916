// Quaternions: a kernel gives the host's results, and both agree with the closed form.
#include "../faces.h"

using namespace weft;
using weft::test::expect_near;
using weft::test::faces_agree;
using weft::test::kTolerance;
using weft::test::random_values;

namespace {

DEVICE_TEST(LibraryQuaternion);

constexpr double kPi = 3.14159265358979323846;

template <class F>
void each_real(F f) {
  f(half()), f(float()), f(double());
}

// The limit of sin, cos and their inverses, which are coarse on some devices (docs/semantics.md).
template <class T>
constexpr double kTrigonometry = sizeof(T) == 8   ? 1e-13
                                 : sizeof(T) == 4 ? 1e-3
                                                  : 8e-3;

template <class T>
std::vector<quaternion<T>> rotations(int n, unsigned seed) {
  std::vector<quaternion<T>> q;
  for (const quatd& x : random_values<quatd>(n, -1, 1, seed)) q.push_back(quaternion<T>(normalize(x)));
  return q;
}

/// Rotation about axis k (0: x) by the right-hand rule.
mat33d about(int k, double angle) {
  mat33d m = mat33d::identity();
  const int i = (k + 1) % 3, j = (k + 2) % 3;
  m(i, i) = m(j, j) = std::cos(angle);
  m(j, i) = std::sin(angle);
  m(i, j) = -std::sin(angle);
  return m;
}

void expect_same_rotation(const quatd& a, const quatd& b, double tolerance, const char* what) {
  expect_near(dot(a, b) < 0 ? -a : a, b, tolerance, what);
}

TEST_P(LibraryQuaternion, products_follow_hamilton) {
  const quat i{1, 0, 0, 0}, j{0, 1, 0, 0}, k{0, 0, 1, 0}, one{0, 0, 0, 1};
  EXPECT_EQ(i * j, k);
  EXPECT_EQ(j * k, i);
  EXPECT_EQ(k * i, j);
  EXPECT_EQ(i * i, -one);
  EXPECT_EQ(quat_identity(), one);
  each_real([&]<class T>(T) {
    const auto a = rotations<T>(16, 1), b = rotations<T>(16, 2);
    const double eps = 4 * kTolerance<T>;
    const auto products = faces_agree(
        device(), eps, "a * b", [](auto&& x, auto&& y) { return x * y; }, a, b);
    const auto ones = faces_agree(
        device(), eps, "inverse", [](auto&& x, auto&&) { return x * quat_inverse(x); }, a, b);
    faces_agree(
        device(), eps, "linear", [](auto&& x, auto&& y) { return -(x + y) * 2 - x / 4 + 0.5 * y; }, a, b);
    faces_agree(
        device(), eps, "dot", [](auto&& x, auto&& y) { return dot(x, y) + length(x) + length_sq(y); }, a, b);
    faces_agree(
        device(), eps, "lerp", [](auto&& x, auto&& y) { return lerp(x, y, 0.25) + normalize(x * 3); }, a, b);
    for (std::size_t n = 0; n < a.size(); ++n) {
      expect_near(ones[n], quat_identity<T>(), eps, "q q^-1");
      expect_near(quat_to_matrix(quatd(products[n])), quat_to_matrix(quatd(a[n])) * quat_to_matrix(quatd(b[n])),
                  2 * eps, "R(a b) = R(a) R(b)");
    }
  });
  EXPECT_EQ(normalize(quat()), one);
}

TEST_P(LibraryQuaternion, rotating_is_multiplying_by_the_matrix) {
  each_real([&]<class T>(T) {
    const auto q = rotations<T>(16, 3);
    const auto v = random_values<vec<3, T>>(16, -2, 2, 4);
    const double eps = 8 * kTolerance<T>;
    const auto turned = faces_agree(
        device(), eps, "quat_rotate", [](auto&& p, auto&& x) { return quat_rotate(p, x); }, q, v);
    const auto back = faces_agree(
        device(), eps, "quat_rotate_inv", [](auto&& p, auto&& x) { return quat_rotate_inv(p, quat_rotate(p, x)); }, q,
        v);
    const auto matrices = faces_agree(
        device(), eps, "quat_to_matrix", [](auto&& p, auto&&) { return quat_to_matrix(p); }, q, v);
    const auto again = faces_agree(
        device(), eps, "quat_from_matrix", [](auto&& p, auto&&) { return quat_from_matrix(quat_to_matrix(p)); }, q, v);
    for (std::size_t n = 0; n < q.size(); ++n) {
      expect_near(turned[n], matrices[n] * v[n], 2 * eps, "R(q) v");
      expect_near(back[n], v[n], 2 * eps, "back");
      expect_same_rotation(quatd(again[n]), quatd(q[n]), 2 * eps, "from matrix");
      const quatd p(q[n]), x(vec3d(v[n]), 0), w = p * x * quat_inverse(p);
      expect_near(vec3d(turned[n]), vec3d{w.x, w.y, w.z}, 2 * eps, "q v q*");
    }
  });
}

TEST_P(LibraryQuaternion, a_matrix_of_half_a_turn_gives_its_quaternion) {
  // The matrices cover each of the four cases of the conversion, including the borders between them.
  std::vector<mat33> m;
  std::vector<quatd> expected;
  for (int k = 0; k < 3; ++k)
    for (double angle : {0., 0.1, kPi / 2, 2.0, 2.2, kPi - 1e-3, kPi, 4., 6.}) {
      m.push_back(mat33(about(k, angle)));
      quatd q(0, 0, 0, std::cos(angle / 2));
      q[k] = std::sin(angle / 2);
      expected.push_back(q);
    }
  const auto q = faces_agree(
      device(), 1e-6, "quat_from_matrix", [](auto&& x) { return quat_from_matrix(x); }, m);
  for (std::size_t n = 0; n < m.size(); ++n) expect_same_rotation(quatd(q[n]), expected[n], 1e-6, "half a turn");
}

TEST_P(LibraryQuaternion, axis_and_angle_there_and_back) {
  each_real([&]<class T>(T) {
    const double eps = kTrigonometry<T>;
    const auto axis = random_values<vec<3, T>>(16, -2, 2, 5);
    const auto angle = random_values<T>(16, 0.1, 3, 6);
    const auto q = faces_agree(
        device(), eps, "quat_from_axis_angle", [](auto&& a, auto&& t) { return quat_from_axis_angle(a, t); }, axis,
        angle);
    const auto back = faces_agree(
        device(), 8 * eps, "quat_to_axis_angle",
        [](auto&& a, auto&& t) {
          const auto r = quat_to_axis_angle(-quat_from_axis_angle(a, t));
          return r.axis * r.angle;
        },
        axis, angle);
    for (std::size_t n = 0; n < axis.size(); ++n) {
      const vec3d a = normalize(vec3d(axis[n]));
      const double t = double(angle[n]);
      expect_near(quatd(q[n]), quatd(a * std::sin(t / 2), std::cos(t / 2)), 2 * eps, "from axis, angle");
      expect_near(vec3d(back[n]), a * t, 16 * eps, "to axis, angle");
    }
  });
  for (int k = 0; k < 3; ++k) {
    vec3d axis;
    axis[k] = 5;
    expect_near(quat_to_matrix(quat_from_axis_angle(axis, 0.7)), about(k, 0.7), 1e-14, "about an axis");
  }
  const auto [axis, angle] = quat_to_axis_angle(quat_identity<double>());
  EXPECT_EQ(axis, vec3d());
  EXPECT_EQ(angle, 0);
}

TEST_P(LibraryQuaternion, roll_pitch_and_yaw_are_turns_about_the_axes_in_order) {
  each_real([&]<class T>(T) {
    const auto r = random_values<T>(16, -3, 3, 7), p = random_values<T>(16, -3, 3, 8),
               y = random_values<T>(16, -3, 3, 9);
    const auto q = faces_agree(
        device(), kTrigonometry<T>, "quat_rpy", [](auto&& a, auto&& b, auto&& c) { return quat_rpy(a, b, c); }, r, p,
        y);
    for (std::size_t n = 0; n < r.size(); ++n)
      expect_near(quat_to_matrix(quatd(q[n])), about(2, double(y[n])) * about(1, double(p[n])) * about(0, double(r[n])),
                  4 * kTrigonometry<T>, "yaw pitch roll");
  });
}

TEST_P(LibraryQuaternion, slerp_turns_at_constant_speed_the_shorter_way) {
  each_real([&]<class T>(T) {
    const double eps = 8 * kTrigonometry<T>;
    const auto a = rotations<T>(16, 10), b = rotations<T>(16, 11);
    const auto t = random_values<T>(16, 0, 1, 12);
    const auto q = faces_agree(
        device(), eps, "quat_slerp", [](auto&& x, auto&& y, auto&& s) { return quat_slerp(x, y, s); }, a, b, t);
    const auto start = faces_agree(
        device(), eps, "slerp 0", [](auto&& x, auto&& y, auto&&) { return quat_slerp(x, y, 0); }, a, b, t);
    const auto end = faces_agree(
        device(), eps, "slerp 1", [](auto&& x, auto&& y, auto&&) { return quat_slerp(x, -y, 1); }, a, b, t);
    const auto same = faces_agree(
        device(), eps, "slerp a a", [](auto&& x, auto&&, auto&& s) { return quat_slerp(x, x, s); }, a, b, t);
    for (std::size_t n = 0; n < a.size(); ++n) {
      quatd x = normalize(quatd(a[n])), y = normalize(quatd(b[n]));
      expect_same_rotation(quatd(start[n]), x, 2 * eps, "start");
      expect_same_rotation(quatd(end[n]), y, 2 * eps, "end");
      expect_same_rotation(quatd(same[n]), x, 2 * eps, "the same");
      if (dot(x, y) < 0) y = -y;
      const double arc = std::acos(std::min(dot(x, y), 1.)), s = double(t[n]);
      const quatd expected = x * (std::sin((1 - s) * arc) / std::sin(arc)) + y * (std::sin(s * arc) / std::sin(arc));
      expect_same_rotation(quatd(q[n]), expected, 2 * eps, "slerp");
    }
  });
}

TEST_P(LibraryQuaternion, the_rotation_between_two_directions_takes_one_to_the_other) {
  each_real([&]<class T>(T) {
    auto a = random_values<vec<3, T>>(12, -2, 2, 13), b = random_values<vec<3, T>>(12, -2, 2, 14);
    for (const vec3 v : {vec3{1, 0, 0}, vec3{0, -2, 0}, vec3{0, 0, 3}, vec3{1, 1, -1}}) {
      a.push_back(vec<3, T>(v)), b.push_back(vec<3, T>(v));
      a.push_back(vec<3, T>(v)), b.push_back(vec<3, T>(v * -2));
    }
    const double eps = 4 * kTolerance<T>;
    const auto q = faces_agree(
        device(), eps, "quat_between", [](auto&& x, auto&& y) { return quat_between(x, y); }, a, b);
    for (std::size_t n = 0; n < a.size(); ++n) {
      expect_near(quat_rotate(quatd(q[n]), normalize(vec3d(a[n]))), normalize(vec3d(b[n])), eps, "between");
      EXPECT_NEAR(dot(vec3d(q[n].x, q[n].y, q[n].z), vec3d(a[n])), 0, eps);
    }
  });
}

}  // namespace
