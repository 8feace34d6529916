// Queries on meshes, against all triangles one by one in float64.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/graph.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "../../common/embree_rays.h"
#include "../../common/mesh_oracle.h"
#include "../device_test.h"
#include "../full_sizes.h"
#include "mesh_asked.h"
#include "real_meshes.h"

using namespace weft;
using weft::test::ask_points;
using weft::test::cast_rays;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::full_sizes;
using weft::test::Oracle;
using weft::test::PointRow;
using weft::test::random_points;
using weft::test::RayRow;

namespace {

class MeshQuery : public test::GeometryTest {
 protected:
  std::vector<test::NamedMesh> with_real_meshes(MeshData made) const {
    return test::with_real_meshes(std::move(made), on_reference());
  }
};
ON_EVERY_DEVICE(MeshQuery);

constexpr float kBox = 0.1f, kBall = 0.25f;

TEST_P(MeshQuery, rays_hit_what_all_triangles_one_by_one_say) {
  const bool full = full_sizes();
  const int rays = brief() ? 40 : full ? 100'000 : 1000;
  const MeshData shapes[] = {shapes::icosphere(1, brief() ? 1
                                                  : full  ? 4
                                                          : 3),
                             shapes::random_soup(brief() ? 100
                                                 : full  ? 6000
                                                         : 2000,
                                                 0.3f, 1),
                             full ? shapes::torus(1, 0.35f, 72, 36) : shapes::torus()};
  for (const MeshData& data : shapes) {
    const Oracle oracle(data);
    const std::vector<vec3> origins = random_points(rays, 1.5f, 2), directions = random_points(rays, 2, 3);
    std::vector<Oracle::Hits> expected;
    for (std::size_t i = 0; i < origins.size(); ++i) expected.push_back(oracle.ray(origins[i], directions[i], 1.5));
    for (int leaf_size : {1, 2, 4, 8}) {
      const Mesh mesh(device(), data, {.leaf_size = leaf_size});
      const auto got = cast_rays(device(), mesh, origins, directions, 1.5f);
      int hits = 0, unsure = 0;
      for (std::size_t i = 0; i < origins.size(); ++i) {
        // A hit within rounding of an edge or of the limit may be found or not.
        if (expected[i].unsure) {
          ++unsure;
          continue;
        }
        const std::vector<Oracle::Hit>& below = expected[i].hits;
        const RayRow& r = got[i];
        ASSERT_EQ(r.hit, !below.empty()) << i;
        ASSERT_EQ(r.any, !below.empty()) << i;
        ASSERT_EQ(r.count, int(below.size())) << i;
        if (below.empty()) {
          ASSERT_EQ(r.face, -1);
          ASSERT_EQ(r.t, 0);
          continue;
        }
        ++hits;
        const auto& h = below.front();
        ASSERT_NEAR(r.t, h.t, 1e-5 * std::max(1.0, h.t)) << i;
        if (below.size() == 1 || below[1].t - h.t > 1e-5) {
          ASSERT_EQ(r.face, h.face) << i;
          ASSERT_EQ(r.sign, h.sign) << i;
          ASSERT_NEAR(r.u, h.u, 1e-3) << i;
          ASSERT_NEAR(r.v, h.v, 1e-3) << i;
          const auto n = oracle.normal(h.face);
          for (int k = 0; k < 3; ++k) ASSERT_NEAR(r.normal[k], n[std::size_t(k)], 1e-4) << i;
        }
      }
      EXPECT_GT(hits, rays / 10);
      EXPECT_LT(unsure, rays / 5);
    }
  }
}

TEST_P(MeshQuery, rays_agree_with_those_of_embree) {
#ifdef WEFT_EMBREE
  const int n = brief() ? 500 : full_sizes() ? 1'000'000 : 30'000;
  const auto shoot = kernel("shoot", [](Var<MeshArrays> mesh, Arr<const vec3> o, Arr<const vec3> d, Arr<float> t) {
    Int i = tid();
    const MeshRayHit h = mesh_query_ray(mesh, o[i], d[i]);
    t[i] = select(h.hit, h.t, -1.f);
  });
  const test::Rays rays{random_points(n, 1, 34), random_points(n, 1, 35)};
  for (const auto& [name, data] : with_real_meshes(shapes::torus())) {
    SCOPED_TRACE(name);
    std::vector<float> wanted(rays.origins.size());
    test::EmbreeRays(data, 2).cast(rays, wanted);
    EXPECT_GT(std::ranges::count_if(wanted, [](float t) { return t >= 0; }), n / 20);
    Array<float> got = zeros<float>(device(), n);
    launch(shoot, n, Mesh(device(), data), Array<vec3>(device(), rays.origins), Array<vec3>(device(), rays.directions),
           got);
    const auto differing = test::rays_that_differ(data, rays, got.to_vector(), wanted);
    RecordProperty(name + "_rays_that_differ", std::to_string(differing.size()));
    for (const test::DifferingRay& d : differing) EXPECT_TRUE(d.explained) << d.text;
    EXPECT_LE(differing.size(), std::size_t(n) / 1'000'000);
  }
#else
  GTEST_SKIP() << "Embree 3 is not on this machine";
#endif
}

TEST_P(MeshQuery, the_limits_of_a_ray) {
  // A triangle at t = 1, exactly.
  const MeshData data{{vec3{-1, -1, 1}, vec3{1, -1, 1}, vec3{0, 1, 1}}, {0, 1, 2}};
  const Mesh mesh(device(), data);
  const std::vector<vec3> origins{vec3{0, 0, 0}, vec3{0, 0, 1}, vec3{0, 0, 2}, vec3{0, 0, 0.5f}},
      directions{vec3{0, 0, 1}, vec3{0, 0, 1}, vec3{0, 0, -1}, vec3{0, 0, 0.5f}};
  auto r = cast_rays(device(), mesh, origins, directions, 1);
  EXPECT_EQ(r[0].hit, 0) << "t is below max_t";
  EXPECT_EQ(r[0].any, 0);
  EXPECT_EQ(r[0].count, 0);
  EXPECT_EQ(r[1].hit, 1) << "t = 0 is a hit";
  EXPECT_EQ(r[1].t, 0);
  r = cast_rays(device(), mesh, origins, directions, std::nextafter(1.f, 2.f));
  EXPECT_EQ(r[0].hit, 1);
  EXPECT_EQ(r[0].t, 1);
  EXPECT_EQ(r[2].t, 1);
  EXPECT_EQ(r[3].t, 1) << "in multiples of the direction's length";
  EXPECT_EQ(r[0].sign, -r[2].sign);
  EXPECT_EQ(r[2].sign, 1) << "from the front the points run counter-clockwise";
  EXPECT_EQ(r[0].normal, (vec3{0, 0, 1}));
  EXPECT_NEAR(r[0].u, 0.25f, 1e-6);
  EXPECT_NEAR(r[0].v, 0.25f, 1e-6);
}

TEST_P(MeshQuery, no_ray_escapes_through_an_edge_or_a_vertex) {
  const MeshData data = brief() ? shapes::icosphere(1, 1) : shapes::torus_knot();
  for (float away : {0.f, 1e4f}) {
    MeshData moved = data;
    for (vec3& p : moved.points) p += vec3{away, away, -away};
    const Mesh mesh(device(), moved);
    // The ray's origin is inside the tube: the middle of a ring of points around it.
    const int across = brief() ? int(data.points.size()) : 24;
    vec3 inside{0, 0, 0};
    for (int k = 0; k < across; ++k) inside += moved.points[std::size_t(k)] * (1.f / float(across));
    std::vector<vec3> origins, directions;
    const std::size_t step = brief() ? 2 : 1;
    for (std::size_t k = 0; k < moved.indices.size(); k += step) {
      const vec3 p = moved.points[std::size_t(moved.indices[k])];
      const vec3 q = moved.points[std::size_t(moved.indices[k / 3 * 3 + (k + 1) % 3])];
      for (const vec3& at : {p, (p + q) * 0.5f}) {
        origins.push_back(inside);
        directions.push_back(at - inside);
      }
    }
    const auto r = cast_rays(device(), mesh, origins, directions, 1e6f);
    for (std::size_t i = 0; i < r.size(); ++i) {
      ASSERT_EQ(r[i].hit, 1) << i;
      ASSERT_EQ(r[i].any, 1) << i;
      ASSERT_EQ(r[i].count % 2, 1) << i;
    }
  }
}

TEST_P(MeshQuery, no_ray_escapes_from_inside) {
  // At full sizes there are some 90 million queries.
  const int rays = brief() ? 60 : full_sizes() ? 10'000'000 : 20'000;
  const MeshData data = full_sizes() ? shapes::torus(1, 0.35f, 1000, 500) : shapes::torus(1, 0.35f, 12, 8);
  for (float away : {0.f, 1e4f}) {
    MeshData moved = data;
    for (vec3& p : moved.points) p += vec3{away, -away, away};
    const Mesh mesh(device(), moved);
    Array<int> escaped = zeros<int>(device(), 3);
    // The rays go from all along the middle of the tube in every direction.
    launch(kernel("escape",
                  [=](Var<MeshArrays> mesh, Arr<int> escaped) {
                    UInt rng = rand_init(7, tid());
                    const Float along = randf(rng, 0.f, 6.2831853f);
                    const Vec3 middle(cos(along), 0, sin(along));
                    const Vec3 origin = middle + vec3{away, -away, away};
                    Vec3 direction;
                    for (int k = 0; k < 3; ++k) direction[k] = randf(rng, -1.f, 1.f);
                    If (!mesh_query_ray(mesh, origin, direction).hit) {
                      atomic_add(escaped[0], 1);
                    }
                    If (!mesh_query_ray_anyhit(mesh, origin, direction)) {
                      atomic_add(escaped[1], 1);
                    }
                    If ((mesh_query_ray_count(mesh, origin, direction) & 1) == 0) {
                      atomic_add(escaped[2], 1);
                    }
                  }),
           rays, mesh, escaped);
    EXPECT_EQ(escaped.to_vector(), (std::vector<int>{0, 0, 0})) << "moved by " << away;
    // The rays go to every vertex, and to the middle of every edge.
    launch(kernel("escape to edges",
                  [=](Var<MeshArrays> mesh, Arr<int> escaped) {
                    Int i = tid();
                    const Int face = i / 6, k = i % 6 / 2;
                    const Vec3 a = mesh_get_point(mesh, face * 3 + k), b = mesh_get_point(mesh, face * 3 + (k + 1) % 3);
                    const Vec3 at = select(i % 2 == 0, a, (a + b) * 0.5f) - vec3{away, -away, away};
                    const Float r = sqrt(at.x * at.x + at.z * at.z);
                    const Vec3 origin = Vec3(at.x / r, 0, at.z / r) + vec3{away, -away, away};
                    const Vec3 direction = at + vec3{away, -away, away} - origin;
                    If (!mesh_query_ray(mesh, origin, direction).hit) {
                      atomic_add(escaped[0], 1);
                    }
                    If ((mesh_query_ray_count(mesh, origin, direction) & 1) == 0) {
                      atomic_add(escaped[2], 1);
                    }
                  }),
           mesh.size() * 6, mesh, escaped);
    EXPECT_EQ(escaped.to_vector(), (std::vector<int>{0, 0, 0})) << "moved by " << away;
  }
}

TEST_P(MeshQuery, all_hits_come_in_order) {
  MeshData data = shapes::random_soup(brief() ? 60 : 500, 0.8f, 5);
  // Every triangle is there twice, and hits at the same t come in the order of faces.
  const std::size_t n = data.indices.size();
  for (std::size_t k = 0; k < n; ++k) data.indices.push_back(data.indices[k]);
  const Mesh mesh(device(), data);
  const int rays = brief() ? 6 : 200, most = 400;
  const std::vector<vec3> origins = random_points(rays, 1, 6), directions = random_points(rays, 1, 7);
  Array<int> faces = full<int>(device(), rays * most, -1), counts = zeros<int>(device(), rays),
             expected = zeros<int>(device(), rays), first = full<int>(device(), rays, -1);
  Array<float> ts = zeros<float>(device(), rays * most);
  launch(kernel("all",
                [=](Var<MeshArrays> mesh, Arr<const vec3> origin, Arr<const vec3> direction, Arr<int> faces,
                    Arr<float> ts, Arr<int> counts, Arr<int> expected, Arr<int> first) {
                  Int i = tid(), k = 0;
                  for (auto hit : mesh_query_ray_all(mesh, origin[i], direction[i], 2.f)) {
                    faces[i * most + k] = hit.face;
                    ts[i * most + k] = hit.t;
                    k += 1;
                  }
                  counts[i] = k;
                  expected[i] = mesh_query_ray_count(mesh, origin[i], direction[i], 2.f);
                  for (auto hit : mesh_query_ray_all(mesh, origin[i], direction[i], 2.f)) {
                    first[i] = hit.face;
                    Break();
                  }
                }),
         rays, mesh, Array<vec3>(device(), origins), Array<vec3>(device(), directions), faces, ts, counts, expected,
         first);
  const auto f = faces.to_vector(), c = counts.to_vector(), e = expected.to_vector(), one = first.to_vector();
  const auto t = ts.to_vector();
  int all = 0;
  for (int i = 0; i < rays; ++i) {
    ASSERT_EQ(c[std::size_t(i)], e[std::size_t(i)]) << i;
    ASSERT_EQ(one[std::size_t(i)], f[std::size_t(i * most)]);
    for (int k = 1; k < c[std::size_t(i)]; ++k) {
      const auto at = std::size_t(i * most + k);
      ASSERT_TRUE(t[at - 1] < t[at] || (t[at - 1] == t[at] && f[at - 1] < f[at])) << i << " " << k;
    }
    all += c[std::size_t(i)];
  }
  EXPECT_GT(all, rays);
  EXPECT_EQ(all % 2, 0);
  // The hits are those of all triangles, looked at one by one.
  const Oracle oracle(data);
  int compared = 0;
  for (int i = 0; i < rays; ++i) {
    const Oracle::Hits hits = oracle.ray(origins[std::size_t(i)], directions[std::size_t(i)], 2);
    if (hits.unsure) continue;
    ++compared;
    std::vector<std::pair<int, double>> sought, got;
    for (const auto& h : hits.hits) sought.emplace_back(h.face, h.t);
    for (int k = 0; k < c[std::size_t(i)]; ++k)
      got.emplace_back(f[std::size_t(i * most + k)], double(t[std::size_t(i * most + k)]));
    std::ranges::sort(sought), std::ranges::sort(got);
    ASSERT_EQ(sought.size(), got.size()) << i;
    for (std::size_t k = 0; k < got.size(); ++k) {
      ASSERT_EQ(got[k].first, sought[k].first) << i;
      ASSERT_NEAR(got[k].second, sought[k].second, 1e-5 * std::max(1.0, sought[k].second)) << i;
    }
  }
  EXPECT_GT(compared, rays / 2);
}

/// The triangles are across a corner of space, each a tenth larger than the one before: H-PLOC makes a chain of them.
TEST_P(MeshQuery, deep_trees_lose_nothing) {
  const int n = 300;
  MeshData data;
  std::vector<vec3> origins;
  for (int k = 0; k < n; ++k) {
    const float size = std::pow(1.1f, float(k - n / 2));
    data.points.insert(data.points.end(), {vec3{size, 0, 0}, vec3{0, size, 0}, vec3{0, 0, size}});
    data.indices.insert(data.indices.end(), {3 * k, 3 * k + 1, 3 * k + 2});
    origins.push_back(vec3{1, 1, 1} * (size * 0.97f / 3));
  }
  const std::vector<vec3> outward(origins.size(), vec3{1, 1, 1});
  const float inf = std::numeric_limits<float>::infinity();
  const Oracle oracle(data);
  for (int leaf_size : {1, 4})
    for (BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh}) {
      MeshOptions options;
      options.builder = builder, options.leaf_size = leaf_size;
      const Mesh mesh(device(), data, options);
      if (builder == BvhBuilder::hploc) {
        EXPECT_GT(mesh.tree().depth(), 64) << "deeper than the stack of a walk";
      }
      const auto rays = cast_rays(device(), mesh, origins, outward, inf);
      const auto closest = ask_points(device(), mesh, origins, inf, MeshSign::none);
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(rays[std::size_t(i)].count, n - i) << i;
        ASSERT_EQ(rays[std::size_t(i)].face, i);
        const double sought = oracle.distance(origins[std::size_t(i)]);
        ASSERT_NEAR(closest[std::size_t(i)].distance, sought, 1e-4 * sought) << i;
      }
    }
}

