// Lengths and unit vectors of vectors from the shortest to the longest, on the host and on devices, against float64.
#include <cmath>
#include <limits>
#include <random>

#include "../check_gradient.h"
#include "../faces.h"

using namespace weft;
using weft::test::on_device;

namespace {

class Normalize : public test::DeviceTest {
 protected:
  /// A limit in ulps: a device whose quotients and roots are not correctly rounded may be 4 further off.
  double near(double ulps) const { return on_gpu() ? ulps + 4 : ulps; }
};
ON_EVERY_DEVICE(Normalize);
GRADIENT_TEST(NormalizeGradient);

using vec3h = vec<3, half>;

template <class T>
constexpr double epsilon = sizeof(T) == 2   ? 0x1p-10
                           : sizeof(T) == 4 ? 0x1p-23
                                            : 0x1p-52;

/// Vectors in all directions, of lengths from 10^from to 10^to.
template <class T>
std::vector<vec<3, T>> vectors(double from, double to, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> part(-1, 1), exponent(from, to);
  std::vector<vec<3, T>> v;
  while (v.size() < 20'000) {
    const vec3d u(part(engine), part(engine), part(engine));
    const double l = std::sqrt(u.x * u.x + u.y * u.y + u.z * u.z);
    if (l < 0.1) continue;
    v.push_back(vec<3, T>(u * (std::pow(10, exponent(engine)) / l)));
  }
  return v;
}

/// The length in a precision and a range that have room for all squares.
long double exact_length(const vec3d& v) {
  const long double x = v.x, y = v.y, z = v.z;
  return std::sqrt(x * x + y * y + z * z);
}

template <class T, class F>
std::vector<vec<3, T>> by_host(const F& f, const std::vector<vec<3, T>>& v) {
  std::vector<vec<3, T>> out;
  for (const auto& x : v) out.push_back(f(x));
  return out;
}

/// \param ulps  the most by which a component may be off, in ulps of 1
template <class T, class F>
void expect_unit(const Device& device, const std::vector<vec<3, T>>& v, const F& f, double ulps, const char* what) {
  for (const auto& got : {by_host(f, v), on_device(device, f, v)}) {
    double worst = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      const vec3d from(v[i]);
      const long double l = exact_length(from);
      for (int k = 0; k < 3; ++k) {
        const double off = std::abs(double(got[i][k]) - double(from[k] / l));
        worst = std::isnan(off) ? 2 : std::max(worst, off);
      }
    }
    EXPECT_LT(worst, ulps * epsilon<T>) << what << ", " << sizeof(T) << " bytes";
  }
}

TEST_P(Normalize, is_exact_to_an_ulp_over_the_whole_range_of_lengths) {
  const auto unit = [](auto&& v) { return normalize(v); };
  expect_unit(device(), vectors<float>(-18, 19, 1), unit, near(2), "normalize");
  expect_unit(device(), vectors<double>(-153, 154, 2), unit, near(2), "normalize");
  // The vectors cover all of float16: squares of components above 255 are infinite in it, and those below 2^-12 are 0.
  expect_unit(device(), vectors<half>(-4, 4.8, 3), unit, 0.6, "normalize");
  const std::vector<vec3h> extremes{vec3h(half(65504.f), half(65504.f), half(-65504.f)), vec3h(half(0x1p-24f)),
                                    vec3h(half(300.f), half(0.f), half(400.f))};
  expect_unit(device(), extremes, unit, 0.6, "normalize of extremes");
}

TEST_P(Normalize, takes_vectors_of_any_length_that_are_scaled_first) {
  const auto unit = [](auto&& v) { return normalize(v / max(abs(v))); };
  expect_unit(device(), vectors<float>(-36, 38.4, 4), unit, near(3), "normalize");
  expect_unit(device(), vectors<double>(-306, 308, 5), unit, near(3), "normalize");
}

