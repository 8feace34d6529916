// Random numbers: the same integers and uniform numbers on all devices and the host, and the right distributions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(RandomNumbers);

constexpr int kThreads = 4096, kDraws = 16, kCount = kThreads * kDraws;
constexpr int kSeed = 20;

/// Draws f(rng) in each of kThreads threads, kDraws times; draw k of thread i is at i * kDraws + k.
template <class T, class F>
std::vector<T> drawn(const Device& device, F f, int seed = kSeed) {
  Array<T> out = zeros<T>(device, kCount);
  launch(kernel("draw",
                [=](Arr<T> out, Int seed) {
                  Int i = tid();
                  UInt rng = rand_init(seed, i);
                  for (auto k : range(kDraws)) out[i * kDraws + k] = f(rng);
                }),
         kThreads, out, seed);
  return out.to_vector();
}

/// Makes the same draws on the host.
template <class T, class F>
std::vector<T> drawn_by_host(F f, int seed = kSeed) {
  std::vector<T> out;
  for (int i = 0; i < kThreads; ++i) {
    std::uint32_t rng = rand_init(seed, i);
    for (int k = 0; k < kDraws; ++k) out.push_back(f(rng));
  }
  return out;
}

/// Checks that numbers in [0, 1) are uniform: chi-square over 64 equal parts. The statistic has the mean 63 and the
/// standard deviation 11.2; the seeds are fixed, so that a right generator always passes.
void expect_uniform(const std::vector<double>& values, const char* what) {
  constexpr int kParts = 64;
  double count[kParts] = {};
  for (double v : values) {
    ASSERT_GE(v, -1e-3) << what;
    ASSERT_LE(v, 1 + 1e-3) << what;
    ++count[std::clamp(int(v * kParts), 0, kParts - 1)];
  }
  const double expected = double(values.size()) / kParts;
  double chi2 = 0;
  for (double c : count) chi2 += (c - expected) * (c - expected) / expected;
  EXPECT_LT(chi2, 63 + 4 * 11.2) << what;
  EXPECT_GT(chi2, 63 - 4 * 11.2) << what << ": too even";
}

template <class T, class F>
void expect_uniform_by(const std::vector<T>& samples, F f, const char* what) {
  std::vector<double> values;
  for (const T& s : samples) values.push_back(double(f(s)));
  expect_uniform(values, what);
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = double(a.size());
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ma += a[i] / n, mb += b[i] / n;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

/// Checks a number for each event that is uniform if the probabilities are right: the distribution function below the
/// event, and a random part of its step.
void expect_poisson(const std::vector<unsigned>& events, double mean) {
  const unsigned least = unsigned(std::max(0., mean - 12 * std::sqrt(mean)));
  std::vector<double> probability, below{0}, part;
  for (unsigned k = least; k < mean + 12 * std::sqrt(mean) + 20; ++k) {
    probability.push_back(std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.)));
    below.push_back(below.back() + probability.back());
  }
  std::uint32_t rng = rand_init(kSeed + 1);
  for (unsigned k : events) {
    ASSERT_TRUE(k >= least && k - least < probability.size()) << k;
    part.push_back(below[k - least] + probability[k - least] * randf(rng));
  }
  expect_uniform(part, "poisson");
}

/// A fraction of a turn in [0, 1].
double turn(double x, double y) { return std::atan2(y, x) / (2 * std::numbers::pi) + 0.5; }

template <int N>
void expect_near(const std::vector<vec<N, float>>& a, const std::vector<vec<N, float>>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (int k = 0; k < N; ++k) ASSERT_NEAR(a[i][k], b[i][k], tolerance) << i << " " << k;
}

// sin and cos may be off by 2^-11.
constexpr float kAngleTolerance = 0x1p-10f;

TEST_P(RandomNumbers, states_and_integers_are_those_of_the_published_hash) {
  // pcg(0), pcg(1) and pcg(42), computed apart from this library.
  EXPECT_EQ(rand_init(0), 129708002u);
  EXPECT_EQ(rand_init(1), 2831084092u);
  EXPECT_EQ(rand_init(42), 1223963391u);
  EXPECT_EQ(rand_init(7, 42), rand_init(7u + 1223963391u));
  Array<unsigned> out = zeros<unsigned>(device(), 8);
  launch(kernel("states",
                [](Arr<unsigned> out, Int a, UInt b, Int64 c) {
                  out[0] = rand_init(a);
                  out[1] = rand_init(a, b);
                  out[2] = rand_init(7, b);
                  out[3] = rand_init(a, 7);
                  out[4] = rand_init(c, c);
                  UInt rng = rand_init(42);
                  out[5] = randu(rng);
                  out[6] = UInt(randi(rng));
                  out[7] = rng;
                }),
         1, out, -1, 42u, (std::int64_t(9) << 32) + 5);
  std::uint32_t rng = rand_init(42);
  const std::uint32_t first = randu(rng), second = std::uint32_t(randi(rng));
  EXPECT_EQ(out.to_vector(), (std::vector<unsigned>{rand_init(-1), rand_init(-1, 42), rand_init(7, 42),
                                                    rand_init(-1, 7), rand_init(5, 5), first, second, second}));
  EXPECT_EQ(randu(rand_init(42)), first);  // a state that is used once
  EXPECT_EQ(first, rand_init(1223963391u));
  EXPECT_EQ(second, rand_init(first));
  EXPECT_EQ(rng, second);
}

