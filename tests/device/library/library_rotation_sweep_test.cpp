// Quaternions of 100,000 random rotations and pairs of directions, on the host and on devices, against float64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "../check_gradient.h"
#include "../faces.h"

using namespace weft;
using weft::test::on_device;
using weft::test::Points;
using weft::test::random_values;

namespace {

class RotationSweep : public test::DeviceTest {
 protected:
  /// More ulps for devices that do not round quotients and roots correctly (docs/semantics.md).
  double device_ulps() const { return on_gpu() ? 4 : 0; }
};
ON_EVERY_DEVICE(RotationSweep);
GRADIENT_TEST(RotationSweepGradient);

constexpr int kRotations = 100'000;

template <class F>
void each_real(F f) {
  f(half()), f(float()), f(double());
}

template <class T>
constexpr double epsilon = sizeof(T) == 2   ? 0x1p-10
                           : sizeof(T) == 4 ? 0x1p-23
                                            : 0x1p-52;

double part(const quatd& q, int k) { return q[k]; }

/// Random rotations, and rotations several parts of which have one size, or nearly, with all signs.
std::vector<quatd> rotations() {
  std::vector<quatd> all = {quatd(0.504409, 0.499843, -0.0616634, -0.701374)};
  for (const quatd& q : random_values<quatd>(kRotations, -1, 1, 1)) all.push_back(normalize(q));
  for (int signs = 0; signs < 81; ++signs)
    for (double off : {0., 1e-8, -1e-8, 1e-4}) {
      const quatd q(signs % 3 - 1 + off, signs / 3 % 3 - 1, signs / 9 % 3 - 1 - 2 * off, signs / 27 - 1);
      if (length(q) > 0.5) all.push_back(normalize(q));
    }
  return all;
}

struct Worst {
  double error = 0;
  int negative = 0;
};
template <class T>
Worst worst_of(const std::vector<quatd>& turns, const std::vector<quaternion<T>>& got) {
  Worst worst;
  for (std::size_t n = 0; n < turns.size(); ++n) {
    const quatd q(got[n]);
    double largest = 0, most = 0, off = 0;
    for (int k = 0; k < 4; ++k) largest = std::max(largest, std::abs(part(q, k))), most = std::max(most, part(q, k));
    worst.negative += !(most == largest);
    const double side = dot(q, turns[n]) < 0 ? -1 : 1;
    for (int k = 0; k < 4; ++k) off = std::max(off, std::abs(side * part(q, k) - part(turns[n], k)));
    worst.error = std::isnan(off) ? 1 : std::max(worst.error, off);
  }
  return worst;
}

TEST_P(RotationSweep, the_largest_part_of_the_quaternion_of_a_matrix_is_positive) {
  each_real([&]<class T>(T) {
    const std::vector<quatd> turns = rotations();
    std::vector<mat<3, 3, T>> m;
    for (const quatd& q : turns) m.push_back(mat<3, 3, T>(quat_to_matrix(q)));
    const auto convert = [](auto&& x) { return quat_from_matrix(x); };
    std::vector<quaternion<T>> by_host;
    for (const auto& x : m) by_host.push_back(convert(x));
    for (const auto& got : {by_host, on_device(device(), convert, m)}) {
      const Worst worst = worst_of<T>(turns, got);
      EXPECT_EQ(worst.negative, 0);
      EXPECT_LT(worst.error, (4 + device_ulps()) * epsilon<T>);
    }
  });
}

/// Pairs of directions of any length that are `apart` (radians) from being opposite, or from being equal.
template <class T>
struct Pairs {
  std::vector<vec<3, T>> a, b;
  Pairs(bool opposite, double least, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> size(-1, 1), exponent(std::log10(least), -1);
    const auto direction = [&] { return normalize(vec3d(size(engine), size(engine), size(engine))); };
    for (int n = 0; n < kRotations; ++n) {
      const vec3d u = direction(), across = normalize(cross(u, direction()));
      const double apart = std::pow(10, exponent(engine));
      const vec3d v = (u * std::cos(apart) + across * std::sin(apart)) * (opposite ? -1. : 1.);
      a.push_back(vec<3, T>(u * std::exp2(4 * size(engine))));
      b.push_back(vec<3, T>(v * std::exp2(4 * size(engine))));
    }
  }
};

// The worst error of the turns. A direction as floats is off by an ulp, so each turn is measured by how well it takes
// the first of the given directions to the second.
template <class T>
double worst_turn(const Pairs<T>& pairs, const std::vector<quaternion<T>>& got) {
  double worst = 0;
  for (std::size_t n = 0; n < got.size(); ++n) {
    const vec3d u = normalize(vec3d(pairs.a[n])), v = normalize(vec3d(pairs.b[n]));
    const quatd q(got[n]);
    // The axis is perpendicular to both directions, because the turn is the shortest.
    const double off = std::max(
        {length(quat_rotate(normalize(q), u) - v), std::abs(length(q) - 1), std::abs(dot(vec3d(q.x, q.y, q.z), u))});
    worst = std::isnan(off) ? 4 : std::max(worst, off);
  }
  return worst;
}

TEST_P(RotationSweep, the_turn_between_nearly_opposite_or_equal_directions_is_exact_to_a_few_ulp) {
  each_real([&]<class T>(T) {
    for (bool opposite : {true, false})
      for (double least : {epsilon<T> / 100, 1e-7, 1e-3}) {
        const Pairs<T> pairs(opposite, least, 7);
        const auto turn = [](auto&& x, auto&& y) { return quat_between(x, y); };
        std::vector<quaternion<T>> by_host;
        for (std::size_t n = 0; n < pairs.a.size(); ++n) by_host.push_back(turn(pairs.a[n], pairs.b[n]));
        // Half of the error in float64 comes from the measurement.
        const double most = ((sizeof(T) == 8 ? 8 : 4) + device_ulps()) * epsilon<T>;
        EXPECT_LT(worst_turn<T>(pairs, by_host), most) << sizeof(T) << " bytes, from " << least;
        EXPECT_LT(worst_turn<T>(pairs, on_device(device(), turn, pairs.a, pairs.b)), most)
            << sizeof(T) << " bytes, from " << least;
      }
  });
}

TEST_P(RotationSweepGradient, of_a_quaternion_whose_sign_was_turned) {
  Points points;
  for (const quatd& q : {quatd(0.504409, 0.499843, -0.0616634, -0.701374), normalize(quatd(0.51, -0.7, 0.1, 0.49)),
                         normalize(quatd(0.5, 0.1, -0.71, 0.49)), normalize(quatd(-0.8, 0.5, 0.3, 0.1))}) {
    const mat33d m = quat_to_matrix(q);
    points.push_back({});
    for (int k = 0; k < 9; ++k) points.back().push_back(float(m(k / 3, k % 3)));
  }
  expect_gradient(test::of("quat_from_matrix", [](Mat33d m) { return quat_from_matrix(m); }), points);
}

TEST_P(RotationSweepGradient, of_the_turn_between_nearly_opposite_directions) {
  const auto exact = test::of("quat_between", [](Vec3d a, Vec3d b) { return quat_between(a, b); });
  const auto single = test::of("quat_between", [](Vec3 a, Vec3 b) { return quat_between(a, b); });
  for (double apart : {1e-1, 1e-2, 1e-3, 1e-5}) {
    const Pairs<float> pairs(true, 0.09, 3);
    Points points;
    for (std::size_t n = 0; n < 8; ++n) {
      const vec3 a = normalize(pairs.a[n]), b = normalize(cross(a, pairs.b[n])) * float(apart) - a;
      points.push_back({a.x, a.y, a.z, b.x, b.y, b.z});
    }
    // The gradient is as steep as the directions are close. Differences over steps of 2^-12 see no less.
    if (apart > 5e-3) expect_gradient(exact, points, 100 * std::pow(0x1p-12 / apart, 4) + 1e-8);
    expect_close(single, exact, points, 1e-6 / apart);
  }
}

}  // namespace