TEST_P(MeshQuery, closest_points_are_as_close_as_any) {
  const bool full = full_sizes();
  const int n = brief() ? 40 : full ? 100'000 : 1000, side = brief() ? 3 : full ? 32 : 8;
  for (const MeshData& data : {shapes::icosphere(1, brief() ? 1
                                                    : full  ? 4
                                                            : 3),
                               shapes::random_soup(brief() ? 80
                                                   : full  ? 6000
                                                           : 2000,
                                                   0.2f, 8)}) {
    const Oracle oracle(data);
    std::vector<vec3> points = random_points(n, 2, 9);
    for (int k = 0; k < side * side * side; ++k)
      points.push_back(vec3{float(k % side), float(k / side % side), float(k / side / side)} *
                           (3.f / float(std::max(side - 1, 1))) -
                       vec3{1.5f, 1.5f, 1.5f});
    std::vector<double> expected;
    for (const vec3& p : points) expected.push_back(oracle.distance(p));
    for (int leaf_size : {1, 2, 4, 8}) {
      const Mesh mesh(device(), data, {.leaf_size = leaf_size});
      // Some points are beyond the first limit, and none beyond the second.
      for (const float limit : {0.5f, 10.f}) {
        const auto got = ask_points(device(), mesh, points, limit, MeshSign::none);
        int hits = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
          const double d = expected[i];
          if (std::abs(d - double(limit)) < 1e-5) continue;
          const PointRow& r = got[i];
          ASSERT_EQ(r.hit, d < double(limit)) << i;
          if (!r.hit) {
            ASSERT_EQ(r.face, -1);
            ASSERT_EQ(r.distance, 0);
            continue;
          }
          ++hits;
          ASSERT_NEAR(r.distance, d, 3e-5) << i;
          ASSERT_NEAR(std::sqrt(double(length_sq(r.position - points[i]))), d, 3e-5) << i;
          ASSERT_EQ(r.sign, 1);
        }
        EXPECT_GT(hits, limit < 1 ? n / 20 : int(points.size()) - 1);
      }
    }
  }
}

