// Rays and triangles on the host, in large numbers: edges and vertices of closed meshes, with float64 as the judge.
#include <gtest/gtest.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/geometry/primitives.h>
#include <weft/weft.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace weft;

namespace {

struct Corners {
  vec3 a, b, c;
};
std::vector<Corners> triangles_of(const MeshData& m) {
  std::vector<Corners> triangles;
  for (std::size_t t = 0; t < m.indices.size(); t += 3) {
    auto p = [&](std::size_t k) { return m.points[std::size_t(m.indices[t + k])]; };
    triangles.push_back({p(0), p(1), p(2)});
  }
  return triangles;
}

class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}
  float between(double lo, double hi) { return float(lo + (hi - lo) * (bits_() * 0x1p-32)); }
  vec3 vector(double size) {
    const float x = between(-size, size), y = between(-size, size);
    return {x, y, between(-size, size)};
  }
  std::size_t below(std::size_t n) { return std::size_t(bits_()) % n; }

 private:
  std::mt19937 bits_;
};

struct Crossings {
  int count = 0, sum = 0;
};
class Triangles {
 public:
  explicit Triangles(const MeshData& m) : corners(triangles_of(m)) {
    for (const Corners& t : corners) {
      const vec3 middle = (t.a + t.b + t.c) / 3.f;
      const float radius = (std::max)({distance(middle, t.a), distance(middle, t.b), distance(middle, t.c)});
      balls_.push_back({double(middle.x), double(middle.y), double(middle.z), 1.02 * double(radius * radius)});
    }
  }
  /// \param all  also tests triangles that are far away from the ray
  Crossings crossed_by(const vec3& origin, const vec3& direction, bool all) const {
    const RayData<float> ray = ray_data(origin, direction);
    const double ox = double(origin.x), oy = double(origin.y), oz = double(origin.z);
    const double dx = double(direction.x), dy = double(direction.y), dz = double(direction.z);
    const double d2 = dx * dx + dy * dy + dz * dz;
    Crossings c;
    for (std::size_t i = 0; i < corners.size(); ++i) {
      const double x = balls_[i].x - ox, y = balls_[i].y - oy, z = balls_[i].z - oz, along = x * dx + y * dy + z * dz;
      if (!all && (x * x + y * y + z * z - balls_[i].radius2) * d2 > along * along) continue;
      const RayTriangle<float> hit = intersect_ray_triangle(ray, corners[i].a, corners[i].b, corners[i].c);
      c.count += hit.hit;
      c.sum += int(hit.sign);
    }
    return c;
  }
  std::vector<Corners> corners;

 private:
  struct Ball {
    double x, y, z, radius2;
  };
  std::vector<Ball> balls_;
};

/// A closed mesh, and points in the solid, well off its surface.
struct Solid {
  const char* name;
  MeshData mesh;
  std::vector<vec3> inside;
};
std::vector<Solid> solids() {
  std::vector<Solid> all;
  all.push_back({"box", shapes::box({2, 2, 2}, 2), {{0, 0, 0}, {0.5f, 0.25f, -0.5f}, {0.3f, -0.2f, 0.1f}}});
  all.push_back({"icosphere", shapes::icosphere(1, 1), {{0, 0, 0}, {0.3f, -0.2f, 0.1f}}});
  all.push_back({"uv sphere", shapes::uv_sphere(1, 8, 6), {{0, 0, 0}, {0.25f, 0, 0}}});
  all.push_back({"torus", shapes::torus(1, 0.5f, 8, 6), {{0.95f, 0, 0}, {0, 0, 0.9f}, {-0.9f, 0.1f, 0}}});
  all.push_back({"cone", shapes::cone(1, 2, 24), {{0, 0, 0}, {0.1f, -0.5f, 0}}});
  // This is a sphere pressed flat and bent, with points moved at random, and slivers.
  MeshData bent = shapes::icosphere(1, 1);
  Random random(5);
  for (vec3& p : bent.points) p = vec3{p.x + 0.3f * p.y, 1e-3f * p.y, p.z} * random.between(0.8, 1.2);
  all.push_back({"flat", bent, {{0, 0, 0}}});
  return all;
}

/// A place of the mesh that triangles share: a vertex, the middle of an edge, or any point of an edge.
vec3 shared_place(const std::vector<Corners>& triangles, Random& random) {
  const Corners& t = triangles[random.below(triangles.size())];
  switch (random.below(4)) {
    case 0: return t.a;
    case 1: return t.b;
    case 2: return (t.a + t.b) * 0.5f;
    default: return lerp(t.b, t.c, random.between(0, 1));
  }
}

