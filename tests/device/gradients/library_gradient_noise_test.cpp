// Gradients of noise with respect to its place, and of random numbers with respect to their bounds.
#include "../check_gradient.h"

using namespace weft;
using namespace weft::test;

namespace {

GRADIENT_TEST(NoiseGradient);

TEST_P(NoiseGradient, of_noise_by_its_place) {
  // At whole coordinates the third derivative jumps, so differences are less exact there.
  expect_gradient(of("noise 1", [](Double x) { return noise(7, x); }), random_points(1, -9, 9));
  expect_gradient(of("noise 2", [](Vec2d x) { return noise(7, x); }), random_points(2, -9, 9));
  expect_gradient(of("noise 3", [](Vec3d x) { return noise(7, x); }), random_points(3, -9, 9));
  expect_gradient(of("noise 4", [](Vec4d x) { return noise(7, x); }), random_points(4, -9, 9));
  expect_gradient(of("noise 3", [](Vec3d x) { return noise(7, x); }), {{0, 0, 0}, {1, -2, 3}}, 1e-6);
}

TEST_P(NoiseGradient, of_periodic_noise) {
  expect_gradient(of("pnoise 1", [](Double x) { return pnoise(7, x, 3); }), random_points(1, -9, 9));
  expect_gradient(of("pnoise 2", [](Vec2d x) { return pnoise(7, x, 3, 4); }), random_points(2, -9, 9));
  expect_gradient(of("pnoise 3", [](Vec3d x) { return pnoise(7, x, 3, 4, 5); }), random_points(3, -9, 9));
  expect_gradient(of("pnoise 4", [](Vec4d x) { return pnoise(7, x, 3, 4, 5, 6); }), random_points(4, -9, 9));
}

TEST_P(NoiseGradient, of_curls) {
  expect_gradient(of("curlnoise 2", [](Vec2d x) { return curlnoise(7, x); }), random_points(2, -9, 9), 1e-7);
  expect_gradient(of("curlnoise 3", [](Vec3d x) { return curlnoise(7, x); }), random_points(3, -9, 9), 1e-7);
  expect_gradient(of("curlnoise 4", [](Vec4d x) { return curlnoise(7, x); }), random_points(4, -9, 9, 2), 1e-7);
}

TEST_P(NoiseGradient, of_octaves_by_place_lacunarity_and_gain) {
  // The number of octaves, and so of rounds of the loop, is known when the kernel runs.
  expect_gradient(of("octaves", [](Vec2d x, Double lacunarity,
                                   Double gain) { return curlnoise(7, x, Int(gain * 4.0), lacunarity, gain); }),
                  {{0.3, 0.6, 1.9, 0.6}, {2.2, -1.4, 2.1, 0.8}}, 1e-7);
}

TEST_P(NoiseGradient, of_random_numbers_by_their_bounds) {
  // The number is lo + u (hi - lo), with the gradients 1 - u and u, where u is this state's number in [0, 1).
  const auto u = [](int i) {
    std::uint32_t rng = rand_init(5, i);
    return double(randf(rng));
  };
  const auto drawn = of("randf", [](Float lo, Float hi) {
    UInt rng = rand_init(5, tid());
    return randf(rng, lo, hi);
  });
  expect_chosen(drawn, {-1, 3}, {1 - u(0), u(0)});
}

}  // namespace