TEST_P(MeshQuery, furthest_points_are_as_far_as_any) {
  for (const auto& [name, data] : with_real_meshes(shapes::random_soup(brief() ? 60 : 1000, 0.3f, 10))) {
    SCOPED_TRACE(name);
    const Mesh mesh(device(), data);
    const std::vector<vec3> points = random_points(brief() ? 20 : 300, 3, 11);
    const float least = 4.5f;
    const auto got = ask_points(device(), mesh, points, least, MeshSign::none, true);
    int hits = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      double far = 0;
      for (int k : data.indices)
        far = std::max(far, std::sqrt(double(length_sq(data.points[std::size_t(k)] - points[i]))));
      if (std::abs(far - least) < 1e-5) continue;
      ASSERT_EQ(got[i].hit, far > least) << i;
      if (!got[i].hit) continue;
      ++hits;
      ASSERT_NEAR(got[i].distance, far, 1e-5) << i;
      ASSERT_NEAR(std::sqrt(double(length_sq(got[i].position - points[i]))), far, 1e-5) << i;
    }
    EXPECT_GT(hits, 0);
    EXPECT_LT(hits, int(points.size()));
  }
}

TEST_P(MeshQuery, limits_of_distance_are_strict) {
  const MeshData data{{vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}}, {0, 1, 2}};
  const Mesh mesh(device(), data);
  const std::vector<vec3> points{vec3{0, 0, 2}};
  EXPECT_EQ(ask_points(device(), mesh, points, 2, MeshSign::none)[0].hit, 0);
  EXPECT_EQ(ask_points(device(), mesh, points, std::nextafter(2.f, 3.f), MeshSign::none)[0].hit, 1);
  EXPECT_EQ(ask_points(device(), mesh, points, 0, MeshSign::none)[0].hit, 0);
  EXPECT_EQ(ask_points(device(), mesh, points, -3, MeshSign::none)[0].hit, 0);
  EXPECT_EQ(ask_points(device(), mesh, {vec3{0, 0, 0}}, 0, MeshSign::none)[0].hit, 0);
  EXPECT_EQ(ask_points(device(), mesh, {vec3{0, 0, 0}}, 1e-6f, MeshSign::none)[0].hit, 1);
  const std::vector<vec3> below{vec3{0, 0, 0}};
  EXPECT_EQ(ask_points(device(), mesh, below, 1, MeshSign::none, true)[0].hit, 0);
  EXPECT_EQ(ask_points(device(), mesh, below, std::nextafter(1.f, 0.f), MeshSign::none, true)[0].hit, 1);
}

