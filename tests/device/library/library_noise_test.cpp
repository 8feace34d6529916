// Noise: the same bits on all devices and the host; zeros, range, smoothness, periods, and fields without divergence.
// Properties of the function, rather than of a device, are tested on the host's face.
#include <cmath>
#include <cstring>

#include "../device_test.h"

using namespace weft;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Noise);

template <int N, class T>
using Point = std::conditional_t<N == 1, T, vec<N, T>>;

template <int N, class T>
T& coordinate(Point<N, T>& p, [[maybe_unused]] int k) {
  if constexpr (N == 1)
    return p;
  else
    return p[k];
}

/// Points within +-20, multiples of 2^-12.
template <int N, class T>
std::vector<Point<N, T>> points(int count, int seed) {
  std::vector<Point<N, T>> out;
  std::uint32_t rng = rand_init(seed);
  for (int i = 0; i < count; ++i) {
    Point<N, T> p{};
    for (int k = 0; k < N; ++k) coordinate<N, T>(p, k) = T(randi(rng, -20 << 12, 20 << 12)) / T(1 << 12);
    out.push_back(p);
  }
  return out;
}

template <class F>
void for_each_dimension(F f) {
  f(std::integral_constant<int, 1>());
  f(std::integral_constant<int, 2>());
  f(std::integral_constant<int, 3>());
  f(std::integral_constant<int, 4>());
}

/// Evaluates f at every point on the device; f is a function of (seed, point).
template <class R, int N, class T, class F>
std::vector<R> on_device(const Device& device, const std::vector<Point<N, T>>& at, F f) {
  Array<Point<N, T>> in(device, at);
  Array<R> out = zeros<R>(device, std::int64_t(at.size()));
  launch(kernel("noise",
                [=](Arr<const Point<N, T>> in, Arr<R> out, UInt seed) {
                  Int i = tid();
                  out[i] = f(seed, in[i]);
                }),
         std::int64_t(at.size()), in, out, 9u);
  return out.to_vector();
}

template <class R, int N, class T, class F>
std::vector<R> by_host(const std::vector<Point<N, T>>& at, F f) {
  std::vector<R> out;
  for (const Point<N, T>& p : at) out.push_back(f(9u, p));
  return out;
}

/// pnoise with the same period for each coordinate.
template <int N, class A, class P, class Q>
auto periodic(const A& seed, const P& p, const Q& period) {
  if constexpr (N == 1)
    return pnoise(seed, p, period);
  else if constexpr (N == 2)
    return pnoise(seed, p, period, period);
  else if constexpr (N == 3)
    return pnoise(seed, p, period, period, period);
  else
    return pnoise(seed, p, period, period, period, period);
}

TEST_P(Noise, devices_and_host_compute_the_same_bits) {
  auto check = [&]<class T>(T) {
    for_each_dimension([&](auto n) {
      constexpr int N = n;
      const auto at = points<N, T>(500, N);
      auto plain = [](const auto& seed, const auto& p) { return noise(seed, p); };
      EXPECT_EQ((on_device<T, N, T>(device(), at, plain)), (by_host<T, N, T>(at, plain))) << N;
      auto repeated = [](const auto& seed, const auto& p) { return periodic<N>(seed, p, 3); };
      EXPECT_EQ((on_device<T, N, T>(device(), at, repeated)), (by_host<T, N, T>(at, repeated))) << N;
      if constexpr (N > 1) {
        using R = vec<N == 2 ? 2 : 3, T>;
        auto curl = [](const auto& seed, const auto& p) { return curlnoise(seed, p); };
        EXPECT_EQ((on_device<R, N, T>(device(), at, curl)), (by_host<R, N, T>(at, curl))) << N;
        auto several = [](const auto& seed, const auto& p) { return curlnoise(seed, p, 4, 1.75, 0.625); };
        EXPECT_EQ((on_device<R, N, T>(device(), at, several)), (by_host<R, N, T>(at, several))) << N;
      }
    });
  };
  check(0.f);
  check(0.);
}