TEST_P(RandomNumbers, devices_and_host_draw_the_same_integers_and_uniform_numbers) {
  auto integer = [](auto& rng) { return randi(rng); };
  EXPECT_EQ(drawn<int>(device(), integer), drawn_by_host<int>(integer));
  auto integer_between = [](auto& rng) { return randi(rng, -1000, 2000); };
  EXPECT_EQ(drawn<int>(device(), integer_between), drawn_by_host<int>(integer_between));
  auto unsigned_between = [](auto& rng) { return randu(rng, 5u, 4000000000u); };
  EXPECT_EQ(drawn<unsigned>(device(), unsigned_between), drawn_by_host<unsigned>(unsigned_between));
  auto uniform = [](auto& rng) { return randf(rng); };
  EXPECT_EQ(drawn<float>(device(), uniform), drawn_by_host<float>(uniform));
  auto between = [](auto& rng) { return randf(rng, -2.7f, 11.3f); };
  EXPECT_EQ(drawn<float>(device(), between), drawn_by_host<float>(between));
}

TEST_P(RandomNumbers, integers_stay_in_their_range_and_are_equally_likely) {
  const std::vector<int> dice = drawn<int>(device(), [](auto& rng) { return randi(rng, -2, 4); });
  double count[6] = {};
  for (int d : dice) {
    ASSERT_GE(d, -2);
    ASSERT_LT(d, 4);
    ++count[d + 2];
  }
  for (double c : count) EXPECT_NEAR(c, kCount / 6., 4 * std::sqrt(kCount * 5 / 36.));
  for (unsigned u : drawn<unsigned>(device(), [](auto& rng) { return randu(rng, 3000000000u, 3000000002u); }))
    ASSERT_EQ(u >> 1, 1500000000u);
  // The range is all of int, and then an empty one.
  const int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  expect_uniform_by(
      drawn<int>(device(), [=](auto& rng) { return randi(rng, least, most); }),
      [](int v) { return (v + 0x1p31) * 0x1p-32; }, "int");
  for (int v : drawn<int>(device(), [](auto& rng) { return randi(rng, 17, 17); })) ASSERT_EQ(v, 17);
}

TEST_P(RandomNumbers, uniform_numbers_are_uniform_and_uncorrelated_between_draws_and_threads) {
  const std::vector<float> x = drawn<float>(device(), [](auto& rng) { return randf(rng); });
  double sum = 0, squares = 0;
  std::vector<double> all;
  for (float v : x) {
    ASSERT_TRUE(v >= 0 && v < 1 && std::floor(v * 0x1p24f) == v * 0x1p24f) << v;
    sum += v;
    squares += (v - 0.5) * (v - 0.5);
    all.push_back(v);
  }
  expect_uniform(all, "randf");
  EXPECT_NEAR(sum / kCount, 0.5, 4 * std::sqrt(1 / 12. / kCount));
  EXPECT_NEAR(squares / kCount, 1 / 12., 4 * std::sqrt(1 / 180. / kCount));
  // Neighbouring threads at the same draw are compared, and neighbouring draws of the same thread.
  for (int lag : {1, 2, 3, kDraws, 2 * kDraws, 64 * kDraws}) {
    const std::vector<double> a(all.begin(), all.end() - lag), b(all.begin() + lag, all.end());
    EXPECT_NEAR(correlation(a, b), 0, 4 / std::sqrt(double(a.size()))) << lag;
  }
  // Another seed gives numbers that are unrelated.
  std::vector<double> other;
  for (float v : drawn<float>(
           device(), [](auto& rng) { return randf(rng); }, kSeed + 1))
    other.push_back(v);
  EXPECT_NEAR(correlation(all, other), 0, 4 / std::sqrt(double(kCount)));
}

