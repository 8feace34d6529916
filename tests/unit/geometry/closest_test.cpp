// Closest points and overlaps on the host, against a search in float64, for triangles and edges of every shape.
#include <gtest/gtest.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/geometry/primitives.h>
#include <weft/weft.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

using namespace weft;

namespace {

class Random {
 public:
  explicit Random(unsigned seed) : bits_(seed) {}
  double between(double lo, double hi) { return lo + (hi - lo) * (bits_() * 0x1p-32); }
  vec3 vector(double size) {
    const double x = between(-size, size), y = between(-size, size);
    return vec3(vec3d{x, y, between(-size, size)});
  }
  int below(int n) { return int(bits_() % unsigned(n)); }

 private:
  std::mt19937 bits_;
};

double limited(double x) { return std::clamp(x, 0., 1.); }
/// The squared distance of the origin from the segment, in float64.
double edge_distance_sq(const vec3d& a, const vec3d& b) {
  const vec3d d = b - a;
  const double d2 = length_sq(d);
  return length_sq(a + d * (d2 > 0 ? limited(-dot(a, d) / d2) : 0.));
}
/// The squared distance of a point from a triangle, in float64: by the edges, and the plane if it is above it.
double true_distance_sq(const vec3& p, const vec3& a, const vec3& b, const vec3& c) {
  const vec3d v[] = {vec3d(a) - vec3d(p), vec3d(b) - vec3d(p), vec3d(c) - vec3d(p)};
  double best = 1e300;
  for (int k = 0; k < 3; ++k) best = (std::min)(best, edge_distance_sq(v[k], v[(k + 1) % 3]));
  const vec3d n = cross(v[1] - v[0], v[2] - v[0]);
  bool inside = length_sq(n) > 0;
  for (int k = 0; k < 3; ++k) inside = inside && dot(cross(v[k], v[(k + 1) % 3]), n) > 0;
  return inside ? (std::min)(best, dot(n, v[0]) * dot(n, v[0]) / length_sq(n)) : best;
}

/// Makes a triangle: of any shape, a needle, one with an angle near 180 degrees, or one without area.
void make_triangle(Random& random, vec3& a, vec3& b, vec3& c) {
  a = random.vector(1), b = random.vector(1), c = random.vector(1);
  const float thin = float(std::exp2(random.between(-30, 0)));
  switch (random.below(8)) {
    case 0: c = b + random.vector(thin); break;
    case 1: c = lerp(a, b, float(random.between(0, 1))) + random.vector(thin); break;
    case 2: c = b; break;
    case 3: c = a; break;
    case 4: b = c = a; break;
    case 5: c = a + (b - a) * 2.f; break;
    default: break;
  }
}

TEST(ClosestPoint, on_triangles_of_every_shape) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    vec3 a, b, c;
    make_triangle(random, a, b, c);
    const float far = float(std::exp2(random.between(-3, 8)));
    const vec3 p = random.below(4) ? random.vector(1) * far : lerp(lerp(a, b, 0.3f), c, float(random.between(0, 1)));
    const auto got = closest_point_triangle(p, a, b, c);
    const double expected = std::sqrt(true_distance_sq(p, a, b, c));
    // For a point inside a sliver, a point of an edge may be the answer: its error is at most the sliver's width.
    const double narrow = double(length(cross(b - a, c - a))) / (1e-30 + double(length(b - a) * length(c - a)));
    const double tolerance = (narrow < 1e-4 ? 1e-5 : 2e-6) * (std::max)(1., double(length(p)));
    EXPECT_NEAR(std::sqrt(double(got.distance_sq)), expected, tolerance) << i;
    EXPECT_NEAR(double(distance(got.point, p)), expected, tolerance) << i;
    const vec3 w = got.weights;
    EXPECT_GE((std::min)({w.x, w.y, w.z}), -2e-7f) << i;
    EXPECT_NEAR(w.x + w.y + w.z, 1, 1e-6) << i;
    EXPECT_LE(double(distance(got.point, a * w.x + b * w.y + c * w.z)), 1e-6) << i;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ClosestPoint, is_the_right_one_far_above_a_triangle) {
  // In float32, all points of the triangle are equally far away; the right one is the nearest to the foot.
  Random random(2);
  for (int i = 0; i < 50000; ++i) {
    const vec3 a = random.vector(1), b = random.vector(1), c = random.vector(1);
    const vec3d ab = vec3d(b) - vec3d(a), ac = vec3d(c) - vec3d(a), n = cross(ab, ac);
    const double sine = length(n) / (length(ab) * length(ac)), height = random.between(-3000, 3000);
    if (sine < 0.05) continue;
    const vec3 p = vec3(vec3d(random.vector(1)) + normalize(n) * height);
    const auto got = closest_point_triangle(p, a, b, c), exact = [&] {
      const auto d = closest_point_triangle(vec3d(p), vec3d(a), vec3d(b), vec3d(c));
      return TrianglePoint<float>{vec3(d.point), vec3(d.weights), float(d.distance_sq)};
    }();
    // The error is a few ulp of the height, scaled by how exactly the normal is known.
    EXPECT_LT(double(distance(got.point, exact.point)), 1e-6 * (1 + std::abs(height)) / sine) << i;
  }
}

