// Drops of a fountain: where they begin, and where they are at any time, exactly.
#pragma once
#include <array>
#include <vector>

#include "renderer.h"

constexpr float kGravity = 9.81f, kLife = 1.3f;  // m/s^2, s

/// The flight of a drop, which leaves the nozzle at the origin with this velocity, again and again.
struct Throw {
  float velocity[3];
  float start;  ///< the time since the last throw, at the beginning
};
Throw throw_of(int drop);
/// The point that the renderer is to show for a drop at a time.
Point drop_at(int drop, double time);

/// The memory of a simulation at the beginning.
struct Drops {
  using Vector = std::array<float, 3>;
  std::vector<Point> points;
  std::vector<Vector> velocity, first_velocity;
  std::vector<float> age;
};
Drops drops_at_start(int count);
