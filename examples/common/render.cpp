// The path tracer: surfaces, light, and the kernel that follows paths through pixels.
#include "render.h"

#include <weft/runtime/geometry/bvh.h>
#include <weft/runtime/geometry/mesh.h>

#include <algorithm>

#include "light.h"
#include "scene.h"

using namespace weft;

namespace {

constexpr int kBounces = 3;
constexpr int kStrips = 40;  // of a picture whose progress is shown

/// The first surface that a ray meets; none if t is kFar.
struct Surface {
  Float t;
  Vec3 normal, facet, colour;  ///< facet: the true normal; normal: the smooth one, for shading
  Float mirror;  ///< part of the light that is mirrored, seen straight on; 8 times as much at a grazing view
};

/// The obstacles of rays, except the floor.
struct World {
  Var<MeshArrays> mesh;
  Arr<const vec3> normals;  ///< of the mesh's points
  Var<BvhData> boxes;       ///< around the balls
  Arr<const vec4> balls;
  Arr<const vec3> colours;
  Float mirror;
  RaySearch search;
};

struct BallHit {
  Float t;
  Int ball = -1;
};

/// The nearest ball before `limit`, or with `any` some ball.
BallHit to_balls(const World& world, const Vec3& origin, const Vec3& direction, const Float& limit, bool any) {
  BallHit hit;
  hit.t = limit;
  auto near = bvh_query_ray(world.boxes, origin, direction, limit);
  Int k = -1;
  While (near.next(k)) {
    Vec4 ball = world.balls[k];
    Vec3 from = origin - Vec3(ball.x, ball.y, ball.z);
    Float b = dot(from, direction);
    Float under_root = b * b - dot(from, from) + ball.w * ball.w;
    Float t = -b - sqrt(max(under_root, 0));
    If ((under_root > 0) & (t > 0) & (t < hit.t)) {
      hit.t = t;
      hit.ball = k;
      if (any) Break();
    }
  }
  return hit;
}

Surface nearest_surface(const World& world, const Vec3& origin, const Vec3& direction) {
  Surface s{kFar, vec3{0, 1, 0}, vec3{0, 1, 0}, vec3{}, 0};
  If (direction.y < -1e-5f) {
    s.t = min(-origin.y / direction.y, kFar);
    s.colour = floor_colour(origin + direction * s.t);
    s.mirror = 0.02f;
  }
  BallHit ball = to_balls(world, origin, direction, s.t, false);
  If (ball.ball >= 0) {
    s.t = ball.t;
    Vec4 place = world.balls[ball.ball];
    s.normal = normalize(origin + direction * ball.t - Vec3(place.x, place.y, place.z));
    s.facet = s.normal;
    s.colour = world.colours[ball.ball];
    s.mirror = world.mirror;
  }
  MeshRayHit hit = mesh_query_ray(world.mesh, origin, direction, s.t, world.search);
  If (hit.hit) {
    auto normal = [&](int k) { return Vec3(world.normals[mesh_get_index(world.mesh, hit.face * 3 + k)]); };
    s.t = hit.t;
    s.facet = hit.normal;
    s.normal = normalize(normal(0) * hit.u + normal(1) * hit.v + normal(2) * (1 - hit.u - hit.v));
    // The back of an open mesh is drawn like its front, and shading must not see the far side of its surface.
    s.facet = select(dot(s.facet, direction) > 0, -s.facet, s.facet);
    s.normal = select(dot(s.normal, s.facet) < 0, -s.normal, s.normal);
    s.normal = select(dot(s.normal, direction) > -0.01f, s.facet, s.normal);
    s.colour = vec3{0.8f, 0.16f, 0.05f};
    s.mirror = 0.025f;
  }
  return s;
}

/// Whether an obstacle stands between a point and the sun.
Bool in_shadow(const World& world, const Vec3& origin, const Vec3& to_sun) {
  Bool shadow = to_balls(world, origin, to_sun, kFar, true).ball >= 0;
  If (!shadow) {
    shadow = mesh_query_ray_anyhit(world.mesh, origin, to_sun, kFar, world.search);
  }
  return shadow;
}

/// An integer that looks random: the permutation "PCG RXS-M-XS 32" (O'Neill, 2014).
UInt scramble(const UInt& x) {
  UInt state = x * 747796405u + 2891336453u;
  UInt word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}

/// Point number `sample` of a sequence that covers the unit square evenly (Roberts' R2), shifted and shuffled
/// differently for each seed: neighbouring pixels and successive bounces see different points.
Vec2 spread(const UInt& seed, const Int& sample) {
  UInt h = scramble(seed), g = scramble(h);
  Float n = Float(UInt(sample) ^ (g & 63u));
  Float x = n * 0.7548777f + Float(h >> 8u) * 0x1p-24f;
  Float y = n * 0.5698403f + Float(g >> 8u) * 0x1p-24f;
  return Vec2(x - floor(x), y - floor(y));
}

// Strategy: one thread per pixel follows `samples` paths from the eye into the world. At a surface a path gathers the
// sun's light through a shadow ray and continues in one direction, scattered by cosine around the normal. A path that
// leaves the world brings the sky's light. Every fourth path is mirrored instead at its first surface and counts as
// much as the surface is a mirror (in the form of Schlick's law): a fixed share of the paths makes less noise than a
// choice by chance. The mean is mapped to 8 bits by a curve like that of film.
// Edge cases: fewer than 4 samples show no mirror images; at the last bounce, where the walk is cut, the sky above is
// taken as if nothing hid it, dimmed; the far floor fades into the sky, so that its squares do not flicker there.
// Example: a pixel on the sunny floor, one sample: the eye ray hits the floor at t, the shadow ray is free, so
// colour * sun * cosine is added; the scattered ray leaves upwards and adds colour * sky.
auto render_kernel(RaySearch search) {
  return kernel("render", [search](Arr<std::uint32_t, 2> image, Var<MeshArrays> mesh, Arr<const vec3> normals,
                                   Var<BvhData> boxes, Arr<const vec4> balls, Arr<const vec3> colours, Float mirror,
                                   Vec3 eye, Vec3 forward, Vec3 right, Vec3 up, Int samples, Int first_row) {
    auto pixel = tid<2>();
    Int row = first_row + pixel.i, column = pixel.j;
    Float height = Float(image.shape(0)), width = Float(image.shape(1));
    const World world{mesh, normals, boxes, balls, colours, mirror, search};
    UInt seed = UInt(row * image.shape(1) + column) * 16u;

    Int mirror_paths = samples / 4;
    Vec3 light;
    for (auto sample : range(samples)) {
      Vec2 jitter = spread(seed, sample);
      Float across = 2 * (Float(column) + jitter.x) / width - 1, down = 2 * (Float(row) + jitter.y) / height - 1;
      Vec3 origin = eye, direction = normalize(forward + right * across - up * down);
      Bool mirror_path = sample % 4 == 3;
      Vec3 carried(1);
      for (auto bounce : range(kBounces)) {
        Surface s = nearest_surface(world, origin, direction);
        If (s.t >= kFar) {
          light += carried * sky(direction);
          Break();
        }
        If (bounce == 0) {  // haze
          Float clear = clear_air(s.t);
          light += sky(Vec3(direction.x, 0, direction.z)) * (1 - clear);
          carried *= clear;
        }
        origin += direction * s.t + s.facet * kOffset;
        Float cosine = max(-dot(direction, s.normal), 0);
        Float slant = 1 - min(cosine, 1);
        Float mirrored = s.mirror * (1 + 7 * slant * slant * slant * slant * slant);
        UInt bounce_seed = seed + UInt(bounce) * 4u + 1u;

        Vec2 sun_point = spread(bounce_seed, sample);
        Vec3 to_sun = around(Vec3(kSun), sun_point.x, sqrt(sun_point.y) * kSunSize);
        Float facing = dot(s.normal, to_sun);
        If ((facing > 0) & (dot(s.facet, to_sun) > 0)) {
          If (!in_shadow(world, origin, to_sun)) {
            light += carried * s.colour * kSunLight * (facing * (1 - mirrored));
          }
        }
        If ((bounce == 0) & mirror_path) {
          direction = direction - s.normal * (2 * dot(direction, s.normal));
          carried *= mirrored * Float(samples) / Float(mirror_paths);
        }
        Else {
          Vec2 point = spread(bounce_seed + 1u, sample);
          direction = around(s.normal, point.x, sqrt(point.y));
          Float share = Float(samples) / Float(samples - mirror_paths);
          carried *= s.colour * ((1 - mirrored) * select(bounce == 0, share, Float(1)));
        }
        If (bounce == kBounces - 1) {
          light += carried * sky(direction) * 0.4f;
        }
      }
    }
    image(row, column) = film_pixel(light / Float(samples));
  });
}

}  // namespace