TEST_P(RandomNumbers, the_end_of_a_range_is_never_drawn) {
  // These are the states before the largest and the smallest uniform number.
  std::uint32_t before_largest = 0, before_smallest = 0;
  auto next = [](std::uint32_t state) { return randf(state); };
  while (next(before_largest) != 1 - 0x1p-24f) ++before_largest;
  while (next(before_smallest) != 0) ++before_smallest;
  // 1 + (1 - 2^-24) would round to 2.
  Array<float> out = zeros<float>(device(), 8);
  launch(kernel("ends",
                [](Arr<float> out, UInt large, UInt small) {
                  auto fresh = [](UInt state) { return state; };
                  UInt a = fresh(large), b = fresh(large), c = fresh(large), d = fresh(large);
                  out[0] = randf(a);
                  out[1] = randf(b, 1, 2);
                  out[2] = randf(c, 2, 1);
                  out[3] = randf(d, 5, 5);
                  UInt e = small, f = small, g = small, h = large;
                  out[4] = randf(e);
                  out[5] = randf(f, -1, 2);
                  out[6] = randn(g);
                  out[7] = randn(h);
                }),
         1, out, before_largest, before_smallest);
  const std::vector<float> got = out.to_vector();
  EXPECT_EQ(got[0], 1 - 0x1p-24f);
  EXPECT_EQ(got[1], 1.f);
  EXPECT_EQ(got[2], 2.f);  // likewise downward: 2 - (1 - 2^-24) would round to 1
  EXPECT_EQ(got[3], 5.f);
  EXPECT_EQ(got[4], 0.f);
  EXPECT_EQ(got[5], -1.f);
  EXPECT_LE(std::abs(got[6]), 5.8f);
  EXPECT_LE(std::abs(got[7]), 1e-3f);  // sqrt(-2 log 1)
}

TEST_P(RandomNumbers, randn_is_normally_distributed) {
  auto normal = [](auto& rng) { return randn(rng); };
  const std::vector<float> x = drawn<float>(device(), normal), h = drawn_by_host<float>(normal);
  double moment[5] = {};
  std::vector<double> part;
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], h[i], 6 * kAngleTolerance) << i;
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(double(x[i]), k) / kCount;
    part.push_back(0.5 * std::erfc(-double(x[i]) / std::numbers::sqrt2));
  }
  expect_uniform(part, "randn");
  EXPECT_NEAR(moment[1], 0, 4 * std::sqrt(1. / kCount));
  EXPECT_NEAR(moment[2], 1, 4 * std::sqrt(2. / kCount));
  EXPECT_NEAR(moment[3], 0, 4 * std::sqrt(15. / kCount));
  EXPECT_NEAR(moment[4], 3, 4 * std::sqrt(96. / kCount));
}

TEST_P(RandomNumbers, an_index_is_drawn_with_the_probability_that_the_cdf_gives) {
  // The first, the fourth and the last element but one have the probability 0; the last gets the rest.
  const std::vector<float> cdf{0, 0.25f, 0.375f, 0.375f, 0.875f, 0.875f, 0.9f};
  const double probability[] = {0, 0.25, 0.125, 0, 0.5, 0, 0.125};
  Array<float> table(device(), cdf);
  Array<int> out = zeros<int>(device(), 2 * kCount);
  launch(kernel("cdf",
                [](Arr<const float> cdf, Arr<float> again, Arr<int> out) {
                  Int i = tid();
                  UInt rng = rand_init(kSeed, i), same = rng;
                  out[2 * i] = sample_cdf(rng, cdf);
                  out[2 * i + 1] = sample_cdf(same, again);
                }),
         kCount, table, table, out);
  const std::vector<int> got = out.to_vector();
  double count[7] = {};
  for (int i = 0; i < kCount; ++i) {
    std::uint32_t rng = rand_init(kSeed, i);
    const int index = got[std::size_t(2 * i)];
    ASSERT_EQ(index, sample_cdf(rng, cdf)) << i;
    ASSERT_EQ(index, got[std::size_t(2 * i + 1)]);
    ++count[index];
  }
  for (int k = 0; k < 7; ++k) {
    const double p = probability[k];
    EXPECT_NEAR(count[k], p * kCount, 4 * std::sqrt(kCount * p * (1 - p))) << k;
  }
  std::uint32_t rng = 1;
  EXPECT_EQ(sample_cdf(rng, std::vector<float>{}), -1);
  EXPECT_EQ(sample_cdf(rng, std::vector<float>{0.f}), 0);
}