TEST_P(MeshQuery, signs_tell_inside_from_outside) {
  const bool full = full_sizes();
  const int n = brief() ? 30 : full ? 100'000 : 1000;
  struct Case {
    const char* name;
    MeshData data;
  };
  // The closest features of the tetrahedron are mostly edges and vertices.
  const MeshData tetrahedron{{vec3{1, 1, 1}, vec3{-1, -1, 1}, vec3{-1, 1, -1}, vec3{1, -1, -1}},
                             {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3}};
  const Case cases[] = {
      {"tetrahedron", tetrahedron},
      {"torus", brief() ? shapes::torus(1, 0.4f, 8, 5) : shapes::torus(1, 0.35f, full ? 72 : 24, full ? 36 : 12)},
      {"box", shapes::box({1, 2, 1.5f}, 2)}};
  for (const Case& c : cases) {
    const Mesh mesh(device(), c.data, {.winding_number = true});
    const Oracle oracle(c.data);
    ASSERT_NEAR(std::abs(oracle.winding(vec3{0.05f, 0.04f, 0.03f})), c.name[1] == 'o' && c.name[0] == 't' ? 0 : 1, 1e-9)
        << c.name;
    const std::vector<vec3> points = random_points(n, 1.6f, 12);
    // Within 1e-4 of the diagonal either sign is right.
    std::vector<double> windings;
    const double close = 1e-4 * test::diagonal_of(c.data);
    for (const vec3& p : points) windings.push_back(oracle.distance(p) < close ? NAN : oracle.winding(p));
    for (MeshSign sign : {MeshSign::majority, MeshSign::normal, MeshSign::winding}) {
      const auto got = ask_points(device(), mesh, points, 100, sign);
      int inside = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const double w = windings[i];
        if (std::isnan(w)) continue;
        inside += w > 0.5;
        ASSERT_EQ(got[i].sign, w > 0.5 ? -1 : 1) << c.name << ", sign " << int(sign) << ", point " << i << ": "
                                                 << points[i].x << " " << points[i].y << " " << points[i].z;
      }
      EXPECT_GT(inside, 0) << c.name;
    }
  }
}

