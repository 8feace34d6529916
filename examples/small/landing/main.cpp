// Gradients: how must a ball be thrown through air to land on a target? Adam's steps go against the gradient of the
// miss by the velocity at the start, which passes through the loop over the ball's flight.
#include <weft/weft.h>

#include <cmath>
#include <cstdio>

using namespace weft;

const auto fly = kernel("fly", [](Arr<const vec2> velocity, Arr<float> miss, Vec2 target, Int steps) {
  Vec2 x, v = velocity[0];
  for ([[maybe_unused]] auto k : range(steps)) {
    v += (Vec2(0, -9.81f) - 0.05f * length(v) * v) * 0.005f;  // weight and drag
    x += v * 0.005f;
  }
  miss[0] = length_sq(x - target);
});

const auto adam = kernel("adam", [](Arr<vec2> x, Arr<const vec2> gradient, Arr<vec2> mean, Arr<vec2> square, Int step) {
  const Vec2 g = gradient[0];
  mean[0] = 0.9f * mean[0] + 0.1f * g;
  square[0] = 0.99f * square[0] + 0.01f * cw_mul(g, g);
  const Vec2 m = mean[0] / (1 - pow(0.9f, Float(step))), s = square[0] / (1 - pow(0.99f, Float(step)));
  x[0] -= 0.2f * cw_div(m, sqrt(s) + Vec2(1e-8f));
});

int main() try {
  const Device device = Device::best();
  Array<vec2> velocity(device, {vec2{5, 5}});
  velocity.requires_grad();
  const Array<vec2> mean = zeros<vec2>(device, 1), square = zeros<vec2>(device, 1);
  const Array<float> miss = zeros<float>(device, 1);
  for (int step = 1; step <= 300; ++step) {
    Tape tape;
    tape.record([&] { launch(fly, 1, velocity, miss, vec2{10, 0}, 300); });
    velocity.zero_grad();
    tape.backward(miss);
    launch(adam, 1, velocity, velocity.grad(), mean, square, step);
    if (step == 1) std::printf("the first throw misses by %.1f\n", std::sqrt(miss.at(0)));
  }
  const vec2 v = velocity.at(0);
  std::printf("thrown with %.1f, %.1f\n", v.x, v.y);
  std::printf("%s\n", miss.at(0) < 1e-4f ? "hits the target" : "misses the target");
  return miss.at(0) < 1e-4f ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
