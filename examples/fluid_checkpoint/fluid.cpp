// The fluid's kernels: semi-Lagrangian advection, and projection to a velocity without sources.
#include "fluid.h"

#include <numbers>

using namespace weft;

namespace {

constexpr float kSwirl = 0.5f;  // largest speed of the first velocity
constexpr float kLift = 0.4f;   // acceleration of a place of density 1

/// The weights of the values at -1, 0, 1 and 2 for the one at t from 0 to 1: the cubic of Catmull and Rom. It blurs a
/// field that is moved again and again much less than linear interpolation would, and the optimisation has to undo all
/// blur.
std::array<Float, 4> weights(const Float& t) {
  return {t * (t * (1 - 0.5f * t) - 0.5f), t * t * (1.5f * t - 2.5f) + 1, t * (t * (2 - 1.5f * t) + 0.5f),
          t * t * (0.5f * t - 0.5f)};
}

/// The value between the centres of cells, at a place in cells. Places beyond the outer centres have the values of
/// those.
template <class T>
Var<T> sample(const Arr<const T, 2>& field, const Vec2& place) {
  Int last = field.shape(0) - 1;
  Vec2 p = clamp(place, vec2{0, 0}, Vec2(Float(last)));
  Int column = Int(p.x), row = Int(p.y);
  const auto across = weights(p.x - Float(column)), down = weights(p.y - Float(row));
  Var<T> sum;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      sum += field(clamp(row + (i - 1), 0, last), clamp(column + (j - 1), 0, last)) *
             (down[std::size_t(i)] * across[std::size_t(j)]);
  return sum;
}

/// The place, in cells, where the content of a cell was a step before.
Vec2 origin(const Arr<const vec2, 2>& velocity, const Int& row, const Int& column, const Float& dt) {
  return Vec2(Float(column), Float(row)) - velocity(row, column) * (dt * Float(velocity.shape(0)));
}

/// The rows or columns before and after one, without the walls.
struct Neighbours {
  Int before, after;
  Neighbours(const Int& i, const Int& n) : before(max(i - 1, 0)), after(min(i + 1, n - 1)) {}
};

auto swirl_kernel = kernel("fluid_swirl", [](Arr<vec2, 2> velocity) {
  // This velocity is the curl of sin^2(pi x) sin^2(pi y): without sources, and still at the walls.
  auto [row, column] = tid<2>();
  Float scale = std::numbers::pi_v<float> / Float(velocity.shape(0));
  Float x = (Float(column) + 0.5f) * scale, y = (Float(row) + 0.5f) * scale;
  velocity(row, column) = Vec2(sin(x) * sin(x) * sin(2 * y), -sin(y) * sin(y) * sin(2 * x)) * kSwirl;
});

auto move_velocity = kernel(
    "fluid_move_velocity", [](Arr<const vec2, 2> velocity, Arr<const float, 2> density, Arr<vec2, 2> moved, Float dt) {
      auto [row, column] = tid<2>();
      Int last = velocity.shape(0) - 1;
      Vec2 v = sample(velocity, origin(velocity, row, column, dt)) - Vec2(0, density(row, column) * (kLift * dt));
      // Walls let nothing pass.
      v.x = select((column == 0) | (column == last), Float(0), v.x);
      v.y = select((row == 0) | (row == last), Float(0), v.y);
      moved(row, column) = v;
    });

auto find_divergence = kernel("fluid_divergence", [](Arr<const vec2, 2> velocity, Arr<float, 2> divergence) {
  auto [row, column] = tid<2>();
  Int n = velocity.shape(0);
  Neighbours r(row, n), c(column, n);
  divergence(row, column) = (velocity(row, c.after).x - velocity(row, c.before).x + velocity(r.after, column).y -
                             velocity(r.before, column).y) *
                            (0.5f * Float(n));
});

// Makes one sweep of Jacobi's method for laplace(p) = divergence; the slope of p is 0 at the walls.
auto sweep = kernel("fluid_sweep", [](Arr<const float, 2> p, Arr<const float, 2> divergence, Arr<float, 2> better) {
  auto [row, column] = tid<2>();
  Int n = p.shape(0);
  Neighbours r(row, n), c(column, n);
  Float around = p(row, c.before) + p(row, c.after) + p(r.before, column) + p(r.after, column);
  better(row, column) = 0.25f * (around - divergence(row, column) / Float(n * n));
});

auto project = kernel("fluid_project", [](Arr<const vec2, 2> moved, Arr<const float, 2> p, Arr<vec2, 2> velocity) {
  auto [row, column] = tid<2>();
  Int n = p.shape(0);
  Neighbours r(row, n), c(column, n);
  Vec2 slope = Vec2(p(row, c.after) - p(row, c.before), p(r.after, column) - p(r.before, column));
  velocity(row, column) = moved(row, column) - slope * (0.5f * Float(n));
});

auto move_density = kernel("fluid_move_density",
                           [](Arr<const vec2, 2> velocity, Arr<const float, 2> density, Arr<float, 2> moved, Float dt) {
                             auto [row, column] = tid<2>();
                             moved(row, column) = sample(density, origin(velocity, row, column, dt));
                           });

}  // namespace

Fluid::Fluid(const Device& device, const FluidPlan& plan) : plan_(plan) {
  const Extent cells{plan.size, plan.size};
  auto numbers = [&] { return zeros<float, 2>(device, cells); };
  start_ = numbers().requires_grad();
  density_ = {numbers(), numbers()};
  pressure_ = {numbers(), numbers()};
  divergence_ = numbers();
  velocity_ = zeros<vec2, 2>(device, cells);
  moved_ = zeros<vec2, 2>(device, cells);
}

void Fluid::step(int number) {
  const Extent cells{plan_.size, plan_.size};
  const float dt = 1 / float(plan_.steps);
  const auto &density = density_[std::size_t(number % 2)], &next = density_[std::size_t((number + 1) % 2)];
  launch(move_velocity, cells, velocity_, density, moved_, dt);
  launch(find_divergence, cells, moved_, divergence_);
  // Sweeps start from the pressure of the previous step, which is nearly right; an even number of sweeps leaves it in
  // place.
  for (int k = 0; k < plan_.sweeps; ++k)
    launch(sweep, cells, pressure_[std::size_t(k % 2)], divergence_, pressure_[std::size_t((k + 1) % 2)]);
  launch(project, cells, moved_, pressure_[0], velocity_);
  launch(move_density, cells, velocity_, density, next, dt);
}

const Array<float, 2>& Fluid::run(Tape* tape) {
  launch(swirl_kernel, {plan_.size, plan_.size}, velocity_);
  pressure_[0].zero();
  density_[0].copy_from(start_);
  if (tape) {
    tape->checkpointed(plan_.steps, plan_.slots, [this](int k) { step(k); });
  } else {
    for (int k = 0; k < plan_.steps; ++k) step(k);
  }
  return density_[std::size_t(plan_.steps % 2)];
}
