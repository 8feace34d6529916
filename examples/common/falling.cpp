// The block of balls, and the contact.
#include "falling.h"

#include <algorithm>

using namespace weft;

namespace {

constexpr float kBounce = 0.3f, kFriction = 0.25f;

auto ball_kernel = kernel("balls at", [](Arr<const vec3> centres, Float radius, Arr<vec4> balls) {
  Vec3 p = centres[tid()];
  balls[tid()] = Vec4(p.x, p.y, p.z, radius);
});

}  // namespace

std::vector<vec3> layers(int count, float radius, const vec3& centre, float width) {
  const int row = std::max(1, int(width / (2.5f * radius)));
  std::vector<vec3> places;
  for (int k = 0; k < count; ++k) {
    const int i = k % row, j = k / row % row, layer = k / (row * row);
    // Every layer is shifted, so that the balls of a column do not all go the same way.
    const float shift = 0.37f * float(layer % 5);
    places.push_back({centre.x + ((float(i) + shift) / float(row) - 0.5f) * width,
                      centre.y + 2.5f * radius * float(layer),
                      centre.z + ((float(j) + 0.6f * shift) / float(row) - 0.5f) * width});
  }
  return places;
}

Array<vec4> balls_at(const Array<vec3>& centres, float radius) {
  const Array<vec4> balls = empty<vec4>(centres.device(), centres.size());
  launch(ball_kernel, balls.size(), centres, radius, balls);
  return balls;
}

void touch(Vec3& place, Vec3& velocity, const Vec3& normal, const Float& depth, const Vec3& surface) {
  place += normal * depth;
  Vec3 slide = velocity - surface;
  Float into = dot(slide, normal);
  If (into < 0) {
    Vec3 along = slide - normal * into;
    Float speed = length(along);
    Float kept = max(1 - kFriction * -into * (1 + kBounce) / max(speed, 1e-6f), 0.f);
    velocity = surface + along * kept - normal * (into * kBounce);
  }
}