TEST_P(Noise, it_is_zero_at_whole_coordinates_and_nowhere_far_beyond_its_range) {
  for_each_dimension([&](auto n) {
    constexpr int N = n;
    auto plain = [](const auto& seed, const auto& p) { return noise(seed, p); };
    auto at = points<N, float>(20000, 3);
    double sum = 0, squares = 0, most = 0;
    for (float v : on_device<float, N, float>(device(), at, plain)) {
      ASSERT_LE(std::abs(v), std::sqrt(float(N)) / 2);
      sum += v / 20000;
      squares += double(v) * v / 20000;
      most = std::max(most, double(std::abs(v)));
    }
    EXPECT_NEAR(sum, 0, 4 * std::sqrt(squares / 20000)) << N;
    EXPECT_GT(squares, 0.02) << N;
    EXPECT_GT(most, 0.5 * std::sqrt(double(N)) / 2) << N;
    for (auto& p : at)
      for (int k = 0; k < N; ++k) coordinate<N, float>(p, k) = std::floor(coordinate<N, float>(p, k));
    for (float v : on_device<float, N, float>(device(), at, plain)) ASSERT_EQ(v, 0.f);
    // Beyond the range of the lattice, floats are whole: the noise is still 0, and nothing crashes.
    for (auto& p : at)
      for (int k = 0; k < N; ++k) coordinate<N, float>(p, k) *= 1e30f;
    for (float v : on_device<float, N, float>(device(), at, plain)) ASSERT_EQ(v, 0.f);
  });
}

TEST(NoiseOnTheHost, its_first_and_second_derivatives_pass_the_borders_of_cells) {
  for_each_dimension([&](auto n) {
    constexpr int N = n;
    constexpr double h = 1e-4;
    double jump1 = 0, jump2 = 0, bend = 0;
    for (auto p : points<N, double>(300, 5))
      for (int k = 0; k < N; ++k) {
        auto at = [&](double x) {
          auto q = p;
          coordinate<N, double>(q, k) = x;
          return noise(4, q);
        };
        const double border = std::floor(coordinate<N, double>(p, k));
        auto slope = [&](double x) { return (at(x + h) - at(x - h)) / (2 * h); };
        auto curvature = [&](double x) { return (at(x + h) - 2 * at(x) + at(x - h)) / (h * h); };
        jump1 = std::max(jump1, std::abs(slope(border + 2 * h) - slope(border - 2 * h)));
        jump2 = std::max(jump2, std::abs(curvature(border + 2 * h) - curvature(border - 2 * h)));
        bend = std::max(bend, std::abs(curvature(border + 0.25)));
      }
    // Continuous derivatives change by a step of 4 h times the next derivative, which is below 200.
    EXPECT_LT(jump1, 4 * h * 30) << N;
    EXPECT_LT(jump2, 4 * h * 200) << N;
    EXPECT_GT(bend, 1) << N;  // the second derivative is large elsewhere
  });
}

TEST_P(Noise, seeds_and_places_give_unrelated_functions) {
  for_each_dimension([&](auto n) {
    constexpr int N = n;
    const auto at = points<N, float>(4000, 6);
    auto with_seed = [&](int seed) {
      return on_device<float, N, float>(device(), at, [=](const auto&, const auto& p) { return noise(seed, p); });
    };
    auto moved = [&](int axis, int by) {
      auto to = at;
      for (auto& p : to) coordinate<N, float>(p, axis) += float(by);
      return on_device<float, N, float>(device(), to, [=](const auto&, const auto& p) { return noise(0, p); });
    };
    const std::vector<float> first = with_seed(0);
    auto correlation = [&](const std::vector<float>& other) {
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        ab += double(first[i]) * other[i];
        aa += double(first[i]) * first[i];
        bb += double(other[i]) * other[i];
      }
      return ab / std::sqrt(aa * bb);
    };
    EXPECT_NEAR(correlation(with_seed(0)), 1, 1e-6);
    // On the line there are only 40 cells, so there are fewer independent values than points.
    const double limit = N == 1 ? 0.7 : N == 2 ? 0.15 : 4 / std::sqrt(4000.);
    for (int seed : {1, 2, 3, 256, 65536, -1}) EXPECT_NEAR(correlation(with_seed(seed)), 0, limit) << N << " " << seed;
    for (int axis = 0; axis < N; ++axis)
      for (int by : {2, 16, 256})  // neighbouring cells share corners
        EXPECT_NEAR(correlation(moved(axis, by)), 0, limit) << N << " " << axis << " " << by;
  });
}