TEST_P(RandomNumbers, points_of_the_plane_are_uniform_where_they_are_meant_to_be) {
  auto triangle = [](auto& rng) { return sample_triangle(rng); };
  const std::vector<vec2> t = drawn<vec2>(device(), triangle);
  expect_near<2>(t, drawn_by_host<vec2>(triangle), 1e-5f);
  for (const vec2& p : t) ASSERT_TRUE(p.x >= 0 && p.y >= 0 && p.x + p.y <= 1 + 1e-6f) << p.x << " " << p.y;
  // 1 - u is the square root of a uniform number, and v / (1 - u) is uniform.
  expect_uniform_by(
      t, [](vec2 p) { return (1 - double(p.x)) * (1 - double(p.x)); }, "triangle u");
  expect_uniform_by(
      t, [](vec2 p) { return p.x < 1 ? p.y / (1 - double(p.x)) : 0; }, "triangle v");

  auto ring = [](auto& rng) { return sample_unit_ring(rng); };
  const std::vector<vec2> r = drawn<vec2>(device(), ring);
  expect_near<2>(r, drawn_by_host<vec2>(ring), kAngleTolerance);
  for (const vec2& p : r) ASSERT_NEAR(std::hypot(p.x, p.y), 1, 2 * kAngleTolerance);
  expect_uniform_by(
      r, [](vec2 p) { return turn(p.x, p.y); }, "ring");

  auto disk = [](auto& rng) { return sample_unit_disk(rng); };
  const std::vector<vec2> d = drawn<vec2>(device(), disk);
  expect_near<2>(d, drawn_by_host<vec2>(disk), kAngleTolerance);
  expect_uniform_by(
      d, [](vec2 p) { return double(p.x) * p.x + double(p.y) * p.y; }, "disk radius");
  expect_uniform_by(
      d, [](vec2 p) { return turn(p.x, p.y); }, "disk angle");

  auto square = [](auto& rng) { return sample_unit_square(rng); };
  const std::vector<vec2> s = drawn<vec2>(device(), square);
  EXPECT_EQ(s, drawn_by_host<vec2>(square));
  for (int k = 0; k < 2; ++k)
    expect_uniform_by(
        s, [=](vec2 p) { return p[k] + 0.5; }, "square");
}

TEST_P(RandomNumbers, points_of_space_are_uniform_where_they_are_meant_to_be) {
  auto radius = [](vec3 p) { return std::sqrt(double(p.x) * p.x + double(p.y) * p.y + double(p.z) * p.z); };
  auto angle = [](vec3 p) { return turn(p.x, p.y); };

  auto sphere = [](auto& rng) { return sample_unit_sphere_surface(rng); };
  const std::vector<vec3> s = drawn<vec3>(device(), sphere);
  expect_near<3>(s, drawn_by_host<vec3>(sphere), kAngleTolerance);
  for (const vec3& p : s) ASSERT_NEAR(radius(p), 1, 2 * kAngleTolerance);
  expect_uniform_by(
      s, [](vec3 p) { return (double(p.z) + 1) / 2; }, "sphere height");
  expect_uniform_by(s, angle, "sphere angle");

  auto ball = [](auto& rng) { return sample_unit_sphere(rng); };
  const std::vector<vec3> b = drawn<vec3>(device(), ball);
  expect_near<3>(b, drawn_by_host<vec3>(ball), 2 * kAngleTolerance);
  expect_uniform_by(
      b, [=](vec3 p) { return std::pow(radius(p), 3); }, "ball radius");
  expect_uniform_by(
      b, [=](vec3 p) { return radius(p) > 0 ? (p.z / radius(p) + 1) / 2 : 0.5; }, "ball height");
  expect_uniform_by(b, angle, "ball angle");

  auto dome = [](auto& rng) { return sample_unit_hemisphere_surface(rng); };
  const std::vector<vec3> h = drawn<vec3>(device(), dome);
  expect_near<3>(h, drawn_by_host<vec3>(dome), kAngleTolerance);
  for (const vec3& p : h) ASSERT_TRUE(p.z >= 0 && std::abs(radius(p) - 1) < 2 * kAngleTolerance);
  expect_uniform_by(
      h, [](vec3 p) { return double(p.z); }, "hemisphere height");
  expect_uniform_by(h, angle, "hemisphere angle");

  auto half_ball = [](auto& rng) { return sample_unit_hemisphere(rng); };
  const std::vector<vec3> c = drawn<vec3>(device(), half_ball);
  expect_near<3>(c, drawn_by_host<vec3>(half_ball), 2 * kAngleTolerance);
  for (const vec3& p : c) ASSERT_GE(p.z, 0);
  expect_uniform_by(
      c, [=](vec3 p) { return std::pow(radius(p), 3); }, "half ball radius");
  expect_uniform_by(
      c, [=](vec3 p) { return radius(p) > 0 ? p.z / radius(p) : 0.5; }, "half ball height");
  expect_uniform_by(c, angle, "half ball angle");

  auto cube = [](auto& rng) { return sample_unit_cube(rng); };
  const std::vector<vec3> q = drawn<vec3>(device(), cube);
  EXPECT_EQ(q, drawn_by_host<vec3>(cube));
  for (int k = 0; k < 3; ++k)
    expect_uniform_by(
        q, [=](vec3 p) { return p[k] + 0.5; }, "cube");
}