TEST(RayTriangle, counts_of_rays_through_edges_and_vertices_are_right) {
  int rays = 0, wrong = 0;
  for (const Solid& solid : solids()) {
    const Triangles triangles(solid.mesh);
    Random random(17);
    auto expect = [&](const vec3& origin, const vec3& direction, bool inside) {
      const Crossings c = triangles.crossed_by(origin, direction, rays % 16 == 0);
      ++rays;
      if (c.count % 2 == int(inside) && c.sum == -int(inside)) return;
      if (++wrong < 5)
        ADD_FAILURE() << solid.name << ": from " << testing::PrintToString(origin) << " along "
                      << testing::PrintToString(direction) << (inside ? " (inside): " : ": ") << c.count
                      << " crossings with a sum of signs of " << c.sum;
    };
    for (int i = 0; i < 60000; ++i) {
      const vec3 inside = solid.inside[random.below(solid.inside.size())];
      expect(inside, shared_place(triangles.corners, random) - inside, true);
      // The origin is outside, on the lattice of the box or anywhere.
      vec3 outside = random.vector(4);
      if (i % 2) outside = vec3{std::rint(outside.x * 2), std::rint(outside.y * 2), std::rint(outside.z * 2)} * 0.5f;
      outside[int(random.below(3))] = random.below(2) ? 4.f : -4.f;
      expect(outside, shared_place(triangles.corners, random) - outside, false);
      // The ray goes along an axis or diagonal, through many edges at once.
      const vec3 along{float(random.below(3)) - 1, float(random.below(3)) - 1, float(random.below(3)) - 1};
      if (along == vec3{0, 0, 0}) continue;
      expect(inside, along, true);
      expect(shared_place(triangles.corners, random) - along * 8.f, along, false);
    }
  }
  EXPECT_GT(rays, 1000000);
  EXPECT_EQ(wrong, 0) << "of " << rays;
}

