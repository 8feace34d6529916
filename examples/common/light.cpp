// The sky, the floor, directions around an axis, and the curve of film.
#include "light.h"

#include <numbers>

using namespace weft;

namespace {
constexpr float kTurn = 2 * std::numbers::pi_v<float>;
}

Vec3 sky(const Vec3& direction) {
  Float up = sqrt(max(direction.y, 0));
  Vec3 blue = vec3{0.72f, 0.8f, 0.88f} * (1 - up) + vec3{0.16f, 0.34f, 0.68f} * up;
  Float glow = pow(max(dot(direction, kSun), 1e-3f), 200.f);
  return blue + kSunLight * (glow * 3);
}

Vec3 floor_colour(const Vec3& point) {
  Float square = floor(point.x * 2) + floor(point.z * 2);
  Bool dark = square - 2 * floor(square * 0.5f) > 0.5f;
  return select(dark, Vec3(0.2f, 0.22f, 0.25f), Vec3(0.42f, 0.42f, 0.4f));
}

Float clear_air(const Float& distance) { return exp(-0.0006f * distance * distance); }

Vec3 around(const Vec3& axis, const Float& turn, const Float& sine) {
  Vec3 side = normalize(cross(axis, select(abs(axis.x) < 0.7f, Vec3(1, 0, 0), Vec3(0, 1, 0))));
  Vec3 up = cross(axis, side);
  Float cosine = sqrt(max(1 - sine * sine, 0));
  return axis * cosine + (side * cos(turn * kTurn) + up * sin(turn * kTurn)) * sine;
}

UInt film_pixel(const Vec3& light) {
  UInt packed = 0xff000000u;
  for (int k = 0; k < 3; ++k) {
    Float c = light[k] * 0.6f;  // Narkowicz, "ACES filmic tone mapping curve" (2015)
    Float film = min(c * (2.51f * c + 0.03f) / (c * (2.43f * c + 0.59f) + 0.14f), 1);
    packed = packed | (UInt(pow(max(film, 1e-6f), 1 / 2.2f) * 255 + 0.5f) << UInt(8 * k));
  }
  return packed;
}