TEST_P(MeshQuery, winding_numbers_close_holes) {
  const int n = brief() ? 50 : 500;
  const MeshData whole = shapes::icosphere(1, brief() ? 2 : 4);
  MeshData data{whole.points, {}};
  for (std::size_t k = 0; k < whole.indices.size(); k += 3)
    if ((k / 3 * 7919u) % 10 != 0)
      for (std::size_t j = 0; j < 3; ++j) data.indices.push_back(whole.indices[k + j]);
  ASSERT_LT(data.indices.size(), whole.indices.size() * 95 / 100);
  const Mesh mesh(device(), data, {.winding_number = true});
  const Oracle oracle(data);
  const std::vector<vec3> points = random_points(n, 1.3f, 13);
  const auto got = ask_points(device(), mesh, points, 100, MeshSign::winding);
  const auto w = test::winding_numbers(device(), mesh, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double expected = oracle.winding(points[i]);
    EXPECT_NEAR(w[i], expected, 0.005) << i;
    const double r = std::sqrt(double(length_sq(points[i])));
    if (std::abs(r - 1) > 0.1) {
      ASSERT_EQ(got[i].sign, r < 1 ? -1 : 1) << i;
    }
  }
}

TEST_P(MeshQuery, overlaps_are_those_of_all_triangles) {
  for (const auto& [name, data] : with_real_meshes(shapes::random_soup(brief() ? 80 : 2000, 0.3f, 14))) {
    SCOPED_TRACE(name);
    const int faces = int(data.indices.size() / 3);
    const int n = brief() ? 8 : std::clamp((full_sizes() ? 40'000'000 : 1'000'000) / faces, 20, 200);
    std::vector<vec3> points = random_points(n, 1, 15);
    // Every other query is at a point of the mesh, so that it finds something: touching counts.
    for (std::size_t i = 0; i < points.size(); i += 2)
      points[i] = data.points[std::size_t(data.indices[i * 7919 % data.indices.size()])];
    const Oracle oracle(data);
    std::vector<char> in_box;
    std::vector<double> distances;
    int boxed = 0, near = 0;
    for (const vec3& p : points)
      for (int f = 0; f < faces; ++f) {
        bool touches = true;
        for (int k = 0; k < 3; ++k) {
          float lo = INFINITY, hi = -INFINITY;
          for (int j = 0; j < 3; ++j) {
            const float x = data.points[std::size_t(data.indices[std::size_t(3 * f + j)])][k];
            lo = std::min(lo, x), hi = std::max(hi, x);
          }
          touches = touches && lo <= p[k] && hi >= p[k] - kBox;
        }
        in_box.push_back(touches);
        distances.push_back(oracle.distance(p, f));
        boxed += touches;
        near += distances.back() < kBall;
      }
    EXPECT_GT(boxed, 0);
    EXPECT_GT(near, n);
    for (int leaf_size : {1, 2, 3, 4, 8}) {
      const Mesh mesh(device(), data, {.leaf_size = leaf_size});
      Array<int> boxes = zeros<int>(device(), Extent{std::int64_t(n) * faces}),
                 balls = zeros<int>(device(), Extent{std::int64_t(n) * faces});
      launch(kernel("overlaps",
                    [=](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<int> boxes, Arr<int> balls, Int faces) {
                      Int i = tid();
                      for (auto f : mesh_query_aabb(mesh, Vec3(p[i]) - Vec3(kBox, kBox, kBox), p[i]))
                        boxes[i * faces + f] += 1;
                      for (auto f : mesh_query_sphere(mesh, p[i], kBall)) balls[i * faces + f] += 1;
                    }),
             n, mesh, Array<vec3>(device(), points), boxes, balls, faces);
      const auto found_in_box = boxes.to_vector(), found_in_ball = balls.to_vector();
      for (std::size_t k = 0; k < distances.size(); ++k) {
        ASSERT_EQ(found_in_box[k], in_box[k]) << "pair " << k;
        if (std::abs(distances[k] - double(kBall)) > 1e-5) {
          ASSERT_EQ(found_in_ball[k], distances[k] < double(kBall)) << "pair " << k;
        }
      }
    }
  }
}

