// Random numbers between bounds of any distance, and distributions without an element.
#include <cmath>
#include <cstring>
#include <limits>

#include "../check_gradient.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(RandomRanges);
GRADIENT_TEST(RandomRangesGradient);

constexpr int kDraws = 20'000;
constexpr float kMost = std::numeric_limits<float>::max();

TEST_P(RandomRanges, of_any_finite_ends_are_uniform_between_them) {
  const std::vector<vec2> ends{{-3e38f, 3e38f}, {-kMost, kMost}, {kMost, -kMost}, {-1, kMost},     {3e38f, -1e38f},
                               {-2, 5},         {0, 1},          {1e-40f, 1},     {-1e38f, 1e38f}, {kMost, kMost}};
  const std::int64_t rows = std::int64_t(ends.size());
  Array<float, 2> out = zeros<float, 2>(device(), {rows, kDraws});
  launch(kernel("between",
                [](Arr<const vec2> ends, Arr<float, 2> out) {
                  auto [row, i] = tid<2>();
                  UInt rng = rand_init(row, i);
                  out(row, i) = randf(rng, ends[row].x, ends[row].y);
                }),
         {rows, kDraws}, Array<vec2>(device(), ends), out);
  const std::vector<float> got = out.to_vector();
  for (std::int64_t row = 0; row < rows; ++row) {
    const double lo = ends[std::size_t(row)].x, hi = ends[std::size_t(row)].y;
    double mean = 0, square = 0;
    for (int i = 0; i < kDraws; ++i) {
      const float x = got[std::size_t(row * kDraws + i)];
      std::uint32_t rng = rand_init(row, i), same = rng;
      const float by_host = randf(rng, float(lo), float(hi));
      ASSERT_EQ(std::memcmp(&x, &by_host, 4), 0) << x << ", on the host " << by_host;
      ASSERT_TRUE(x >= std::min(lo, hi) && x <= std::max(lo, hi)) << x << " is not in " << lo << " .. " << hi;
      ASSERT_TRUE(x != hi || lo == hi);
      const double exact = (hi - lo) * double(randf(same)) + lo;
      // The number is rounded three times, each time by up to half an ulp.
      const double expected = float(exact) == hi ? lo : exact;
      ASSERT_NEAR(double(x), expected, std::abs(hi - lo) * 3 * 0x1p-24);
      const double u = hi == lo ? 0.5 : (x - lo) / (hi - lo);
      mean += u / kDraws, square += (u - 0.5) * (u - 0.5) / kDraws;
    }
    EXPECT_NEAR(mean, 0.5, 4 * std::sqrt(1 / 12. / kDraws)) << lo << " " << hi;
    EXPECT_NEAR(square, lo == hi ? 0 : 1 / 12., 4 * std::sqrt(1 / 180. / kDraws)) << lo << " " << hi;
  }
}

TEST_P(RandomRanges, a_distribution_without_elements_gives_minus_one) {
  const Array<float> cdf(device(), {0.5f, 1.f}), none = zeros<float>(device(), 0);
  const Array<float, 2> rows = zeros<float, 2>(device(), {3, 2});
  Array<int> out = full<int>(device(), 3, 7);
  const auto draw = kernel("draw", [](Arr<const float> cdf, Arr<const float, 2> rows, Arr<int> out, Int n) {
    UInt rng = rand_init(1);
    out[0] = sample_cdf(rng, cdf.slice(0, n));
    out[1] = sample_cdf(rng, cdf.slice(2, 2));
    out[2] = select(sample_cdf(rng, rows[1]) == 1, 1, 0);
  });
  launch(draw, 1, cdf, rows, out, 0);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{-1, -1, 1}));
  std::uint32_t rng = rand_init(1);
  EXPECT_EQ(sample_cdf(rng, std::vector<float>{}), -1);
  // The launch refuses an empty array, as for every kernel that reads one.
  expect_contains(error_of([&] { launch(draw, 1, none, rows, out, 0); }), "is an empty array");
}

TEST_P(RandomRangesGradient, of_numbers_between_ends_are_the_shares_of_the_ends) {
  const auto between = [](auto scale) {
    return [scale](auto lo, auto hi) {
      UInt rng = rand_init(3);
      return randf(rng, lo * scale, hi * scale) * (1 / scale);
    };
  };
  const auto near = test::of("randf", [=](Float lo, Float hi) { return between(1.f)(lo, hi); });
  const auto far = test::of("randf", [=](Float lo, Float hi) { return between(2e38f)(lo, hi); });
  std::uint32_t rng = rand_init(3);
  const double u = randf(rng);
  const auto exact = test::of("share", [u](Double lo, Double hi) { return lo * (1 - u) + hi * u; });
  const test::Points points{{-1, 1}, {1, -1}, {-1.5, 1.25}, {0.25, 1.5}};
  expect_close(near, exact, points);
  expect_close(far, exact, points);
}

}  // namespace
