// Rays by the device's own ray query, against walks through the hierarchy.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/runtime/graph.h>

#include <limits>
#include <random>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(RayQuery);

struct Ray {
  vec3 origin, direction;
  float max_t;
};
WEFT_STRUCT(Ray, origin, direction, max_t);

struct Answer {
  int face;
  float t, u, v, sign;
  vec3 normal;
  int any;
};
WEFT_STRUCT(Answer, face, t, u, v, sign, normal, any);

template <RaySearch kBy>
auto ask() {
  return kernel(kBy == RaySearch::walk ? "walk" : "ask the device",
                [](Var<MeshArrays> mesh, Arr<const Ray> rays, Arr<Answer> answers) {
                  Int i = tid();
                  const Vec3 origin = rays[i].origin, direction = rays[i].direction;
                  const Float max_t = rays[i].max_t;
                  const MeshRayHit hit = mesh_query_ray(mesh, origin, direction, max_t, kBy);
                  const Bool any = mesh_query_ray_anyhit(mesh, origin, direction, max_t, kBy);
                  answers[i].face = hit.face;
                  answers[i].t = hit.t;
                  answers[i].u = hit.u;
                  answers[i].v = hit.v;
                  answers[i].sign = hit.sign;
                  answers[i].normal = hit.normal;
                  answers[i].any = Int(any);
                });
}

std::vector<Ray> random_rays(int n, float reach) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> place(-reach, reach), length(0.1f, 3);
  std::vector<Ray> rays;
  for (int k = 0; k < n; ++k) {
    const vec3 from{place(random), place(random), place(random)}, to{place(random), place(random), place(random)};
    rays.push_back({from, (to - from) * length(random), k % 3 ? std::numeric_limits<float>::infinity() : 0.4f});
  }
  return rays;
}

// Expects a refusal from a device that lacks ray queries. \return  whether the device lacks them
bool refused(const Device& device) {
  if (device.has_ray_query()) return false;
  const Array<vec3> points(device, shapes::box().points);
  const Array<int> indices(device, shapes::box().indices);
  expect_contains(error_of([&] { Mesh(points, indices, {.ray_query = true}); }), "ray queries");
  const Mesh mesh(points, indices);
  const Array<Ray> rays(device, {Ray{{0, 0, 5}, {0, 0, -1}, 9}});
  const std::string error =
      error_of([&] { launch(ask<RaySearch::device>(), 1, mesh, rays, zeros<Answer>(device, 1)); });
  expect_contains(error, "ask the device");
  expect_contains(error, "ray queries");
  return true;
}

void expect_same(const std::vector<Answer>& walked, const std::vector<Answer>& asked, int may_differ) {
  int other_faces = 0, missed = 0, hits = 0;
  for (std::size_t k = 0; k < walked.size(); ++k) {
    const Answer &w = walked[k], &a = asked[k];
    hits += w.face >= 0;
    if (w.face != a.face) {
      // A ray at an edge may hit either triangle.
      ++other_faces;
      if (w.face >= 0 && a.face >= 0) {
        EXPECT_NEAR(w.t, a.t, 1e-5f * std::max(1.f, w.t)) << k;
      } else {
        ++missed;  // past a silhouette
      }
      continue;
    }
    EXPECT_EQ(w.t, a.t) << k;
    EXPECT_EQ(w.u, a.u) << k;
    EXPECT_EQ(w.v, a.v) << k;
    EXPECT_EQ(w.sign, a.sign) << k;
    EXPECT_EQ(w.normal.x, a.normal.x) << k;
    EXPECT_EQ(w.any, a.any) << k;
  }
  EXPECT_LE(other_faces, may_differ);
  EXPECT_EQ(missed, 0);
  EXPECT_GT(hits, int(walked.size()) / 20) << "the rays must hit something";
  EXPECT_LT(hits, int(walked.size()) * 19 / 20);
}

TEST_P(RayQuery, finds_what_a_walk_finds) {
  if (refused(device())) return;
  const int n = 20000;
  const Array<Ray> rays(device(), random_rays(n, 1.5f));
  for (const MeshData& data : {shapes::torus(), shapes::icosphere(1, 4), shapes::box()}) {
    const Mesh mesh(device(), data, {.ray_query = true});
    Array<Answer> walked = zeros<Answer>(device(), n), asked = zeros<Answer>(device(), n);
    launch(ask<RaySearch::walk>(), n, mesh, rays, walked);
    launch(ask<RaySearch::device>(), n, mesh, rays, asked);
    expect_same(walked.to_vector(), asked.to_vector(), n / 1000);
  }
}

TEST_P(RayQuery, follows_points_that_move) {
  if (refused(device())) return;
  const Array<vec3> points(device(), shapes::icosphere(1, 3).points);
  Mesh mesh(points, Array<int>(device(), shapes::icosphere(1, 3).indices), {.ray_query = true});
  const auto push = kernel("push", [](Arr<vec3> p) { p[tid()].z += 1; });
  const Array<Ray> rays(device(), {Ray{{0.01f, 0.02f, 50}, {0, 0, -1}, 100}});
  // Nothing waits in between, because the library itself keeps builds and rays in order.
  std::vector<Array<Answer>> answers;
  for (int k = 0; k < 10; ++k) {
    answers.push_back(zeros<Answer>(device(), 1));
    launch(ask<RaySearch::device>(), 1, mesh, rays, answers.back());
    launch(push, points.size(), points);
    k % 2 ? mesh.refit() : mesh.rebuild();
  }
  for (int k = 0; k < 10; ++k) EXPECT_NEAR(answers[std::size_t(k)].at(0).t, 49 - k, 0.01f) << k;
}

