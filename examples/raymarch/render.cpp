// The path tracer of volumes.
#include "render.h"

#include <weft/algorithms.h>
#include <weft/runtime/volume/volume_ray.h>

#include <numbers>

#include "../common/light.h"

using namespace weft;

namespace {

constexpr int kBounces = 12;
constexpr float kAlbedo = 0.99f;   // of fog: the part of the light that a particle scatters and does not take
constexpr float kForward = 0.55f;  // the mean cosine of the angle by which fog scatters light
constexpr float kDark = 0.01f;     // fog through which less light comes lets none through

/// The scene in a kernel.
struct Scene {
  Var<VolumeArrays> surface, fog;
  Float scale;
  Vec3 offset;
  Float thickness, most;  ///< `most`: the greatest density, as scattering on a metre

  Vec3 in_world(const Vec3& point) const { return (point - offset) / scale; }
};

/// Follows a ray through fog to places at distances that are drawn as if the fog had its greatest density everywhere,
/// in active space alone. The fog at such a place is really there with the probability `share`: visit(t, share) returns
/// whether to stop.
template <class F>
void through_fog(const Scene& scene, const Vec3& origin, const Vec3& direction, const Float& limit, UInt& rng,
                 F visit) {
  Vec3 from = scene.in_world(origin), along = direction / scene.scale;
  VolumeAccessor<float> density(scene.fog);
  VolumeSegments segments(scene.fog, from, along, limit);
  Float begin = 0.f, end = 0.f;
  Bool stopped = false;
  While (segments.next(begin, end)) {
    Float t = begin;
    While (t < end) {
      t -= log(1 - randf(rng)) / scene.most;
      If (t < end) {
        Float there = density.sample(volume_world_to_index(scene.fog, from + along * t));
        stopped = visit(t, max(there, 0.f) * scene.thickness / scene.most);
        If (stopped) Break();
      }
    }
    If (stopped) Break();
  }
}

/// What a path meets first; nothing if t is kFar.
struct Event {
  Float t;
  Vec3 normal, colour;
  Bool fog = false, surface = false;
};

Event first_event(const Scene& scene, const Vec3& origin, const Vec3& direction, UInt& rng) {
  Event e;
  e.t = kFar;
  e.normal = Vec3(0, 1, 0);
  If (direction.y < -1e-5f) {
    e.t = min(-origin.y / direction.y, kFar);
    e.colour = floor_colour(origin + direction * e.t);
  }
  VolumeRayHit hit = volume_ray<float>(scene.surface, scene.in_world(origin), direction / scene.scale, e.t);
  If (hit.hit) {
    e.t = hit.t;
    e.normal = hit.normal;
    e.colour = Vec3(0.8f, 0.16f, 0.05f);
    e.surface = true;
  }
  through_fog(scene, origin, direction, e.t, rng, [&](const Float& t, const Float& share) {
    Bool there = randf(rng) < share;
    If (there) {
      e.t = t;
      e.fog = true;
      e.surface = false;
    }
    return there;
  });
  return e;
}

/// The part of the sun's light that comes to a point from a direction.
Float sunlight(const Scene& scene, const Vec3& point, const Vec3& to_sun, UInt& rng) {
  Float through = 0.f;
  If (!volume_ray<float>(scene.surface, scene.in_world(point), to_sun / scene.scale, kFar).hit) {
    through = 1.f;
    through_fog(scene, point, to_sun, kFar, rng, [&](const Float&, const Float& share) {
      through *= 1 - share;
      Bool dark = through < kDark;
      If (dark) {
        through = 0.f;
      }
      return dark;
    });
  }
  return through;
}

/// The part of scattered light that goes into a unit of solid angle at a cosine (Henyey and Greenstein, 1941).
Float scattered(const Float& cosine) {
  Float d = 1 + kForward * kForward - 2 * kForward * cosine;
  return (1 - kForward * kForward) / (4 * std::numbers::pi_v<float>) / (d * sqrt(d));
}

/// A direction after scattering by fog, drawn by scattered().
Vec3 scatter(const Vec3& direction, UInt& rng) {
  Float s = (1 - kForward * kForward) / (1 - kForward + 2 * kForward * randf(rng));
  Float cosine = (1 + kForward * kForward - s * s) / (2 * kForward);
  return around(select(cosine < 0, -direction, direction), randf(rng), sqrt(max(1 - cosine * cosine, 0)));
}

// Strategy: one thread per pixel follows `samples` paths from the eye. A path ends each of its pieces at the first of
// the floor, the surface, which volume_ray() finds, and a particle of fog, to which it comes by delta tracking: flights
// of random length through fog of the greatest density, each end of which counts with the probability that fog is
// there. At each of these places the sun's light is gathered through fog, whose transmittance is the product of such
// probabilities (ratio tracking), and the path goes on in a random direction: by cosine around a normal, forward in
// fog. A path that leaves the scene brings the sky's light. Both estimates have the right mean at any density. Edge
// cases: the last bounce brings no sky; fog through which less than 1 % of the sun comes counts as black. Example: a
// pixel on the floor in front of thin fog, one sample: flights of 0.1, 0.3 and 0.4 m through the fog's boxes, none of
// which meets a particle; the floor's sunlight, times a transmittance of 0.7; a scattered ray up to the sky. Source:
// Woodcock et al. 1965 (delta tracking); Novak, Selle, Jarosz 2014 (ratio tracking).
auto picture_kernel =
    kernel("picture of volumes", [](Arr<std::uint32_t, 2> image, Var<VolumeArrays> surface, Var<VolumeArrays> fog,
                                    Float scale, Vec3 offset, Float thickness, Float most, Vec3 eye, Vec3 forward,
                                    Vec3 right, Vec3 up, Int samples, Arr<int> seen) {
      auto [row, column] = tid<2>();
      const Scene scene{surface, fog, scale, offset, thickness, most};
      Float height = Float(image.shape(0)), width = Float(image.shape(1));
      Vec3 light;
      for (auto sample : range(samples)) {
        UInt rng = rand_init(sample, row * image.shape(1) + column);
        Float across = 2 * (Float(column) + randf(rng)) / width - 1, down = 2 * (Float(row) + randf(rng)) / height - 1;
        Vec3 origin = eye, direction = normalize(forward + right * across - up * down);
        Vec3 carried(1);
        for (auto bounce : range(kBounces)) {
          Event e = first_event(scene, origin, direction, rng);
          If (e.t >= kFar) {
            light += carried * sky(direction);
            Break();
          }
          If (bounce == 0) {  // haze
            Float clear = clear_air(e.t);
            light += carried * sky(Vec3(direction.x, 0, direction.z)) * (1 - clear);
            carried *= clear;
            If (sample == 0) {
              atomic_add(seen[0], Int(e.surface));
              atomic_add(seen[1], Int(e.fog));
            }
          }
          origin += direction * e.t + select(e.fog, Vec3(0.f), e.normal * kOffset);
          Vec3 to_sun = around(Vec3(kSun), randf(rng), sqrt(randf(rng)) * kSunSize);
          Float sun = sunlight(scene, origin, to_sun, rng);
          If (e.fog) {
            carried *= kAlbedo;
            light += carried * kSunLight * (std::numbers::pi_v<float> * scattered(dot(direction, to_sun)) * sun);
            direction = scatter(direction, rng);
          }
          Else {
            carried *= e.colour;
            light += carried * kSunLight * (max(dot(e.normal, to_sun), 0.f) * sun);
            direction = around(e.normal, randf(rng), sqrt(randf(rng)));
          }
        }
      }
      image(row, column) = film_pixel(light / Float(samples));
    });

/// A volume without voxels, where a scene has none.
Volume or_nothing(const Volume& volume, const Device& device, float background) {
  if (!volume.is_null()) return volume;
  return Volume::allocate_by_voxels<float>(device, std::span<const vec3i>(), background);
}

}  // namespace

Picture draw(const VolumeScene& scene, const Camera& camera, int width, int height, int samples, Seen& seen) {
  const Device device = scene.surface.is_null() ? scene.fog.device() : scene.surface.device();
  const float densest = scene.fog.is_null() ? 0.f : reduce_max(scene.fog.values<float>());
  // Without any density there are no segments to draw flights in.
  const float most = std::max(densest * scene.thickness, 1e-6f);
  const CameraFrame frame = frame_of(camera, width, height);
  Array<std::uint32_t, 2> image = empty<std::uint32_t, 2>(device, {height, width});
  const Array<int> counts = zeros<int>(device, 2);
  launch(picture_kernel, {height, width}, image, or_nothing(scene.surface, device, 1.f),
         or_nothing(scene.fog, device, 0.f), scene.placement.scale, scene.placement.offset, scene.thickness, most,
         camera.eye, frame.forward, frame.right, frame.up, samples, counts);
  const std::vector<int> c = counts.to_vector();
  seen = {c[0], c[1]};
  return {width, height, image.to_vector()};
}