TEST_P(MeshQuery, faces_are_evaluated) {
  const MeshData data = shapes::icosphere(1, 0);
  std::vector<vec3> velocities;
  for (const vec3& p : data.points) velocities.push_back(p * 2);
  const Array<vec3> points(device(), data.points);
  const Array<int> indices(device(), data.indices);
  const Mesh mesh(points, indices, {.velocities = Array<vec3>(device(), velocities)}), still(points, indices);
  Array<vec3> position = zeros<vec3>(device(), 20), velocity = position.clone(), normal = position.clone(),
              rest = ones<vec3>(device(), 20), corner = position.clone();
  launch(kernel("evaluate",
                [](Var<MeshArrays> mesh, Var<MeshArrays> still, Arr<vec3> position, Arr<vec3> velocity,
                   Arr<vec3> normal, Arr<vec3> rest, Arr<vec3> corner) {
                  Int i = tid();
                  position[i] = mesh_eval_position(mesh, i, 0.5f, 0.25f);
                  velocity[i] = mesh_eval_velocity(mesh, i, 0.5f, 0.25f);
                  normal[i] = mesh_eval_face_normal(mesh, i);
                  rest[i] = mesh_eval_velocity(still, i, 0.5f, 0.25f) + mesh_get_velocity(still, i);
                  corner[i] = mesh_get_point(mesh, 3 * i + 1) + mesh_get_velocity(mesh, 3 * i + 1) +
                              Vec3(Float(mesh_face_count(mesh)), Float(mesh_get_index(mesh, 3 * i)), 0);
                }),
         20, mesh, still, position, velocity, normal, rest, corner);
  for (int f = 0; f < 20; ++f) {
    vec3 p[3];
    for (int k = 0; k < 3; ++k) p[k] = data.points[std::size_t(data.indices[std::size_t(3 * f + k)])];
    const vec3 expected = p[0] * 0.5f + p[1] * 0.25f + p[2] * 0.25f, got = position.at(f), n = normal.at(f);
    EXPECT_NEAR(length(got - expected), 0, 1e-6);
    EXPECT_NEAR(length(velocity.at(f) - expected * 2), 0, 1e-6);
    EXPECT_NEAR(length(n), 1, 1e-6);
    EXPECT_GT(dot(n, expected), 0.7f);
    EXPECT_EQ(rest.at(f), (vec3{0, 0, 0}));
    const vec3 all = p[1] + p[1] * 2 + vec3{20, float(data.indices[std::size_t(3 * f)]), 0};
    EXPECT_NEAR(length(corner.at(f) - all), 0, 1e-5);
  }
}

TEST_P(MeshQuery, refit_follows_the_points) {
  // Twists the resting mesh to and fro.
  const auto twist = kernel("twist", [](Arr<const vec3> rest, Arr<vec3> p, Float most) {
    Int i = tid();
    const Vec3 q = rest[i];
    const Float a = q.y * most;
    p[i] = Vec3(q.x * cos(a) - q.z * sin(a) + most * 0.3f, q.y * (1 + most * 0.2f), q.x * sin(a) + q.z * cos(a));
  });
  const int n = brief() ? 20 : 400;
  const std::vector<vec3> asked = random_points(n, 2, 16), directions = random_points(n, 1, 17);
  for (auto& [name, data] : with_real_meshes(shapes::icosphere(1, brief() ? 1 : 3))) {
    SCOPED_TRACE(name);
    const bool large = data.indices.size() > 10'000;
    const int rounds = full_sizes() ? 100 : brief() || large ? 3 : 8;
    const Array<vec3> rest(device(), data.points), points = rest.clone();
    Mesh mesh(points, Array<int>(device(), data.indices), {.winding_number = true});
    MeshData moved_data = data;
    for (int round = 0; round < rounds; ++round) {
      launch(twist, points.size(), rest, points, std::sin(float(round + 1)) * 1.5f);
      if (round < rounds - 1)
        mesh.refit();
      else
        mesh.rebuild();
      moved_data.points = points.to_vector();
      const Mesh fresh(device(), moved_data, {.winding_number = true});
      // Each tree sums up far triangles in its own way.
      const std::vector<float> numbers = test::winding_numbers(device(), fresh, asked);
      for (MeshSign sign : {MeshSign::winding, MeshSign::normal}) {
        const auto moved = ask_points(device(), mesh, asked, 100, sign),
                   built = ask_points(device(), fresh, asked, 100, sign);
        for (std::size_t i = 0; i < asked.size(); ++i) {
          ASSERT_NEAR(moved[i].distance, built[i].distance, 1e-6) << i;
          const bool sure = sign != MeshSign::winding || std::abs(numbers[i] - 0.5f) > 0.005f;
          if (moved[i].distance > 1e-4f && sure) {
            ASSERT_EQ(moved[i].sign, built[i].sign) << i;
          }
        }
      }
      const auto moved = cast_rays(device(), mesh, asked, directions, 100),
                 built = cast_rays(device(), fresh, asked, directions, 100);
      // Some triangles are there twice, and the first one in a tree is found.
      const auto corners = [&data = data](int face) {
        std::array<int, 3> c{};
        for (std::size_t k = 0; face >= 0 && k < 3; ++k) c[k] = data.indices[3 * std::size_t(face) + k];
        std::ranges::sort(c);
        return c;
      };
      for (std::size_t i = 0; i < asked.size(); ++i) {
        ASSERT_EQ(moved[i].hit, built[i].hit) << i;
        ASSERT_EQ(corners(moved[i].face), corners(built[i].face)) << i;
        ASSERT_EQ(moved[i].t, built[i].t) << i;
        ASSERT_EQ(moved[i].count, built[i].count) << i;
      }
    }
  }
}