TEST(ClosestPoint, of_triangles_of_every_size) {
  Random random(23);
  for (int power = -15; power <= 15; ++power)
    for (int i = 0; i < 200; ++i) {
      const double s = std::pow(10., power);
      const vec3d a(random.vector(1)), b(random.vector(1)), c(random.vector(1)), p(random.vector(i % 2 ? 1 : 0.2));
      if (length(cross(b - a, c - a)) < 0.1) continue;
      const auto want = closest_point_triangle(p, a, b, c);
      const auto got = closest_point_triangle(vec3(p * s), vec3(a * s), vec3(b * s), vec3(c * s));
      const double far = std::sqrt(want.distance_sq);
      ASSERT_NEAR(std::sqrt(double(got.distance_sq)) / s, far, 1e-5) << s << ", " << i;
      ASSERT_LE(length(vec3d(got.weights) - want.weights), 2e-4) << s << ", " << i;
      ASSERT_LE(length(vec3d(got.point) / s - want.point), 1e-4) << s << ", " << i;
      // float64 has a larger range.
      const double large = std::exp2(power * 33);
      const auto same = closest_point_triangle(p * large, a * large, b * large, c * large);
      ASSERT_NEAR(std::sqrt(same.distance_sq) / large, far, 1e-12) << large << ", " << i;
      ASSERT_LE(length(same.weights - want.weights), 1e-9) << large << ", " << i;
    }
  // The query may also be far from a small triangle.
  const auto far = closest_point_triangle(vec3{0, 1e15f, 0}, vec3{0, 0, 0}, vec3{1e-15f, 0, 0}, vec3{0, 0, 1e-15f});
  EXPECT_NEAR(double(far.distance_sq), 1e30, 1e24);
}

TEST(ClosestPoint, is_the_vertex_itself_in_its_region) {
  const vec3 a{0.1f, 0.2f, 0.3f}, b{1.3f, 0.1f, 0.2f}, c{0.3f, 1.7f, 0.4f};
  for (const auto& [v, other1, other2] : {std::tuple(a, b, c), std::tuple(b, c, a), std::tuple(c, a, b)}) {
    const vec3 beyond = v + (v - other1) + (v - other2) + vec3{0, 0, 0.5f};
    EXPECT_EQ(closest_point_triangle(beyond, a, b, c).point, v);
    EXPECT_EQ(closest_point_triangle(v, a, b, c).point, v);
    EXPECT_LT(closest_point_triangle(v, a, b, c).distance_sq, 1e-14f);
  }
  EXPECT_EQ(closest_point_triangle(c + (c - a) + (c - b), a, b, c).weights, (vec3{0, 0, 1}));
  const auto on_edge = closest_point_triangle(vec3{0.5f, -1, 0}, vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0});
  EXPECT_EQ(on_edge.weights, (vec3{0.5f, 0.5f, 0}));
  const auto inside = closest_point_triangle(vec3{0.25f, 0.25f, 9}, vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0});
  EXPECT_EQ(inside.weights, (vec3{0.5f, 0.25f, 0.25f}));
  EXPECT_EQ(inside.distance_sq, 81);
}

