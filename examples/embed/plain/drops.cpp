// The throws of the drops, which fill the fountain evenly.
#include "drops.h"

#include <cmath>

namespace {
double fraction(double x) { return x - std::floor(x); }
}  // namespace

Throw throw_of(int drop) {
  // Angles and speeds fill their ranges evenly, and times fill theirs for each angle and speed.
  const double around = 6.283185307179586 * fraction(drop * 0.6180339887498949);
  const double out = 0.15 + 1.35 * std::sqrt(fraction(drop * 0.7548776662466927));
  Throw t;
  t.velocity[0] = float(out * std::cos(around));
  t.velocity[1] = float(6.4 - 0.8 * out);
  t.velocity[2] = float(out * std::sin(around));
  t.start = float(kLife * fraction(drop * 0.5698402909980532));
  return t;
}

Point drop_at(int drop, double time) {
  constexpr float kYoung[] = {0.85f, 0.95f, 1}, kOld[] = {0.1f, 0.38f, 0.9f};
  const Throw t = throw_of(drop);
  const double age = std::fmod(double(t.start) + time, double(kLife));
  Point p;
  for (int k = 0; k < 3; ++k) {
    p.place[k] = float(t.velocity[k] * age - (k == 1 ? 0.5 * double(kGravity) * age * age : 0));
    p.colour[k] = kYoung[k] + (kOld[k] - kYoung[k]) * float(age / double(kLife));
  }
  return p;
}

Drops drops_at_start(int count) {
  Drops drops;
  for (int k = 0; k < count; ++k) {
    const Throw t = throw_of(k);
    drops.points.push_back(drop_at(k, 0));
    drops.velocity.push_back({t.velocity[0], t.velocity[1] - kGravity * t.start, t.velocity[2]});
    drops.first_velocity.push_back({t.velocity[0], t.velocity[1], t.velocity[2]});
    drops.age.push_back(t.start);
  }
  return drops;
}