TEST_P(MeshQuery, wrong_input_is_refused) {
  const std::vector<vec3> p{vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}, vec3{NAN, 0, 0}, vec3{0, INFINITY, 0}};
  const Device& d = device();
  const auto refused = [&](const std::vector<vec3>& points, const std::vector<int>& indices, const std::string& why) {
    expect_contains(error_of([&] { Mesh(Array<vec3>(d, points), Array<int>(d, indices)); }), why);
  };
  refused(p, {0, 1, 2, 0, 1, 5}, "triangle 1 of a mesh has the index 5, which names none of its 5 points");
  refused(p, {0, 1, -1}, "triangle 0 of a mesh has the index -1, which names none");
  refused(p, {0, 1, 2, 0, 1}, "5 indices: not three for each triangle");
  // An array that shows one element many times.
  struct Many : Array<int> {
    explicit Many(const Array<int>& a) {
      storage_ = a.storage(), address_ = a.address(), shape_ = {3 * 214748365ll}, stride_ = {0};
    }
  };
  const Array<int> many = Many(zeros<int>(d, 1));
  expect_contains(error_of([&] { Mesh(Array<vec3>(d, p), many, {.winding_number = true}); }),
                  "214748365 triangles with winding numbers; 214748364 are possible");
  refused(p, {}, "no triangles");
  refused({}, {0, 0, 0}, "no points");
  refused(p, {0, 1, 2, 1, 2, 0, 0, 1, 3}, "triangle 2 of a mesh has a point that is NaN or infinite");
  refused(p, {0, 1, 4}, "triangle 0 of a mesh has a point that is NaN or infinite");
  expect_contains(error_of([&] { Mesh(Array<vec3>(), Array<int>(d, {0, 1, 2})); }), "null array");
  expect_contains(error_of([&] {
                    Mesh(Array<vec3>(d, p), Array<int>(d, {0, 1, 2}), {.leaf_size = 9});
                  }),
                  "9 triangles in a leaf");
  expect_contains(error_of([&] {
                    Mesh(Array<vec3>(d, p), Array<int>(d, {0, 1, 2}), {.velocities = zeros<vec3>(d, 4)});
                  }),
                  "a mesh of 5 points is given 4 velocities");
  expect_contains(error_of([&] { Mesh().refit(); }), "null mesh");
  expect_contains(error_of([&] { Mesh(d, MeshData()); }), "no triangles");
  expect_contains(error_of([&] { (void)capture(d, [&] { Mesh(d, shapes::box()); }); }),
                  "a mesh is made while a graph is captured: make it before");
  // A point that belongs to no triangle may have any coordinates.
  const Mesh fine(Array<vec3>(d, p), Array<int>(d, {0, 1, 2}));
  EXPECT_EQ(fine.size(), 1);
}

TEST_P(MeshQuery, questions_that_are_none_find_nothing) {
  const Mesh mesh(device(), shapes::icosphere(1, 1), {.winding_number = true});
  const vec3 nan{NAN, 0, 0}, inf{0, INFINITY, 0}, zero{0, 0, 0}, one{1, 0.1f, 0.2f};
  const auto rays = cast_rays(device(), mesh, {nan, inf, zero, zero, zero, zero}, {one, one, nan, inf, zero, one},
                              std::numeric_limits<float>::infinity());
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(rays[k].hit, 0) << k;
    EXPECT_EQ(rays[k].any, 0) << k;
    EXPECT_EQ(rays[k].count, 0) << k;
  }
  EXPECT_EQ(rays[5].hit, 1);
  for (float limit : {0.f, -1.f, NAN}) EXPECT_EQ(cast_rays(device(), mesh, {zero}, {one}, limit)[0].hit, 0) << limit;
  for (MeshSign sign : {MeshSign::none, MeshSign::majority, MeshSign::normal, MeshSign::winding}) {
    EXPECT_EQ(ask_points(device(), mesh, {nan}, 10, sign)[0].hit, 0);
    EXPECT_EQ(ask_points(device(), mesh, {inf}, 10, sign)[0].hit, 0);
    EXPECT_EQ(ask_points(device(), mesh, {zero}, NAN, sign)[0].hit, 0);
  }
  EXPECT_EQ(ask_points(device(), mesh, {nan}, 0, MeshSign::none, true)[0].hit, 0);
  // A sphere of radius 0 is its centre; with a negative one or a NaN it has no points, nor has a box upside down.
  Array<int> counts = zeros<int>(device(), 5);
  launch(kernel("count",
                [](Var<MeshArrays> mesh, Arr<int> counts) {
                  const Vec3 at = mesh_get_point(mesh, 0);
                  const Float nan = std::numeric_limits<float>::quiet_NaN();
                  const Float radius[] = {0.f, -1.f, nan};
                  for (int k = 0; k < 3; ++k)
                    for (auto f : mesh_query_sphere(mesh, at, radius[k])) counts[k] += select(f >= 0, 1, 0);
                  for (auto f : mesh_query_aabb(mesh, Vec3(1, 1, 1), Vec3(-1, -1, -1)))
                    counts[3] += select(f >= 0, 1, 0);
                  for (auto f : mesh_query_aabb(mesh, Vec3(nan, -2, -2), Vec3(2, 2, 2)))
                    counts[4] += select(f >= 0, 1, 0);
                }),
         1, mesh, counts);
  const auto found = counts.to_vector();
  EXPECT_GE(found[0], 5) << "all triangles around a vertex";
  EXPECT_LE(found[0], 6);
  EXPECT_EQ(std::vector<int>(found.begin() + 1, found.end()), (std::vector<int>{0, 0, 0, 0}));
}