Balls sphere_of_scene(const Device& device) {
  const vec4 place(kSphereCentre.x, kSphereCentre.y, kSphereCentre.z, kSphereRadius);
  return {Array<vec4>(device, {place}), Array<vec3>(device, {vec3{0.06f, 0.16f, 0.22f}}), 0.1f};
}

Picture draw(const Shape& shape, const Balls& balls, const View& view) {
  static const auto walks = render_kernel(RaySearch::walk), asks = render_kernel(RaySearch::device);
  static const auto boxes = kernel("ball boxes", [](Arr<const vec4> balls, Arr<vec3> lower, Arr<vec3> upper) {
    Vec4 ball = balls[tid()];
    lower[tid()] = Vec3(ball.x, ball.y, ball.z) - Vec3(ball.w);
    upper[tid()] = Vec3(ball.x, ball.y, ball.z) + Vec3(ball.w);
  });
  const Device device = balls.places.is_null() ? shape.positions.device() : balls.places.device();
  // A shape or balls that are left out become one triangle without area, or one ball without size, below the floor.
  const vec3 nowhere{0, -1, 0};
  const bool has_shape = !shape.positions.is_null(), has_balls = !balls.places.is_null();
  const Array<vec3> points = has_shape ? shape.positions : Array<vec3>(device, {nowhere});
  const Array<vec3> normals = has_shape ? shape.normals : Array<vec3>(device, {nowhere});
  const Array<vec3i> triangles = has_shape ? shape.triangles : Array<vec3i>(device, {vec3i{0, 0, 0}});
  const Array<vec4> places = has_balls ? balls.places : Array<vec4>(device, {vec4(0, -1, 0, 0)});
  const Array<vec3> colours = has_balls ? balls.colours : Array<vec3>(device, {nowhere});
  Array<vec3> lower = empty<vec3>(device, places.size()), upper = empty<vec3>(device, places.size());
  launch(boxes, places.size(), places, lower, upper);
  const bool asks_device = view.search == RaySearch::device;
  const Mesh mesh(points, triangles, {.ray_query = asks_device});
  const Bvh around(device, lower, upper);

  const CameraFrame frame = frame_of(view.camera, view.width, view.height);
  Array<std::uint32_t, 2> image = empty<std::uint32_t, 2>(device, {view.height, view.width});
  // The picture is drawn in strips if its progress is to be shown.
  const int strip = view.progress ? (view.height + kStrips - 1) / kStrips : view.height;
  for (int row = 0; row < view.height; row += strip) {
    const int rows = std::min(strip, view.height - row);
    launch(asks_device ? asks : walks, {rows, view.width}, image, mesh, normals, around, places, colours, balls.mirror,
           view.camera.eye, frame.forward, frame.right, frame.up, view.samples, row);
    if (!view.progress) continue;
    image.wait();
    view.progress(row + rows, view.height);
  }
  return {view.width, view.height, image.to_vector()};
}