TEST(ClosestPoint, has_no_weight_of_a_vertex_away_from_its_edge) {
  Random random(4);
  for (int i = 0; i < 10000; ++i) {
    const vec3 p[3] = {random.vector(1), random.vector(1), random.vector(1)};
    const vec3 normal = cross(p[1] - p[0], p[2] - p[0]);
    for (int k = 0; k < 3; ++k) {
      const vec3 &from = p[(k + 1) % 3], &to = p[(k + 2) % 3];
      // The query is above an edge, well outside of the triangle.
      const vec3 outwards = normalize(cross(to - from, normal));
      const vec3 query = lerp(from, to, float(random.between(0.01, 0.99))) + outwards * 0.3f;
      const vec3 w = closest_point_triangle(query, p[0], p[1], p[2]).weights;
      EXPECT_EQ(w[k], 0) << i << " " << k;
      EXPECT_GE((std::min)({w.x, w.y, w.z}), 0) << i;
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ClosestPoint, of_edges_of_every_kind) {
  Random random(3);
  for (int i = 0; i < 100000; ++i) {
    vec3 p1 = random.vector(1), q1 = random.vector(1), p2 = random.vector(1), q2 = random.vector(1);
    const float thin = float(std::exp2(random.between(-30, 0)));
    switch (random.below(8)) {
      case 0: q2 = p2 + (q1 - p1); break;                              // parallel
      case 1: q2 = p2 - (q1 - p1) * 2.f + random.vector(thin); break;  // nearly parallel
      case 2: q1 = p1; break;
      case 3: q2 = p2 + random.vector(thin); break;
      case 4: q1 = p1, q2 = p2; break;
      case 5: p2 = lerp(p1, q1, float(random.between(-1, 2))), q2 = lerp(p1, q1, float(random.between(-1, 2))); break;
      default: break;
    }
    const auto got = closest_point_edge_edge(p1, q1, p2, q2);
    // The squared distance is convex in s if t is the best for s, so a search by sections finds it.
    const vec3d a(p1), d(vec3d(q1) - a), b(p2), e(vec3d(q2) - b);
    auto at = [&](double s) { return edge_distance_sq(b - (a + d * s), b + e - (a + d * s)); };
    double lo = 0, hi = 1;
    for (int k = 0; k < 80; ++k) {
      const double s = lo + (hi - lo) / 3, t = hi - (hi - lo) / 3;
      (at(s) < at(t) ? hi : lo) = at(s) < at(t) ? t : s;
    }
    const double expected = std::sqrt((std::min)({at(0), at(1), at(lo)}));
    EXPECT_NEAR(double(got.distance), expected, 2e-6) << i;
    EXPECT_GE((std::min)(got.s, got.t), 0) << i;
    EXPECT_LE((std::max)(got.s, got.t), 1) << i;
    EXPECT_NEAR(double(distance(lerp(p1, q1, got.s), lerp(p2, q2, got.t))), expected, 2e-6) << i;
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ClosestPoint, of_edges_that_are_points_by_their_length) {
  const vec3 p1{0, 0, 0}, q1{0.01f, 0, 0}, p2{1, 1, 0}, q2{1, -1, 0};
  EXPECT_EQ(closest_point_edge_edge(p1, q1, p2, q2).s, 1);
  const auto point = closest_point_edge_edge(p1, q1, p2, q2, 1e-4f);
  EXPECT_EQ(point.s, 0);
  EXPECT_EQ(point.t, 0.5f);
  EXPECT_EQ(point.distance, 1);
  // For parallel edges side by side, the answer is at the first end.
  const auto parallel = closest_point_edge_edge(p1, vec3{4, 0, 0}, vec3{-1, 1, 0}, vec3{3, 1, 0});
  EXPECT_EQ(parallel.s, 0);
  EXPECT_EQ(parallel.t, 0.25f);
}

TEST(BoxDistance, of_points_and_segments) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const vec3 p = random.vector(1), q = random.vector(1), lower = weft::min(p, q), upper = weft::max(p, q);
    vec3 a = random.vector(3), b = random.vector(3);
    if (random.below(4) == 0) b[random.below(3)] = a[random.below(3)];
    if (random.below(8) == 0) b = a;
    if (random.below(4) == 0) {
      const int k = random.below(3);
      a[k] = b[k];
    }
    auto at = [&](double t) {
      double sum = 0;
      for (int k = 0; k < 3; ++k) {
        const double x = double(a[k]) + (double(b[k]) - double(a[k])) * t;
        const double out = x - std::clamp(x, double(lower[k]), double(upper[k]));
        sum += out * out;
      }
      return sum;
    };
    EXPECT_NEAR(double(distance_sq_point_box(a, lower, upper)), at(0), 1e-5) << i;
    double lo = 0, hi = 1;
    for (int k = 0; k < 80; ++k) {
      const double s = lo + (hi - lo) / 3, t = hi - (hi - lo) / 3;
      (at(s) < at(t) ? hi : lo) = at(s) < at(t) ? t : s;
    }
    const double expected = std::sqrt((std::min)({at(lo), at(0), at(1)}));
    EXPECT_NEAR(std::sqrt(double(distance_sq_segment_box(a, b, lower, upper))), expected, 3e-6) << i;
    const float radius = float(random.between(0, 2));
    if (std::abs(double(radius) - expected) > 1e-5) {
      EXPECT_EQ(intersect_capsule_box(a, b, radius, lower, upper), double(radius) > expected) << i;
    }
    if (std::abs(double(radius) - std::sqrt(at(0))) > 1e-5) {
      EXPECT_EQ(intersect_sphere_box(a, radius, lower, upper), double(radius) > std::sqrt(at(0))) << i;
    }
  }
}

TEST(Overlap, of_boxes_spheres_and_capsules_counts_touching) {
  const vec3 o{0, 0, 0}, one{1, 1, 1};
  EXPECT_TRUE(intersect_box_box(o, one, one, vec3(2)));
  EXPECT_FALSE(intersect_box_box(o, one, vec3{1.0001f, 0, 0}, vec3(2)));
  EXPECT_TRUE(intersect_box_box(o, one, vec3(0.5f), vec3(0.5f)));
  EXPECT_FALSE(intersect_box_box(o, one, vec3(0.75f), vec3(0.25f))) << "an empty box";
  EXPECT_FALSE(intersect_box_box(vec3(0.75f), vec3(0.25f), o, one));
  EXPECT_TRUE(intersect_sphere_box(vec3{3, 0.5f, 0.5f}, 2.f, o, one));
  EXPECT_FALSE(intersect_sphere_box(vec3{3, 0.5f, 0.5f}, 1.9999f, o, one));
  EXPECT_TRUE(intersect_sphere_box(vec3(0.5f), 0.f, o, one));
  EXPECT_FALSE(intersect_sphere_box(vec3(0.5f), -1.f, o, one));
  EXPECT_TRUE(intersect_capsule_box(vec3{-3, 3, 0.5f}, vec3{3, 3, 0.5f}, 2.f, o, one));
  EXPECT_FALSE(intersect_capsule_box(vec3{-3, 3, 0.5f}, vec3{3, 3, 0.5f}, 1.9999f, o, one));
  EXPECT_TRUE(intersect_capsule_box(vec3{-3, -3, -3}, vec3{3, 3, 3}, 0.f, o, one));
  EXPECT_FALSE(intersect_capsule_box(vec3(0.5f), vec3(0.5f), -1.f, o, one));
}

/// The distance of two triangles in float64: of edges from edges, and of vertices from the other's face; 0 if an edge
/// pierces the other.
double triangle_distance(const vec3 (&v)[3], const vec3 (&u)[3]) {
  double best = 1e300;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      best = (std::min)(
          best,
          closest_point_edge_edge(vec3d(v[i]), vec3d(v[(i + 1) % 3]), vec3d(u[j]), vec3d(u[(j + 1) % 3])).distance);
  for (int i = 0; i < 3; ++i) {
    best = (std::min)(best, std::sqrt(true_distance_sq(v[i], u[0], u[1], u[2])));
    best = (std::min)(best, std::sqrt(true_distance_sq(u[i], v[0], v[1], v[2])));
    const vec3d d = vec3d(v[(i + 1) % 3]) - vec3d(v[i]), e = vec3d(u[(i + 1) % 3]) - vec3d(u[i]);
    const bool pierced = intersect_ray_triangle(vec3d(v[i]), d, vec3d(u[0]), vec3d(u[1]), vec3d(u[2]), 1.).hit ||
                         intersect_ray_triangle(vec3d(u[i]), e, vec3d(v[0]), vec3d(v[1]), vec3d(v[2]), 1.).hit;
    if (pierced) return 0;
  }
  return best;
}

TEST(Overlap, of_triangles_of_every_shape) {
  Random random(6);
  int touching = 0, apart = 0;
  for (int i = 0; i < 60000; ++i) {
    vec3 v[3], u[3];
    make_triangle(random, v[0], v[1], v[2]);
    make_triangle(random, u[0], u[1], u[2]);
    const bool planar = random.below(3) == 0;
    for (int k = 0; k < 3; ++k) {
      if (planar) v[k].z = u[k].z = 0.5f;
    }
    if (random.below(8) == 0) u[random.below(3)] = v[random.below(3)];
    const double distance = triangle_distance(v, u);
    const bool got = intersect_tri_tri(v[0], v[1], v[2], u[0], u[1], u[2]);
    if (distance == 0 || distance > 1e-5) {
      EXPECT_EQ(got, distance == 0) << i << ", distance " << distance;
    }
    EXPECT_EQ(intersect_tri_tri(u[0], u[1], u[2], v[0], v[1], v[2]), got || distance == 0) << i;
    (got ? touching : apart) += 1;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(touching, 10000);
  EXPECT_GT(apart, 10000);
}

TEST(Overlap, of_triangles_that_touch_or_share_a_plane) {
  const vec3 a{0, 0, 0}, b{4, 0, 0}, c{0, 4, 0};
  auto with = [&](const vec3& d, const vec3& e, const vec3& f) {
    const bool one = intersect_tri_tri(a, b, c, d, e, f);
    EXPECT_EQ(intersect_tri_tri(f, d, e, c, a, b), one);
    EXPECT_EQ(intersect_tri_tri(b, a, c, e, d, f), one);
    return one;
  };
  EXPECT_TRUE(with({1, 1, 0}, {1, 1, 3}, {2, 1, 3})) << "a vertex on the face";
  EXPECT_FALSE(with({1, 1, 0.001f}, {1, 1, 3}, {2, 1, 3}));
  EXPECT_TRUE(with({2, -1, -1}, {2, -1, 1}, {2, 0, 0})) << "a vertex on an edge";
  EXPECT_TRUE(with(a, {-1, 0, 1}, {-1, -1, 0})) << "a vertex on a vertex";
  EXPECT_TRUE(with({1, 1, 0}, {1.5f, 1, 0}, {1, 1.5f, 0})) << "inside, in the plane";
  EXPECT_TRUE(with({-9, -9, 0}, {99, -9, 0}, {-9, 99, 0})) << "around, in the plane";
  EXPECT_TRUE(with(b, c, {4, 4, 0})) << "a shared edge in the plane";
  EXPECT_TRUE(with({2, 2, 0}, {4, 4, 0}, {3, 4, 0})) << "a vertex on an edge in the plane";
  EXPECT_FALSE(with({2.01f, 2, 0}, {4, 4, 0}, {3, 4, 0}));
  EXPECT_FALSE(with({1, 1, 1}, {2, 1, 1}, {1, 2, 1})) << "parallel planes";
  EXPECT_TRUE(with({1, 1, -1}, {1, 1, 1}, {1, 1, 1})) << "an edge through the face";
  EXPECT_TRUE(with({1, 1, 0}, {1, 1, 0}, {1, 1, 0})) << "a point on the face";
  EXPECT_FALSE(with({1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
  EXPECT_FALSE(with({3, 3, 0}, {3, 3, 0}, {3, 3, 0}));
  // Neither triangle has area.
  auto segments = [](const vec3& p, const vec3& q, const vec3& r, const vec3& s) {
    return intersect_tri_tri(p, q, q, r, s, r);
  };
  EXPECT_TRUE(segments({0, 0, 0}, {2, 2, 0}, {0, 2, 0}, {2, 0, 0}));
  EXPECT_FALSE(segments({0, 0, 0}, {2, 2, 0}, {0, 2, 1}, {2, 0, 1}));
  EXPECT_FALSE(segments({0, 0, 0}, {2, 2, 0}, {5, 4, 0}, {3, 6, 0})) << "in one plane";
  EXPECT_TRUE(segments({0, 0, 0}, {2, 2, 2}, {1, 1, 1}, {3, 3, 3})) << "on one line";
  EXPECT_FALSE(segments({0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3})) << "on one line";
  EXPECT_FALSE(segments({0, 0, 0}, {1, 0, 0}, {0, 1, 1}, {1, 1, 1})) << "parallel";
  EXPECT_TRUE(segments(a, a, a, a));
  EXPECT_FALSE(segments(a, a, b, b));
}

TEST(SolidAngle, sums_to_the_winding_number) {
  const double full = 4 * std::numbers::pi;
  Random random(8);
  for (const MeshData& m : {shapes::torus(), shapes::icosphere(1, 2), shapes::box()}) {
    for (int i = 0; i < 50; ++i) {
      const vec3 p = random.vector(1.5);
      double sum = 0;
      RayData<float> ray = ray_data(p, vec3{0.31f, 0.52f, 0.7f});
      int crossings = 0;
      for (std::size_t t = 0; t < m.indices.size(); t += 3) {
        auto at = [&](std::size_t k) { return m.points[std::size_t(m.indices[t + k])]; };
        sum += double(solid_angle(p, at(0), at(1), at(2)));
        crossings += intersect_ray_triangle(ray, at(0), at(1), at(2)).hit;
      }
      EXPECT_NEAR(sum / full, crossings % 2, 1e-4);
    }
  }
  // One eighth of the sphere; then its orientation, a point far away, and degenerate triangles.
  const vec3 o{0, 0, 0}, x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1};
  EXPECT_NEAR(double(solid_angle(o, x, y, z)), full / 8, 1e-6);
  EXPECT_NEAR(double(solid_angle(o, y, x, z)), -full / 8, 1e-6);
  EXPECT_NEAR(double(solid_angle(vec3{0, 0, -1000}, o, x, y)), 0.5e-6, 1e-9);
  EXPECT_NEAR(std::abs(double(solid_angle(vec3{0.25f, 0.25f, 0}, o, x, y))), full / 2, 1e-6);
  EXPECT_EQ(solid_angle(vec3{2, 2, 0}, o, x, y), 0);
  EXPECT_EQ(solid_angle(z, x, x, y), 0);
  EXPECT_EQ(solid_angle(o, o, o, o), 0);
}

}  // namespace
