// Rays through volumes: where they meet a ball, how that moves, and which parts lie in leaves, against the host's
// search.
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/runtime/volume/volume.h>
#include <weft/runtime/volume/volume_ray.h>

#include <cmath>
#include <random>

#include "../device_test.h"

using namespace weft;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(VolumeRay);

constexpr float kRadius = 1.2f, kVoxel = 0.1f;

/// The distance from a ball around (1, 2, 3), in a band of three voxels on both sides; elsewhere outside.
template <class T>
Volume ball(const Device& device) {
  constexpr int n = 32;
  std::vector<T> values;
  for (int x = 0; x < n; ++x)
    for (int y = 0; y < n; ++y)
      for (int z = 0; z < n; ++z) {
        const auto along = [](int k) { return (float(k) - 16) * kVoxel; };
        const float d = std::sqrt(along(x) * along(x) + along(y) * along(y) + along(z) * along(z)) - kRadius;
        values.push_back(T(std::clamp(d, -3 * kVoxel, 3 * kVoxel)));
      }
  VolumeOptions options{.grid_class = VolumeClass::level_set};
  options.matrix = mat33d::identity() * double(kVoxel);
  options.translation = vec3d(vec3{1, 2, 3}) - vec3d(16 * double(kVoxel));
  return Volume::from_dense<T>(device, values, {n, n, n}, {}, T(3 * kVoxel), options);
}
constexpr vec3 kMiddle{1, 2, 3};

struct Ray {
  vec3 origin, direction;
};
std::vector<Ray> rays(int count) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<Ray> made{
      {{-5, 2, 3}, {1, 0, 0}}, {{1, 2, 9}, {0, 0, -2}}, {{1, 2, 3}, {0, 1, 0}}, {{-5, 9, 3}, {1, 0, 0}}};
  while (int(made.size()) < count) {
    const vec3 o{number(random), number(random), number(random)}, d{number(random), number(random), number(random)};
    made.push_back({kMiddle + o * 4.f, d});
  }
  return made;
}

/// The first t >= 0 at which a ray meets the ball; -1: none.
double exact(const Ray& ray) {
  const vec3d o = vec3d(ray.origin - kMiddle), d = vec3d(ray.direction);
  const double a = dot(d, d), b = dot(o, d), c = dot(o, o) - double(kRadius) * double(kRadius), root = b * b - a * c;
  if (root < 0) return -1;
  const double near = (-b - std::sqrt(root)) / a, far = (-b + std::sqrt(root)) / a;
  return near >= 0 ? near : far >= 0 ? far : -1;
}
/// How near a ray comes to the ball's middle: one that grazes the ball may meet it or not.
double nearest(const Ray& ray) {
  const vec3d o = vec3d(ray.origin - kMiddle), d = vec3d(ray.direction);
  return std::sqrt(std::max(0., dot(o, o) - dot(o, d) * dot(o, d) / dot(d, d)));
}

template <class T>
void expect_hits(const Device& device, int count) {
  const std::vector<Ray> asked = rays(count);
  std::vector<vec3> origins, directions;
  for (const Ray& r : asked) origins.push_back(r.origin), directions.push_back(r.direction);
  const auto t = zeros<float>(device, count);
  const auto normals = zeros<vec3>(device, count);
  launch(kernel("cast",
                [](Var<VolumeArrays> volume, Arr<const vec3> o, Arr<const vec3> d, Arr<float> t, Arr<vec3> normals) {
                  Int i = tid();
                  const VolumeRayHit hit = volume_ray<T>(volume, o[i], d[i], 100.f);
                  t[i] = select(hit.hit, hit.t, -1.f);
                  normals[i] = hit.normal;
                }),
         count, ball<T>(device), Array<vec3>(device, origins), Array<vec3>(device, directions), t, normals);
  const std::vector<float> found = t.to_vector();
  const std::vector<vec3> turned = normals.to_vector();
  for (std::size_t k = 0; k < asked.size(); ++k) {
    if (std::abs(nearest(asked[k]) - double(kRadius)) < 0.02) continue;
    const double wanted = exact(asked[k]);
    const double length = std::sqrt(double(dot(asked[k].direction, asked[k].direction)));
    // Between voxels the ball is flatter, by up to 2.1e-3; a ray that grazes it goes farther through that.
    const double graze = nearest(asked[k]) / double(kRadius), steep = std::sqrt(std::max(1e-3, 1 - graze * graze));
    EXPECT_NEAR(double(found[k]) * length, wanted < 0 ? -length : wanted * length, 2.5e-3 / steep) << k;
    if (wanted < 0) continue;
    const vec3 out = (asked[k].origin + asked[k].direction * found[k] - kMiddle) / kRadius;
    EXPECT_GT(dot(out, turned[k]), 0.995f);
  }
}