TEST_P(RandomNumbers, points_of_the_hypercube_are_uniform) {
  auto hypercube = [](auto& rng) { return sample_unit_hypercube(rng); };
  const std::vector<vec4> h = drawn<vec4>(device(), hypercube);
  EXPECT_EQ(h, drawn_by_host<vec4>(hypercube));
  for (int k = 0; k < 4; ++k)
    expect_uniform_by(
        h, [=](vec4 p) { return p[k] + 0.5; }, "hypercube");
}

TEST_P(RandomNumbers, poisson_has_the_probabilities_of_its_mean) {
  for (float mean : {0.25f, 3.f, 9.75f, 10.f, 32.f, 1000.f, 1e6f}) {
    auto events = [=](auto& rng) { return poisson(rng, mean); };
    const std::vector<unsigned> x = drawn<unsigned>(device(), events), h = drawn_by_host<unsigned>(events);
    double sum = 0, squares = 0;
    std::size_t same = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      same += x[i] == h[i];
      sum += x[i];
      squares += (x[i] - double(mean)) * (x[i] - double(mean));
    }
    expect_poisson(x, mean);
    EXPECT_NEAR(sum / kCount, mean, 4 * std::sqrt(mean / kCount)) << mean;
    EXPECT_NEAR(squares / kCount / mean, 1, 4 * std::sqrt((2 + 1 / mean) / kCount)) << mean;
    EXPECT_GT(double(same), 0.99 * kCount) << mean << ": unlike the host";
  }
}

TEST(RandomNumbersOnTheHost, poisson_is_right_in_the_third_digit) {
  // There are enough draws to show an error in the constants of the rejection.
  for (float mean : {4.f, 10.f, 12.5f, 50.f}) {
    std::vector<unsigned> events;
    for (int i = 0; i < 2000; ++i) {
      std::uint32_t rng = rand_init(kSeed, i);
      for (int k = 0; k < 1000; ++k) events.push_back(poisson(rng, mean));
    }
    expect_poisson(events, mean);
  }
}

TEST_P(RandomNumbers, poisson_takes_any_number_for_a_mean) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> means{0, -1, -inf, nan, 0x1p31f, 1e30f, inf};
  Array<float> mean(device(), means);
  Array<unsigned> out = zeros<unsigned>(device(), 100 * 7);
  launch(kernel("means",
                [](Arr<const float> mean, Arr<unsigned> out) {
                  auto [i, j] = tid<2>();
                  UInt rng = rand_init(i, j);
                  out[i * 100 + j] = poisson(rng, mean[i]);
                }),
         {7, 100}, mean, out);
  const std::vector<unsigned> got = out.to_vector();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (i < 400)
      ASSERT_EQ(got[i], 0u) << i;
    else
      ASSERT_NEAR(double(got[i]), 0x1p31, 6 * std::sqrt(0x1p31)) << i;
}

TEST_P(RandomNumbers, a_host_state_inside_traced_control_flow_is_refused) {
  Array<float> out = zeros<float>(device(), 4);
  auto k = kernel("frozen", [](Arr<float> out) {
    auto rng = rand_init(42);
    out[0] = randf(rng);
    for (auto i : range(4)) out[i] += randf(rng);  // the refused line
  });
  const std::string message = error_of([&] { launch(k, 1, out); });
  expect_contains(message, "frozen");
  expect_contains(message, "UInt");
  expect_contains(message, "library_random_test.cpp:" + std::to_string(k.loc().line + 3));
}

TEST_P(RandomNumbers, what_is_recorded_names_the_line_of_the_call) {
  auto k = kernel("lines", [](Arr<float> out, Arr<const float> cdf) {
    Int i = tid();
    UInt rng = rand_init(42, i);
    out[i] = randn(rng) + randf(rng, 1, 2) + Float(sample_cdf(rng, cdf)) + Float(poisson(rng, 20)) +
             length(sample_unit_sphere(rng));
  });
  for (const ir::Inst& inst : k.trace().insts)
    if (inst.file) expect_contains(inst.file, "library_random_test.cpp");
}

}  // namespace
