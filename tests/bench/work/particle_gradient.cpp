// Kernels and tape of the particle system, and its gradient by the host.
#include "particle_gradient.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "../../../runtime/tape.h"

namespace weft::bench {

ParticleGradient::ParticleGradient(const Device& device)
    : x_(zeros<vec3>(device, n)),
      v_(zeros<vec3>(device, n).requires_grad()),
      w_(full<float>(device, n, w0)),
      loss_(zeros<float>(device, 1)) {
  const auto integrate =
      kernel("integrate", [](Arr<vec3> x, Arr<vec3> v, Arr<const float> w, Vec3 gravity, Float stiffness, Float dt) {
        Int i = tid();
        Vec3 f = -stiffness * x[i];
        v[i] += (f * w[i] + gravity) * dt;
        x[i] += v[i] * dt;
      });
  const auto mean_square = kernel("mean_square", [](Arr<const vec3> x, Float scale, Arr<float> loss) {
    Vec3 p = x[tid()];
    atomic_add(loss[0], dot(p, p) * scale);
  });
  launch_steps_ = [x = x_, v = v_, w = w_, loss = loss_, integrate, mean_square] {
    for (int s = 0; s < steps; ++s) launch(integrate, n, x, v, w, vec3{0, gravity, 0}, stiffness, dt);
    launch(mean_square, n, x, 1.0f / n, loss);
  };
}

void ParticleGradient::reset() {
  x_.fill(x0);
  v_.fill(v0);
  v_.zero_grad();
  loss_.zero();
  loss_.wait();
}

void ParticleGradient::run() {
  Tape tape;
  tape.record(launch_steps_);
  tape.backward(loss_);
  v_.grad().wait();
}

double ParticleGradient::gradient() const { return double(v_.grad().at(0)[1]) * n; }

void ParticleGradient::check(const std::string& who, double gradient) {
  // The host computes the y coordinate, and the slopes of place and velocity with respect to the velocity at the start.
  double place = x0.y, velocity = v0.y, place_slope = 0, velocity_slope = 1;
  for (int s = 0; s < steps; ++s) {
    velocity += (-stiffness * place * w0 + double(gravity)) * dt;
    velocity_slope += -stiffness * place_slope * w0 * dt;
    place += velocity * dt;
    place_slope += velocity_slope * dt;
  }
  const double expected = 2 * place * place_slope;
  if (std::abs(gradient - expected) > 1e-3 * std::abs(expected))
    throw std::runtime_error(fmt::format("{}: the gradient is {}, by the host {}", who, gradient, expected));
}

}  // namespace weft::bench