TEST_P(Noise, periodic_noise_repeats_exactly) {
  for_each_dimension([&](auto n) {
    constexpr int N = n;
    const auto at = points<N, float>(500, 7);
    for (int period : {1, 2, 5, 8}) {
      auto repeated = [=](const auto& seed, const auto& p) { return periodic<N>(seed, p, period); };
      const std::vector<float> here = on_device<float, N, float>(device(), at, repeated);
      for (int axis = 0; axis < N; ++axis) {
        auto shifted = at;
        for (auto& p : shifted) coordinate<N, float>(p, axis) += float(-3 * period);
        EXPECT_EQ((on_device<float, N, float>(device(), shifted, repeated)), here) << N << " " << period << " " << axis;
        if (period == 1) continue;
        for (auto& p : shifted) coordinate<N, float>(p, axis) += 1.f;
        EXPECT_NE((on_device<float, N, float>(device(), shifted, repeated)), here) << "no shorter period";
      }
    }
    auto with_period = [&](int period) {
      return on_device<float, N, float>(device(), at,
                                        [=](const auto& seed, const auto& p) { return periodic<N>(seed, p, period); });
    };
    EXPECT_EQ(with_period(0), with_period(1));
    EXPECT_EQ(with_period(-7), with_period(1));
  });
}

TEST_P(Noise, each_coordinate_has_a_period_of_its_own_which_may_be_traced) {
  Array<float> out = zeros<float>(device(), 6);
  launch(kernel("periods",
                [](Arr<float> out, Int a, Int64 b) {
                  Vec3 p(0.25f, 1.5f, 2.75f);
                  out[0] = pnoise(1, p, 2, 3, 4);
                  out[1] = pnoise(1, p + Vec3(2, 3, 4), 2, 3, 4);
                  out[2] = pnoise(1, p + Vec3(2, -6, 8), a, b, 4);
                  out[3] = pnoise(1, p + Vec3(3, 0, 0), 2, 3, 4);
                  out[4] = pnoise(1, p + Vec3(0, 2, 0), 2, 3, 4);
                  out[5] = pnoise(1, p + Vec3(0, 0, 3), 2, 3, 4);
                }),
         1, out, 2, 3);
  const std::vector<float> v = out.to_vector();
  EXPECT_EQ(v[0], v[1]);
  EXPECT_EQ(v[0], v[2]);
  for (int k = 3; k < 6; ++k) EXPECT_NE(v[0], v[std::size_t(k)]);
  EXPECT_EQ(v[0], pnoise(1, vec3{0.25f, 1.5f, 2.75f}, 2, 3, 4));
}