template <class T>
void check_lengths(const Device& device, const std::vector<vec<3, T>>& v, double ulps) {
  const auto measure = [](auto&& x) { return length(x); };
  const std::vector<T> there = on_device(device, measure, v);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const long double l = exact_length(vec3d(v[i]));
    if (l > 65504 && sizeof(T) == 2) continue;
    ASSERT_NEAR(double(double(there[i]) / l), 1, ulps * epsilon<T>) << i;
    ASSERT_NEAR(double(double(measure(v[i])) / l), 1, ulps * epsilon<T>) << i;
    ASSERT_NEAR(double(double(distance(v[i], vec<3, T>())) / l), 1, ulps * epsilon<T>) << i;
  }
}

TEST_P(Normalize, lengths_are_right_over_the_same_range) {
  check_lengths<float>(device(), vectors<float>(-18, 19, 6), near(3));
  check_lengths<double>(device(), vectors<double>(-153, 154, 7), near(3));
  check_lengths<half>(device(), vectors<half>(-4, 4.8, 8), 0.6);
}

template <class V>
bool all_nan(const V& v) {
  for (double s : test::scalars_of(v))
    if (!std::isnan(s)) return false;
  return true;
}

TEST_P(Normalize, a_nan_makes_all_nan_and_what_is_beyond_the_range_counts_as_zero) {
  const auto unit = [](auto&& v) { return normalize(v); };
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const std::vector<vec3> v{{nan, 0, 1},  {0, 0, nan},       {nan, nan, nan}, {0, 0, 0},
                            {-0.f, 0, 0}, {1e30f, 0, 1e30f}, {1e-30f, 0, 0}};
  for (const auto& got : {by_host(unit, v), on_device(device(), unit, v)}) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(all_nan(got[i])) << i;
    for (std::size_t i = 3; i < v.size(); ++i) EXPECT_EQ(got[i], vec3()) << i;
  }
  const std::vector<quat> q{quat(nan, 0, 0, 1), quat(0, 0, 0, nan), quat(), quat(0, 1e-30f, 0, 0)};
  for (const auto& got :
       {std::vector<quat>{unit(q[0]), unit(q[1]), unit(q[2]), unit(q[3])}, on_device(device(), unit, q)}) {
    EXPECT_TRUE(all_nan(got[0]) && all_nan(got[1]));
    EXPECT_EQ(got[2], quat_identity());
    EXPECT_EQ(got[3], quat_identity());
  }
  const std::vector<vec3h> h{vec3h(half(nan), half(0.f), half(0.f)), vec3h()};
  const std::vector<vec3h> by_device = on_device(device(), unit, h);
  EXPECT_TRUE(all_nan(by_device[0]) && all_nan(unit(h[0])));
  EXPECT_TRUE(by_device[1] == vec3h() && unit(h[1]) == vec3h());
  EXPECT_TRUE(std::isnan(unit(vec3(inf, 0, 0)).x)) << "no direction can be told";
  // A vector along an axis is exactly one.
  for (int k = 1; k < 1000; ++k) ASSERT_EQ(normalize(vec3(0, -float(k), 0)), vec3(0, -1, 0)) << k;
}

TEST_P(NormalizeGradient, holds_over_the_range_of_lengths) {
  const test::Points points = test::random_points(3, -2, 2);
  for (double scale : {1e-17, 1e-9, 1., 1e9, 1e17}) {
    const float s = float(scale);
    const auto single = test::of("normalize", [s](Vec3 v) { return normalize(v * s); });
    const auto exact = test::of("normalize", [s](Vec3d v) { return normalize(v * double(s)); });
    expect_close(single, exact, points);
    const auto length_of = test::of("length", [s](Vec3 v) { return length(v * s) / s; });
    const auto exact_length_of = test::of("length", [s](Vec3d v) { return length(v * double(s)) / double(s); });
    expect_close(length_of, exact_length_of, points);
  }
  // The squares of float16 are computed in float32.
  const auto narrow = test::of("normalize", [](Vec<3, half> v) { return normalize(v * 500); });
  const auto exact = test::of("normalize", [](Vec3d v) { return normalize(v * 500); });
  test::Points halves;
  for (const auto& p : points) {
    halves.push_back({});
    for (double x : p) halves.back().push_back(float(half(x)));
  }
  expect_close(narrow, exact, halves, 0.02);
}

}  // namespace
