// The rays of a camera, and the place from which it sees everything.
#include "camera.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace weft;

namespace {

constexpr float kFilled = 0.95f;  // of the way from the middle of the picture to its edge, at most

/// The tangent of half the angle from the top of the picture to its bottom.
float half_view(const Camera& camera) { return std::tan(camera.view * std::numbers::pi_v<float> / 360); }

}  // namespace

CameraFrame frame_of(const Camera& camera, int width, int height) {
  const vec3 forward = normalize(camera.target - camera.eye);
  const vec3 right = normalize(cross(forward, vec3{0, 1, 0}));
  const float half = half_view(camera);
  return {forward, right * (half * float(width) / float(height)), cross(right, forward) * half};
}

void show_all(Camera& camera, const std::vector<vec3>& points, int width, int height) {
  const CameraFrame frame = frame_of(camera, width, height);
  const vec3 right = normalize(frame.right), up = normalize(frame.up);
  const float half = kFilled * half_view(camera), half_across = half * float(width) / float(height);
  float distance = length(camera.eye - camera.target);
  for (const vec3& p : points) {
    const vec3 at = p - camera.target;
    distance = std::max(distance, -dot(at, frame.forward) +
                                      std::max(std::abs(dot(at, right)) / half_across, std::abs(dot(at, up)) / half));
  }
  camera.eye = camera.target - frame.forward * distance;
}