TEST(RayTriangle, counts_hold_far_from_the_origin_of_space) {
  const vec3 away{1e4f, -1e4f, 3e4f};
  int wrong = 0;
  for (Solid solid : solids()) {
    if (std::string(solid.name) == "flat") continue;  // rounding folds it onto itself there
    for (vec3& p : solid.mesh.points) p += away;
    const Triangles triangles(solid.mesh);
    Random random(3);
    for (int i = 0; i < 5000; ++i) {
      const vec3 inside = solid.inside[0] + away;
      const Crossings c = triangles.crossed_by(inside, shared_place(triangles.corners, random) - inside, true);
      wrong += c.count % 2 != 1 || c.sum != -1;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(RayTriangle, meets_one_of_two_coplanar_neighbours_on_their_edge) {
  // A ray pierces a square of two triangles at its diagonal, from either side.
  const vec3 a{0, 0, 0}, b{1, 0, 0}, c{1, 1, 0}, d{0, 1, 0};
  for (float x : {0.25f, 0.5f, 0.75f})
    for (float z : {-1.f, 1.f})
      for (const vec3& slant : {vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0.3f, -0.7f, 0}}) {
        const vec3 direction = vec3{0, 0, z} + slant, origin = vec3{x, x, 0} - direction * 2.f;
        const auto lower = intersect_ray_triangle(origin, direction, a, b, c);
        const auto upper = intersect_ray_triangle(origin, direction, a, c, d);
        EXPECT_EQ(lower.hit + upper.hit, 1);
        EXPECT_EQ(lower.sign + upper.sign, z < 0 ? 1 : -1);
        EXPECT_NEAR(lower.t + upper.t, 2, 1e-6);
      }
  // A ray at the vertex of a fan hits one of its triangles.
  for (int n = 3; n < 40; ++n) {
    int hits = 0;
    for (int i = 0; i < n; ++i) {
      auto at = [&](int k) {
        const double angle = 2 * 3.141592653589793 * (k % n) / n;
        return vec3{float(std::cos(angle)), float(std::sin(angle)), 0};
      };
      hits += intersect_ray_triangle(vec3{0, 0, 1}, vec3{0, 0, -1}, vec3{0, 0, 0}, at(i), at(i + 1)).hit;
    }
    EXPECT_EQ(hits, 1) << n;
  }
}

TEST(RayTriangle, agrees_with_float64) {
  Random random(11);
  int hits = 0, disagree = 0;
  for (int i = 0; i < 100000; ++i) {
    const vec3 o = random.vector(3), a = random.vector(1), b = random.vector(1), c = random.vector(1);
    const vec3 d = ((a + b + c) / 3.f + random.vector(1) - o) * random.between(0.3, 3);
    const auto got = intersect_ray_triangle(o, d, a, b, c);
    // Cramer's rule gives the exact hit.
    const vec3d oc = vec3d(o) - vec3d(c), ca = vec3d(a) - vec3d(c), cb = vec3d(b) - vec3d(c), dd(d);
    const double det = -dot(dd, cross(ca, cb));
    const double t = dot(oc, cross(ca, cb)) / det, u = dot(oc, cross(dd, cb)) / det, v = dot(oc, cross(ca, dd)) / det;
    const double margin = (std::min)({u, v, 1 - u - v, t});
    if (got.hit != (margin >= 0)) {
      ++disagree;
      EXPECT_LT(std::abs(margin), 1e-3) << i;
    }
    if (!got.hit || margin < 0) continue;
    ++hits;
    // The hit moves by this much if a vertex moves by an ulp: by the ulp over the sine of the angle to the plane.
    const double scale =
        1e-6 * length(dd) * (length(ca) + length(cb) + length(oc)) * (length(ca) + length(cb)) / std::abs(det);
    EXPECT_NEAR(got.t, t, scale * (1 + t)) << i;
    EXPECT_NEAR(got.u, u, scale * 4) << i;
    EXPECT_NEAR(got.v, v, scale * 4) << i;
    EXPECT_EQ(got.sign, det > 0 ? 1 : -1) << i;
  }
  EXPECT_GT(hits, 5000);
  EXPECT_LT(disagree, 30);
}

TEST(RayTriangle, is_hit_at_every_size_from_as_far_away_as_it_is_large) {
  for (int power = -18; power <= 18; ++power) {
    const double s = std::pow(10., power);
    const vec3d o = vec3d{0.3, 1, 0.2} * s, a = vec3d{-1, 0.1, -1} * s, b = vec3d{0.5, -0.1, 2} * s,
                c = vec3d{2, 0, -1} * s;
    for (const double length : {1., s}) {
      const vec3d d = vec3d{0.1, -1, -0.2} * length;
      const auto want = intersect_ray_triangle(o, d, a, b, c);
      const auto got = intersect_ray_triangle(vec3(o), vec3(d), vec3(a), vec3(b), vec3(c));
      ASSERT_TRUE(want.hit) << s;
      ASSERT_TRUE(got.hit) << s << ", direction " << length;
      EXPECT_NEAR(double(got.t) / want.t, 1, 1e-5) << s << ", direction " << length;
      EXPECT_NEAR(double(got.u), want.u, 1e-5) << s << ", direction " << length;
      EXPECT_NEAR(double(got.v), want.v, 1e-5) << s << ", direction " << length;
    }
  }
}

TEST(RayTriangle, bounds_are_closed_at_zero_and_open_at_the_limit) {
  const vec3 a{0, 0, 0}, b{1, 0, 0}, c{0, 1, 0}, down{0, 0, -2};
  const vec3 above{0.25f, 0.25f, 1};
  const auto hit = intersect_ray_triangle(above, down, a, b, c);
  EXPECT_TRUE(hit.hit);
  EXPECT_EQ(hit.t, 0.5f) << "in multiples of the direction";
  EXPECT_EQ(hit.u, 0.5f) << "the weight of the first vertex";
  EXPECT_EQ(hit.v, 0.25f) << "the weight of the second";
  EXPECT_EQ(hit.sign, 1);
  EXPECT_EQ(intersect_ray_triangle(above, down, b, a, c).sign, -1);
  EXPECT_FALSE(intersect_ray_triangle(above, down, a, b, c, 0.5f).hit);
  EXPECT_TRUE(intersect_ray_triangle(above, down, a, b, c, std::nextafter(0.5f, 1.f)).hit);
  EXPECT_FALSE(intersect_ray_triangle(above, -down, a, b, c).hit);
  EXPECT_EQ(intersect_ray_triangle(above, -down, a, b, c).t, 0);
  EXPECT_TRUE(intersect_ray_triangle(vec3{0.25f, 0.25f, 0}, down, a, b, c).hit) << "t = 0";
  EXPECT_FALSE(intersect_ray_triangle(vec3{0.25f, 0.25f, 0}, down, a, b, c, 0.f).hit);
}

TEST(RayTriangle, misses_what_has_no_area_and_what_is_no_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const vec3 o{0.25f, 0.25f, 1}, d{0, 0, -1}, a{0, 0, 0}, b{1, 0, 0}, c{0, 1, 0};
  ASSERT_TRUE(intersect_ray_triangle(o, d, a, b, c).hit);
  EXPECT_FALSE(intersect_ray_triangle(o, d, a, a, a).hit);
  EXPECT_FALSE(intersect_ray_triangle(vec3{0.5f, 0.5f, 1}, d, b, c, b).hit);
  EXPECT_FALSE(intersect_ray_triangle(vec3{0.5f, 0, 1}, d, a, b, vec3{2, 0, 0}).hit) << "on one line";
  EXPECT_FALSE(intersect_ray_triangle(vec3{-1, 0.25f, 0}, vec3{1, 0, 0}, a, b, c).hit) << "edge-on";
  for (float bad : {nan, infinity, -infinity})
    for (int k = 0; k < 3; ++k) {
      vec3 v = c, from = o, along = d;
      v[k] = from[k] = along[k] = bad;
      EXPECT_FALSE(intersect_ray_triangle(o, d, a, b, v).hit);
      EXPECT_FALSE(intersect_ray_triangle(from, d, a, b, c).hit);
      EXPECT_FALSE(intersect_ray_triangle(o, along, a, b, c).hit);
    }
  EXPECT_FALSE(intersect_ray_triangle(o, vec3{0, 0, 0}, a, b, c).hit);
  EXPECT_FALSE(intersect_ray_triangle(vec3{0.25f, 0.25f, 0}, vec3{0, 0, 0}, a, b, c).hit);
  EXPECT_FALSE(intersect_ray_triangle(o, d, a, b, c, nan).hit);
}

TEST(RayBox, is_missed_by_what_is_no_ray) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const vec3 o{-1, 0.5f, 0.5f}, lower{0, 0, 0}, upper{1, 1, 1};
  for (int axis = 0; axis < 3; ++axis) {
    vec3 d{0, 0, 0};
    d[axis] = 1;
    vec3 from{0.5f, 0.5f, 0.5f};
    from[axis] = -1;
    ASSERT_TRUE(intersect_ray_box(from, d, lower, upper).hit);
    for (float bad : {nan, infinity, -infinity})
      for (int k = 0; k < 3; ++k) {
        vec3 o = from, along = d;
        o[k] = along[k] = bad;
        EXPECT_FALSE(intersect_ray_box(o, d, lower, upper).hit) << bad << " at " << k;
        EXPECT_FALSE(intersect_ray_box(from, along, lower, upper).hit) << bad << " along " << k;
      }
  }
  EXPECT_FALSE(intersect_ray_box(o, vec3{0, 0, 0}, lower, upper).hit);
}

TEST(RayBox, never_loses_a_triangle_that_the_ray_meets) {
  Random random(23);
  int hits = 0, exact = 0;
  for (const vec3& away : {vec3{0, 0, 0}, vec3{1e4f, -3e4f, 1e4f}})
    for (int i = 0; i < 200000; ++i) {
      // The boxes are small and often flat, in a scene of size 1; the rays graze edges and corners.
      vec3 p[3];
      const vec3 middle = random.vector(0.5), size{0.1f, random.below(2) ? 0.1f : 0.f, random.below(2) ? 0.1f : 1e-6f};
      for (vec3& v : p) v = middle + random.vector(1) * size + away;
      const vec3 lower = weft::min(weft::min(p[0], p[1]), p[2]), upper = weft::max(weft::max(p[0], p[1]), p[2]);
      vec3 o = random.vector(1) + away;
      vec3 d = lerp(p[0], p[1], random.below(2) ? 0.f : random.between(0, 1)) - o;
      if (random.below(4) == 0) o[int(random.below(3))] = p[0][int(random.below(3))];
      if (random.below(8) == 0) d[int(random.below(3))] = random.below(2) ? 0.f : -0.f;
      const RayData<float> ray = ray_data(o, d, vec3{-1, -1, -1} + away, vec3{1, 1, 1} + away);
      const auto hit = intersect_ray_triangle(ray, p[0], p[1], p[2]);
      if (!hit.hit) continue;
      ++hits;
      const auto box = intersect_ray_box(ray, lower, upper);
      EXPECT_TRUE(box.hit) << i;
      // For a triangle that is nearly seen edge-on, no t is exact.
      const vec3 normal = cross(p[1] - p[0], p[2] - p[0]);
      const float longest = length(upper - lower);
      if (std::abs(dot(normal, d)) > 0.1f * longest * longest * length(d)) {
        ++exact;
        EXPECT_LE(box.enter, hit.t) << i;
        EXPECT_GE(box.leave, hit.t) << i;
      }
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_GT(hits, 50000);
  EXPECT_GT(exact, 10000);
}

TEST(RayBox, agrees_with_float64_away_from_its_edges) {
  Random random(29);
  int hits = 0;
  for (int i = 0; i < 200000; ++i) {
    const vec3 p = random.vector(1), q = random.vector(1), o = random.vector(2);
    const vec3 d = lerp(p, q, 0.5f) + random.vector(1) - o;
    const vec3 lower = weft::min(p, q), upper = weft::max(p, q);
    const float max_t = random.between(0, 2);
    const auto got = intersect_ray_box(o, d, lower, upper, max_t);
    double enter = 0, leave = 1e300;
    for (int k = 0; k < 3; ++k) {
      const double s = (double(lower[k]) - double(o[k])) / double(d[k]),
                   t = (double(upper[k]) - double(o[k])) / double(d[k]);
      enter = (std::max)(enter, (std::min)(s, t)), leave = (std::min)(leave, (std::max)(s, t));
    }
    // This is exact: differences and products of floats of these sizes fit into a double.
    bool before = max_t > 0;
    for (int k = 0; k < 3; ++k) {
      const double way = d[k] < 0 ? double(o[k]) - double(upper[k]) : double(lower[k]) - double(o[k]);
      before = before && (d[k] == 0 || way < std::abs(double(d[k])) * double(max_t));
    }
    const bool hit = enter <= leave && before;
    EXPECT_GE(got.hit, hit) << i;
    EXPECT_LE(got.hit, before) << i;
    double slowest = 1;
    for (int k = 0; k < 3; ++k) slowest = (std::min)(slowest, std::abs(double(d[k])));
    const double tolerance = 1e-5 / slowest;
    if (got.hit != hit) {
      EXPECT_LT(std::abs(leave - enter), tolerance);
    }
    if (!hit) continue;
    ++hits;
    EXPECT_NEAR(got.enter, enter, tolerance);
    EXPECT_NEAR(got.leave, leave, tolerance);
  }
  EXPECT_GT(hits, 5000);
}

TEST(RayBox, of_rays_along_axes_and_of_boxes_without_volume) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const vec3 lower{0, 0, 0}, upper{1, 1, 1};
  for (int k = 0; k < 3; ++k)
    for (float s : {-1.f, 1.f})
      for (float zero : {0.f, -0.f})
        for (float place : {0.f, 0.5f, 1.f}) {
          vec3 o(place), d(zero);
          o[k] = s < 0 ? 3.f : -2.f, d[k] = s;
          // On the surface, the plane's distance is 0, and the inverse of the direction would be infinite.
          const auto box = intersect_ray_box(o, d, lower, upper);
          EXPECT_TRUE(box.hit);
          EXPECT_NEAR(box.enter, 2, 1e-5);
          EXPECT_NEAR(box.leave, 3, 1e-5);
          EXPECT_FALSE(intersect_ray_box(o, -d, lower, upper).hit);
          EXPECT_FALSE(intersect_ray_box(o, d, lower, upper, 1.9f).hit) << "too far";
          EXPECT_FALSE(intersect_ray_box(o, d, lower, upper, 2.f).hit) << "entered at the limit";
          EXPECT_TRUE(intersect_ray_box(o, d, lower, upper, std::nextafter(2.f, 3.f)).hit) << "entered before it";
          vec3 beside = o;
          beside[(k + 1) % 3] = 1.001f;
          EXPECT_FALSE(intersect_ray_box(beside, d, lower, upper).hit);
          EXPECT_TRUE(intersect_ray_box(o, d, vec3(place), vec3(place)).hit) << "a point";
          EXPECT_FALSE(intersect_ray_box(o, d, vec3(infinity), vec3(-infinity)).hit) << "empty";
          EXPECT_FALSE(intersect_ray_box(o, d, upper, lower - vec3(1)).hit) << "empty";
          EXPECT_TRUE(intersect_ray_box(o, d, vec3(-infinity), vec3(infinity)).hit) << "all of space";
        }
  const vec3 inside{0.5f, 0.5f, 0.5f};
  EXPECT_EQ(intersect_ray_box(inside, vec3{0, 0, 1}, lower, upper).enter, 0);
  EXPECT_FALSE(intersect_ray_box(inside, vec3{0, 0, 0}, lower, upper).hit) << "no direction";
  EXPECT_FALSE(intersect_ray_box(inside, vec3{0, 0, infinity}, lower, upper).hit);
  EXPECT_FALSE(intersect_ray_box(inside, vec3{nan, nan, nan}, lower, upper).hit);
  EXPECT_FALSE(intersect_ray_box(inside, vec3{0, 0, 1}, lower, upper, 0.f).hit);
}

}  // namespace