TEST(NoiseOnTheHost, gradients_at_whole_coordinates_are_unit_vectors_without_a_preferred_direction) {
  for_each_dimension([&](auto n) {
    constexpr int N = n, kCount = 40000;
    constexpr double h = 1e-6;
    double mean[N] = {}, product[N][N] = {};
    for (auto p : points<N, double>(kCount, 11)) {
      for (int k = 0; k < N; ++k) coordinate<N, double>(p, k) = std::floor(1000 * coordinate<N, double>(p, k));
      double g[N], squared = 0;
      for (int k = 0; k < N; ++k) {
        auto q = p;
        coordinate<N, double>(q, k) += h;
        g[k] = noise(5, q) / h;
        squared += g[k] * g[k];
      }
      if (N == 1)
        ASSERT_LE(squared, 1);
      else
        ASSERT_NEAR(squared, 1, 1e-4);
      for (int k = 0; k < N; ++k) {
        mean[k] += g[k] / kCount;
        for (int l = 0; l < N; ++l) product[k][l] += g[k] * g[l] / kCount;
      }
    }
    // The limit is four standard deviations; on the line lengths are uniform up to 1.
    const double limit = 4 * 0.6 / std::sqrt(double(kCount));
    for (int k = 0; k < N; ++k) {
      EXPECT_NEAR(mean[k], 0, limit) << N;
      for (int l = 0; l < N; ++l) EXPECT_NEAR(product[k][l], k != l ? 0 : N == 1 ? 1 / 3. : 1. / N, limit) << N;
    }
  });
}

TEST(NoiseOnTheHost, curl_noise_flows_as_much_in_one_direction_as_in_another) {
  for_each_dimension([&](auto n) {
    constexpr int N = n, D = N == 2 ? 2 : 3, kCount = 10000;
    if constexpr (N > 1) {
      double product[D][D] = {};
      for (const auto& p : points<N, double>(kCount, 12)) {
        const auto v = curlnoise(6, p);
        for (int k = 0; k < D; ++k)
          for (int l = 0; l < D; ++l) product[k][l] += v[k] * v[l] / kCount;
      }
      for (int k = 0; k < D; ++k)
        for (int l = 0; l < D; ++l)
          EXPECT_NEAR(product[k][l] / product[0][0], k == l ? 1 : 0, N == 2 ? 0.15 : 0.1) << N << " " << k << " " << l;
    }
  });
}

TEST(NoiseOnTheHost, curl_noise_has_no_divergence) {
  constexpr double h = 1e-4;
  for_each_dimension([&](auto n) {
    constexpr int N = n;
    if constexpr (N > 1) {
      constexpr int D = N == 2 ? 2 : 3;
      for (int octaves : {1, 3}) {
        double most = 0, speed = 0, rate = 0;
        for (const auto& p : points<N, double>(300, 8)) {
          double divergence = 0;
          for (int k = 0; k < D; ++k) {
            auto lower = p, upper = p;
            lower[k] -= h;
            upper[k] += h;
            const double part = (curlnoise(2, upper, octaves)[k] - curlnoise(2, lower, octaves)[k]) / (2 * h);
            divergence += part;
            rate = std::max(rate, std::abs(part));
          }
          most = std::max(most, std::abs(divergence));
          speed = std::max(speed, length(curlnoise(2, p, octaves)));
        }
        // The error is h^2 / 6 times the third derivative, which the third octave has 4^2 times larger.
        EXPECT_LT(most, 2e-5) << N << " " << octaves;
        EXPECT_GT(rate, 0.5) << N;
        EXPECT_GT(speed, 0.5) << N;
      }
    }
  });
}

TEST(NoiseOnTheHost, in_the_plane_curl_noise_is_the_turned_gradient_of_noise) {
  constexpr double h = 1e-5;
  for (const vec2d& p : points<2, double>(300, 9)) {
    auto slope = [&](const vec2d& d) { return (noise(3, p + d) - noise(3, p - d)) / (2 * h); };
    const vec2d curl = curlnoise(3, p);
    ASSERT_NEAR(curl.x, slope({0., h}), 1e-7);
    ASSERT_NEAR(curl.y, -slope({h, 0.}), 1e-7);
  }
}

