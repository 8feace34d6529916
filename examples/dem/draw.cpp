// Draws grains by rays through a hierarchy of boxes: from the eye, and from the hit points to the sun and the sky.
#include "draw.h"

#include <weft/runtime/geometry/bvh_query.h>

#include <cmath>
#include <numbers>

using namespace weft;

namespace {

constexpr float kFar = 1e6f, kTurn = 2 * std::numbers::pi_v<float>;
constexpr float kSkyReach = 4;  // obstacles that are further away hide no sky
const vec3 kSun = normalize(vec3{-0.5f, 0.7f, 0.55f});
constexpr vec3 kSunLight{2.9f, 2.55f, 2.1f};

Vec3 sky(const Vec3& direction) {
  Float up = sqrt(max(direction.y, 0));
  return vec3{0.72f, 0.8f, 0.88f} * (1 - up) + vec3{0.2f, 0.4f, 0.7f} * up;
}

/// The distance at which a ray of a direction of length 1 enters a sphere; kFar if it does not.
Float enter(const Vec3& origin, const Vec3& direction, const Vec3& centre, const Float& radius) {
  // Starting from the point closest to the centre loses few digits, however far away the eye is.
  Float along = dot(centre - origin, direction);
  Vec3 aside = origin + direction * along - centre;
  Float under_root = radius * radius - dot(aside, aside);
  Float t = along - sqrt(max(under_root, 0));
  return select((under_root > 0) & (t > 0), t, kFar);
}

struct Seen {
  Float t;
  Int grain;
};
Seen nearest(const Var<BvhData>& tree, const Arr<const vec3>& centres, const Float& radius, const Vec3& origin,
             const Vec3& direction) {
  Seen s{kFar, -1};
  for (auto i : bvh_query_ray(tree, origin, direction)) {
    Float t = enter(origin, direction, centres[i], radius);
    If (t < s.t) {
      s.t = t;
      s.grain = i;
    }
  }
  return s;
}
Bool hidden(const Var<BvhData>& tree, const Arr<const vec3>& centres, const Float& radius, const Vec3& origin,
            const Vec3& direction, const Float& reach) {
  Bool found = false;
  for (auto i : bvh_query_ray(tree, origin, direction, reach)) {
    If (enter(origin, direction, centres[i], radius) < reach) {
      found = true;
      Break();
    }
  }
  return found;
}

/// A direction whose angle to the axis has the sine `sine`.
Vec3 around(const Vec3& axis, const Float& turn, const Float& sine) {
  Vec3 side = normalize(cross(axis, select(abs(axis.x) < 0.7f, Vec3(1, 0, 0), Vec3(0, 1, 0))));
  Vec3 up = cross(axis, side);
  return axis * sqrt(max(1 - sine * sine, 0)) + (side * cos(turn * kTurn) + up * sin(turn * kTurn)) * sine;
}

const auto box_kernel = kernel("boxes", [](Arr<const vec3> centres, Float radius, Arr<vec3> lowers, Arr<vec3> uppers) {
  Int i = tid();
  lowers[i] = centres[i] - Vec3(radius);
  uppers[i] = centres[i] + Vec3(radius);
});

// One thread draws a pixel. The sun lights the point that the eye's ray meets, through one ray to it; so does the sky,
// through one ray that checks whether it is open in a random direction.
const auto draw_kernel =
    kernel("draw grains", [](Arr<std::uint32_t, 2> image, Var<BvhData> tree, Arr<const vec3> centres, Float radius,
                             Float layer, Vec3 eye, Vec3 forward, Vec3 right, Vec3 up, Int samples) {
      auto pixel = tid<2>();
      Float height = Float(image.shape(0)), width = Float(image.shape(1));
      UInt random = rand_init(7, pixel.i * image.shape(1) + pixel.j);
      Vec3 light;
      for ([[maybe_unused]] auto sample : range(samples)) {
        Float across = 2 * (Float(pixel.j) + randf(random)) / width - 1;
        Float down = 2 * (Float(pixel.i) + randf(random)) / height - 1;
        Vec3 direction = normalize(forward + right * across - up * down);
        Seen seen = nearest(tree, centres, radius, eye, direction);
        Vec3 normal(0, 1, 0), colour(0.4f, 0.39f, 0.37f);
        Float floor_at = select(direction.y < -1e-5f, -eye.y / direction.y, kFar);
        If (floor_at < seen.t) {
          seen.t = floor_at;
          seen.grain = -1;
        }
        If (seen.t >= kFar) {
          light += sky(direction);
          Continue();
        }
        Vec3 at = eye + direction * seen.t;
        If (seen.grain >= 0) {
          normal = normalize(at - centres[seen.grain]);
          // Layers alternate in the colours of sand, clay and slate.
          Float turn = floor(Float(seen.grain) / layer);
          Float kind = turn - 3 * floor(turn / 3);
          colour = select(kind < 0.5f, Vec3(0.76f, 0.52f, 0.24f),
                          select(kind < 1.5f, Vec3(0.62f, 0.2f, 0.1f), Vec3(0.18f, 0.26f, 0.34f)));
        }
        Else {
          Float square = floor(at.x * 0.5f) + floor(at.z * 0.5f);
          colour = select(square - 2 * floor(square * 0.5f) > 0.5f, colour * 0.75f, colour);
        }
        Vec3 origin = at + normal * 1e-3f;
        Vec3 to_sun = around(Vec3(kSun), randf(random), sqrt(randf(random)) * 0.03f);
        Vec3 received;
        Float facing = dot(normal, to_sun);
        If (facing > 0) {
          If (!hidden(tree, centres, radius, origin, to_sun, kFar)) {
            received += kSunLight * facing;
          }
        }
        Vec3 to_sky = around(normal, randf(random), sqrt(randf(random)));
        // An obstacle that hides the sky is itself lit a little.
        Bool closed = hidden(tree, centres, radius, origin, to_sky, kSkyReach);
        received += select(closed, Vec3(0.12f, 0.11f, 0.1f), sky(to_sky));
        Float clear = exp(-1.5e-4f * seen.t * seen.t);
        light += colour * received * clear + sky(Vec3(direction.x, 0, direction.z)) * (1 - clear);
      }
      light /= Float(samples);
      UInt packed = 0xff000000u;
      for (int k = 0; k < 3; ++k) {
        Float c = light[k] * 0.6f;  // Narkowicz, "ACES filmic tone mapping curve" (2015)
        Float film = min(c * (2.51f * c + 0.03f) / (c * (2.43f * c + 0.59f) + 0.14f), 1);
        packed = packed | (UInt(pow(max(film, 1e-6f), 1 / 2.2f) * 255 + 0.5f) << UInt(8 * k));
      }
      image(pixel.i, pixel.j) = packed;
    });

}  // namespace

Picture draw_grains(const Array<vec3>& centres, float radius, const Camera& camera, int width, int height,
                    int samples) {
  const Device device = centres.device();
  const Array<vec3> lowers = empty_like(centres), uppers = empty_like(centres);
  launch(box_kernel, centres.size(), centres, radius, lowers, uppers);
  const Bvh tree(device, lowers, uppers);
  const CameraFrame frame = frame_of(camera, width, height);
  const float side = std::ceil(std::cbrt(float(centres.size())));
  Array<std::uint32_t, 2> image = empty<std::uint32_t, 2>(device, {height, width});
  // A colour spans four layers of a block.
  launch(draw_kernel, {height, width}, image, tree, centres, radius, 4 * side * side, camera.eye, frame.forward,
         frame.right, frame.up, samples);
  return {width, height, image.to_vector()};
}