TEST_P(RayQuery, misses_triangles_to_which_other_code_has_given_indices_that_are_none) {
  if (refused(device())) return;
  if (!device().wraps_host()) GTEST_SKIP() << "arrays of this device do not stand on memory of the host";
  const MeshData data = shapes::box({2, 2, 2});
  std::vector<int> memory = data.indices;  // which other code changes: weft does not hear of that
  const Array<int> indices = wrap(device(), memory);
  const Array<Ray> rays(device(), {Ray{{0.1f, 0.2f, 5}, {0, 0, -1}, 9}, Ray{{-0.3f, -0.4f, 5}, {0, 0, -1}, 9}});
  Mesh mesh(Array<vec3>(device(), data.points), indices, {.ray_query = true});
  Array<Answer> walked = zeros<Answer>(device(), 2), asked = zeros<Answer>(device(), 2);
  const auto look = [&] {
    launch(ask<RaySearch::walk>(), 2, mesh, rays, walked);
    launch(ask<RaySearch::device>(), 2, mesh, rays, asked);
  };
  look();
  const int front = asked.at(0).face, other = asked.at(1).face;
  EXPECT_EQ(asked.at(0).t, 4);
  EXPECT_NE(front, other);
  for (const int none : {-1, int(data.points.size()), 1 << 30}) {
    std::vector<int> bad = data.indices;
    bad[std::size_t(3 * front + 1)] = none;
    device().synchronize();
    std::ranges::copy(bad, memory.begin());
    mesh.rebuild();
    look();
    for (const Array<Answer>* answers : {&walked, &asked}) {
      EXPECT_EQ(answers->at(0).t, 6) << "the back of the box, for " << none;
      EXPECT_EQ(answers->at(1).face, other) << none;
    }
  }
}

TEST_P(RayQuery, keeps_the_bounds_of_rays) {
  if (refused(device())) return;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Mesh mesh(device(), shapes::box({2, 2, 2}), {.ray_query = true});
  const vec3 in{0.1f, 0.2f, 5};
  const Array<Ray> rays(device(), {Ray{in, {0, 0, -1}, 4}, Ray{in, {0, 0, -1}, 4.0001f}, Ray{in, {0, 0, -1}, 0},
                                   Ray{in, {0, 0, -1}, -1}, Ray{in, {0, 0, -1}, nan}, Ray{in, {0, 0, 0}, inf},
                                   Ray{in, {nan, 0, -1}, inf}, Ray{{inf, 0, 0}, {0, 0, -1}, inf},
                                   Ray{{0.1f, 0.2f, 1}, {0, 0, 1}, inf}, Ray{{0.1f, 0.2f, 0}, {0, 0, 1}, inf}});
  const int n = int(rays.size());
  Array<Answer> walked = zeros<Answer>(device(), n), asked = zeros<Answer>(device(), n);
  launch(ask<RaySearch::walk>(), n, mesh, rays, walked);
  launch(ask<RaySearch::device>(), n, mesh, rays, asked);
  const std::vector<Answer> w = walked.to_vector(), a = asked.to_vector();
  const bool hits[] = {false, true, false, false, false, false, false, false, true, true};
  for (int k = 0; k < n; ++k) {
    EXPECT_EQ(w[std::size_t(k)].face >= 0, hits[k]) << k;
    if (k == 8) continue;  // a ray that begins on the surface: the device may count t = 0 or not
    EXPECT_EQ(a[std::size_t(k)].face >= 0, hits[k]) << k;
    EXPECT_EQ(a[std::size_t(k)].any, int(hits[k])) << k;
    EXPECT_EQ(a[std::size_t(k)].t, w[std::size_t(k)].t) << k;
  }
  EXPECT_EQ(a[9].sign, -1) << "from inside, the back";
}

TEST_P(RayQuery, walks_where_a_mesh_has_no_structure) {
  if (refused(device())) return;
  const Mesh mesh(device(), shapes::box({2, 2, 2}));
  Array<Answer> asked = zeros<Answer>(device(), 1);
  launch(ask<RaySearch::device>(), 1, mesh, Array<Ray>(device(), {Ray{{0.1f, 0.2f, 5}, {0, 0, -1}, 9}}), asked);
  EXPECT_EQ(asked.at(0).t, 4);
}

TEST_P(RayQuery, meshes_may_go_while_rays_are_on_their_way) {
  if (refused(device())) return;
  const int n = 2000;
  const Array<Ray> rays(device(), random_rays(n, 1.5f));
  std::vector<Array<Answer>> answers;
  for (int k = 0; k < 8; ++k) {
    const Mesh mesh(device(), shapes::icosphere(1, 3), {.ray_query = true});
    answers.push_back(zeros<Answer>(device(), n));
    launch(ask<RaySearch::device>(), n, mesh, rays, answers.back());
  }
  const std::vector<Answer> first = answers[0].to_vector();
  for (const Array<Answer>& a : answers) {
    const std::vector<Answer> other = a.to_vector();
    for (int k = 0; k < n; ++k) ASSERT_EQ(first[std::size_t(k)].t, other[std::size_t(k)].t);
  }
}

}  // namespace