TEST_P(VolumeRay, meets_a_ball_where_its_equation_says) {
  const int count = on_reference() ? 40 : 2000;
  expect_hits<float>(device(), count);
  if (on_reference()) return;
  expect_hits<half>(device(), count);
  expect_hits<double>(device(), count);
}

TEST_P(VolumeRay, that_is_no_ray_meets_nothing) {
  const float nan = std::nanf(""), inf = INFINITY;
  const std::vector<vec3> origins{{nan, 0, 0}, {-5, 2, 3}, {-5, 2, 3}, {inf, 2, 3}, {-5, 2, 3}};
  const std::vector<vec3> directions{{1, 0, 0}, {0, 0, 0}, {nan, 0, 0}, {-1, 0, 0}, {inf, 0, 0}};
  const auto hits = zeros<int>(device(), 7);
  const auto cast =
      kernel("cast", [](Var<VolumeArrays> volume, Arr<const vec3> o, Arr<const vec3> d, Float max_t, Arr<int> hits) {
        Int i = tid();
        hits[i] = Int(volume_ray<float>(volume, o[i], d[i], max_t).hit);
      });
  const Volume volume = ball<float>(device());
  launch(cast, 5, volume, Array<vec3>(device(), origins), Array<vec3>(device(), directions), 100.f, hits);
  const Array<vec3> from(device(), {vec3{-5, 2, 3}}), to(device(), {vec3{1, 0, 0}});
  launch(cast, 1, volume, from, to, 4.7f, hits.slice(5, 6));
  launch(cast, 1, Volume::allocate_by_voxels<float>(device(), {}, 1.f), from, to, 100.f, hits.slice(6, 7));
  EXPECT_EQ(hits.to_vector(), std::vector<int>(7, 0));
  launch(cast, 1, volume, from, to, 4.9f, hits.slice(5, 6));
  EXPECT_EQ(hits.at(5), 1);
}

TEST_P(VolumeRay, moves_with_its_origin_and_with_the_values) {
  const int count = 30;
  std::vector<vec3> origins, directions;
  std::vector<Ray> asked;
  for (const Ray& r : rays(200)) {
    if (int(asked.size()) == count || exact(r) < 0 || nearest(r) > 0.9 * double(kRadius)) continue;
    asked.push_back(r);
    origins.push_back(r.origin), directions.push_back(r.direction);
  }
  Array<vec3> o(device(), origins), d(device(), directions);
  o.requires_grad(), d.requires_grad();
  Array<float> t = zeros<float>(device(), std::int64_t(asked.size()));
  t.requires_grad();
  const Volume volume = ball<float>(device());
  volume.requires_grad();
  const auto cast = kernel("cast", [](Var<VolumeArrays> volume, Arr<const vec3> o, Arr<const vec3> d, Arr<float> t) {
    Int i = tid();
    t[i] = volume_ray<float>(volume, o[i], d[i], 100.f).t;
  });
  Tape tape;
  tape.record([&] { launch(cast, t.size(), volume, o, d, t); });
  tape.backward({{t, ones_like(t)}});
  const std::vector<vec3> by_origin = o.grad().to_vector(), by_direction = d.grad().to_vector();
  double sum = 0;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const double found = exact(asked[k]);
    const vec3d n = (vec3d(asked[k].origin - kMiddle) + vec3d(asked[k].direction) * found) / double(kRadius);
    const double along = dot(n, vec3d(asked[k].direction));
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(double(by_origin[k][c]), -n[c] / along, 0.05 * (1 + std::abs(1 / along))) << k;
      EXPECT_NEAR(double(by_direction[k][c]), -n[c] / along * found, 0.05 * (1 + std::abs(found / along))) << k;
    }
    sum -= 1 / along;
  }
  // All values together move the surface as a whole.
  double values = 0;
  for (const float g : volume.values<float>().grad().contiguous().reshape<1>({-1}).to_vector()) values += double(g);
  EXPECT_NEAR(values, sum, 0.02 * std::abs(sum) + 0.2);
}