TEST_P(MeshQuery, boxes_upside_down_and_triangles_at_no_place_are_not_found) {
  const float inf = std::numeric_limits<float>::infinity();
  Array<vec3> points(device(), {vec3{-9, -9, -9}, vec3{9, -9, 9}, vec3{0, 9, 0}});
  Mesh mesh(points, Array<int>(device(), {0, 1, 2}));
  const auto count = [&](const vec3& lower, const vec3& upper) {
    Array<int> found = zeros<int>(device(), 1);
    launch(kernel("count",
                  [](Var<MeshArrays> mesh, Arr<int> found, Vec3 lower, Vec3 upper) {
                    for ([[maybe_unused]] auto f : mesh_query_aabb(mesh, lower, upper)) found[0] += 1;
                  }),
           1, mesh, found, lower, upper);
    return found.at(0);
  };
  EXPECT_EQ(count({-1, -1, -1}, {1, 1, 1}), 1);
  EXPECT_EQ(count({1, 1, 1}, {-1, -1, -1}), 0);
  EXPECT_EQ(count({1, -1, -1}, {-1, 1, 1}), 0);
  EXPECT_EQ(count({-inf, -inf, -inf}, {inf, inf, inf}), 1);
  points.assign(std::vector<vec3>{vec3{-9, -9, -9}, vec3{NAN, -9, 9}, vec3{0, 9, 0}});
  mesh.refit();
  EXPECT_EQ(count({-inf, -inf, -inf}, {inf, inf, inf}), 0);
}

TEST_P(MeshQuery, other_triangles_need_a_rebuild) {
  const std::vector<vec3> p{vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}, vec3{0, 0, 5}, vec3{1, 0, 5}, vec3{0, 1, 5}};
  const Array<int> indices(device(), {0, 1, 2, -7, 0, 1, 2});
  // The indices are a view of an array: changes beside the view do not concern the mesh.
  Mesh mesh(Array<vec3>(device(), p), indices.slice(0, 3));
  const std::uint64_t id = mesh.id();
  const std::vector<vec3> from{vec3{0.2f, 0.2f, 9}}, down{vec3{0, 0, -1}};
  const auto set = kernel("set", [](Arr<int> to, Int first) { to[tid()] = first + tid(); });
  launch(set, 3, indices.slice(4, 7), 0);
  EXPECT_FLOAT_EQ(cast_rays(device(), mesh, from, down, 100)[0].t, 9);
  launch(set, 3, indices, 3);
  expect_contains(error_of([&] { cast_rays(device(), mesh, from, down, 100); }),
                  "the indices of a mesh have changed, or its last refit or rebuild failed: call its rebuild()");
  expect_contains(error_of([&] { mesh.refit(); }), "call its rebuild()");
  expect_contains(error_of([&] { (void)mesh.id(); }), "call its rebuild()");
  Array<float> t = zeros<float>(device(), 1);
  const auto by_id = kernel(
      "by_id", [](UInt64 id, Arr<float> t) { t[0] = mesh_query_ray(id, Vec3(0.2f, 0.2f, 9), Vec3(0, 0, -1)).t; });
  expect_contains(error_of([&] { launch(by_id, 1, id, t); }), "a mesh or a hierarchy of boxes needs its rebuild()");
  mesh.rebuild();
  EXPECT_FLOAT_EQ(cast_rays(device(), mesh, from, down, 100)[0].t, 4);
  EXPECT_EQ(mesh.id(), id);
  launch(by_id, 1, id, t);
  EXPECT_FLOAT_EQ(t.at(0), 4);
  launch(set, 3, indices, 4);
  expect_contains(error_of([&] { mesh.rebuild(); }), "has the index 6, which names none");
  // The mesh stays as it was until there are indices that it can take.
  expect_contains(error_of([&] { mesh.refit(); }), "call its rebuild()");
  launch(set, 3, indices, 0);
  mesh.rebuild();
  EXPECT_FLOAT_EQ(cast_rays(device(), mesh, from, down, 100)[0].t, 9);
}

TEST_P(MeshQuery, degenerate_triangles_disturb_nobody) {
  // The mesh has a sliver, an edge, a point, and a triangle.
  const MeshData data{{vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}, vec3{0.5f, 1e-30f, 0}, vec3{2, 2, 2}},
                      {0, 1, 3, 0, 1, 1, 4, 4, 4, 0, 1, 2}};
  const Mesh mesh(device(), data, {.winding_number = true});
  const std::vector<vec3> points = random_points(20, 3, 18);
  const Oracle oracle(data);
  for (MeshSign sign : {MeshSign::none, MeshSign::majority, MeshSign::normal, MeshSign::winding}) {
    const auto got = ask_points(device(), mesh, points, 100, sign);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(got[i].distance, oracle.distance(points[i]), 1e-5) << i;
      EXPECT_EQ(std::abs(got[i].sign), 1);
    }
  }
  const auto rays =
      cast_rays(device(), mesh, {vec3{0.2f, 0.2f, 1}, vec3{2, 2, 3}}, {vec3{0, 0, -1}, vec3{0, 0, -1}}, 9);
  EXPECT_EQ(rays[0].face, 3);
  EXPECT_EQ(rays[0].count, 1);
  EXPECT_EQ(rays[1].hit, 0);
}

}  // namespace