TEST_P(Noise, octaves_add_finer_and_weaker_fields) {
  const auto at = points<3, float>(200, 10);
  auto field = [&](auto octaves, float lacunarity, float gain) {
    return on_device<vec3, 3, float>(
        device(), at, [=](const auto& seed, const auto& p) { return curlnoise(seed, p, octaves(), lacunarity, gain); });
  };
  auto one = [] { return 1; };
  const auto single = field(one, 2, 0.5f);
  EXPECT_EQ(field([] { return Int(1); }, 2, 0.5f), single) << "a traced number of octaves";
  EXPECT_EQ(field([] { return 3u; }, 2, 0), single) << "no gain";
  EXPECT_EQ(field([] { return 0; }, 2, 0.5f), std::vector<vec3>(at.size())) << "no octave";
  EXPECT_EQ(field([] { return -2; }, 2, 0.5f), std::vector<vec3>(at.size())) << "fewer than none";
  const auto two = field([] { return 2; }, 2, 0.5f), strong = field([] { return Int64(2); }, 2, 1);
  double ratio = 0, most = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    // The part of the second octave is proportional to its gain.
    for (int k = 0; k < 3; ++k) ASSERT_NEAR(strong[i][k] - single[i][k], 2 * (two[i][k] - single[i][k]), 1e-5f);
    ratio += length(strong[i] - single[i]) / length(single[i]) / double(at.size());
    most = std::max(most, double(length(strong[i] - single[i])));
  }
  EXPECT_GT(most, 0.5);
  EXPECT_GT(ratio, 0.5);
}

TEST_P(Noise, lacunarity_and_gain_may_be_traced) {
  Array<vec2> out = zeros<vec2>(device(), 3);
  launch(kernel("traced",
                [](Arr<vec2> out, Vec2 p, Float lacunarity, Float gain) {
                  out[0] = curlnoise(1, p, 3, lacunarity, gain);
                  out[1] = curlnoise(1, p, 3, 1.5, gain);
                  out[2] = curlnoise(1, vec2{0.2f, 0.7f}, 3, lacunarity, 0.25);
                }),
         1, out, vec2{0.2f, 0.7f}, 1.5f, 0.25f);
  const vec2 of_host = curlnoise(1, vec2{0.2f, 0.7f}, 3, 1.5, 0.25);
  const std::vector<vec2> found = out.to_vector();
  // A driver may compute constants itself, with its own rounding: NVIDIA's does.
  const float off = device().is_software() ? 0 : 1e-6f;
  for (std::size_t k = 0; k < found.size(); ++k)
    for (int d = 0; d < 2; ++d) EXPECT_NEAR(found[k][d], of_host[d], off) << k;
}

TEST_P(Noise, operands_of_both_faces_mix_and_elements_may_stand_for_values) {
  Array<float> out = zeros<float>(device(), 6);
  Array<vec2> at(device(), std::vector<vec2>{{0.3f, 0.6f}});
  launch(kernel("mixed",
                [](Arr<float> out, Arr<const vec2> at, UInt seed, Float x) {
                  out[0] = noise(7, x);
                  out[1] = noise(seed, 0.3f);
                  out[2] = noise(seed, 0.3);
                  out[3] = noise(seed, vec2{0.3f, 0.6f});
                  out[4] = noise(7, at[0]);
                  out[5] = noise(7, at[0].x);
                }),
         1, out, at, 7u, 0.3f);
  const float line = noise(7, 0.3f), plane = noise(7u, vec2{0.3f, 0.6f});
  EXPECT_EQ(out.to_vector(), (std::vector<float>{line, line, line, plane, plane, line}));
}

TEST_P(Noise, what_is_recorded_names_the_line_of_the_call) {
  auto k = kernel("lines", [](Arr<Float::host> out, Arr<const vec4> at, Int octaves) {
    Int i = tid();
    out[i] = pnoise(1, at[i], 2, 3, 4, 5) + length(curlnoise(1, at[i], octaves));
  });
  const ir::Module module = k.trace();
  EXPECT_GT(module.insts.size(), 500u);
  for (const ir::Inst& inst : module.insts)
    if (inst.file) expect_contains(inst.file, "library_noise_test.cpp");
}

}  // namespace