// ---- Segments

TEST_P(VolumeRay, has_its_parts_in_leaves) {
  const std::vector<vec3i> voxels{{0, 0, 0}, {8, 0, 0}, {40, 3, 2}, {200, 5, 5}, {-4000, 0, 0}, {16, 8, 0}};
  const Volume volume = Volume::allocate_by_tiles<float>(device(), voxels, 1.f);
  const auto in_leaf = [&](const vec3d& p) {
    for (const vec3i& v : voxels) {
      bool inside = true;
      for (int k = 0; k < 3; ++k) inside = inside && int(std::floor(p[k])) >> 3 == v[k] >> 3;
      if (inside) return true;
    }
    return false;
  };
  std::vector<Ray> asked{{{-4100, 1.5f, 1.5f}, {1, 0, 0}}, {{300, 5.5f, 5.5f}, {-2, 0, 0}}, {{4, 4, 4}, {0, 0, 1}}};
  std::mt19937 random(2);
  std::uniform_real_distribution<float> number(-1, 1);
  while (asked.size() < 60) {
    const vec3 d{1 + number(random), number(random) * 0.3f, number(random) * 0.3f};
    asked.push_back({{number(random) * 20, 4 + number(random) * 8, 4 + number(random) * 8}, d});
  }
  std::vector<vec3> origins, directions;
  for (const Ray& r : asked) origins.push_back(r.origin), directions.push_back(r.direction);
  constexpr int most = 16;
  const auto found = zeros<vec2>(device(), std::int64_t(asked.size()) * most);
  launch(kernel("parts",
                [](Var<VolumeArrays> volume, Arr<const vec3> o, Arr<const vec3> d, Arr<vec2> parts) {
                  Int i = tid(), n = 0;
                  VolumeSegments segments(volume, o[i], d[i], 9000.f);
                  Float begin = 0.f, end = 0.f;
                  While (segments.next(begin, end)) {
                    parts[i * most + n] = Vec2(begin, end);
                    n += 1;
                  }
                }),
         std::int64_t(asked.size()), volume, Array<vec3>(device(), origins), Array<vec3>(device(), directions), found);
  const std::vector<vec2> parts = found.to_vector();
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const vec2* const own = parts.data() + k * most;
    double length = 0;
    for (int n = 0; n < most && own[n].y > 0; ++n) {
      EXPECT_LT(own[n].x, own[n].y);
      if (n > 0) EXPECT_GT(own[n].x, own[n - 1].y);
      length += double(own[n].y - own[n].x);
      const vec3d middle = vec3d(asked[k].origin) + vec3d(asked[k].direction) * (double(own[n].x + own[n].y) / 2);
      EXPECT_TRUE(in_leaf(middle)) << k;
    }
    double expected = 0;
    constexpr double step = 0.01;
    for (double t = step / 2; t < (k < 2 ? 4400 : 400); t += step)
      if (in_leaf(vec3d(asked[k].origin) + vec3d(asked[k].direction) * t)) expected += step;
    EXPECT_NEAR(length, expected, 0.1) << k;
  }
}

TEST_P(VolumeRay, finds_nothing_by_the_handle_of_nothing) {
  const auto hits = zeros<int>(device(), 2);
  launch(kernel("by handle",
                [](UInt64 volume, Arr<int> hits) {
                  hits[0] = Int(volume_ray<float>(volume, Vec3(0.f, 0.f, 0.f), Vec3(1.f, 0.f, 0.f), 10.f).hit);
                  VolumeSegments segments(volume, Vec3(0.f, 0.f, 0.f), Vec3(1.f, 0.f, 0.f), 10.f);
                  Float begin = 0.f, end = 0.f;
                  While (segments.next(begin, end)) {
                    hits[1] += 1;
                  }
                }),
         1, std::uint64_t(0), hits);
  EXPECT_EQ(hits.to_vector(), std::vector<int>({0, 0}));
}

}  // namespace
