// Gradients of queries on meshes: to the point or ray that asks, and to the mesh's points.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <cmath>
#include <functional>
#include <random>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(MeshGradient);

using V = std::array<double, 3>;
V as(const vec3& v) { return {v.x, v.y, v.z}; }
V sub(const V& a, const V& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double dot3(const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
V cross3(const V& a, const V& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// All inputs of a query on one known triangle: two vectors of the query, then the triangle's points.
using Inputs = std::array<V, 5>;

/// Compares the gradients of a tape with central differences in float64.
void compare(const Inputs& at, const std::function<double(const Inputs&)>& f, const std::vector<vec3>& gradients,
             const char* what) {
  for (std::size_t k = 0; k < 5; ++k)
    for (std::size_t c = 0; c < 3; ++c) {
      Inputs up = at, down = at;
      const double h = 1e-6;
      up[k][c] += h, down[k][c] -= h;
      const double expected = (f(up) - f(down)) / (2 * h);
      ASSERT_NEAR(gradients[k][int(c)], expected, 2e-3 * (1 + std::abs(expected)))
          << what << ", input " << k << ", component " << c;
    }
}

/// The closest point of a triangle in float64: on its face, edges and vertices.
struct Closest {
  double u, v, distance;
};
Closest closest(const V& p, const V& a, const V& b, const V& c) {
  const V corners[] = {a, b, c};
  Closest best{0, 0, INFINITY};
  const auto offer = [&](double u, double v) {
    V at{};
    for (std::size_t k = 0; k < 3; ++k) at[k] = u * a[k] + v * b[k] + (1 - u - v) * c[k];
    const V d = sub(p, at);
    const double l = std::sqrt(dot3(d, d));
    if (l < best.distance) best = {u, v, l};
  };
  for (std::size_t k = 0; k < 3; ++k) {
    const V e = sub(corners[(k + 1) % 3], corners[k]);
    const double s = std::clamp(dot3(sub(p, corners[k]), e) / dot3(e, e), 0.0, 1.0);
    double w[3] = {0, 0, 0};
    w[k] = 1 - s, w[(k + 1) % 3] += s;
    offer(w[0], w[1]);
  }
  const V ab = sub(b, a), ac = sub(c, a), n = cross3(ab, ac), d = sub(p, a);
  const double nn = dot3(n, n), v = dot3(cross3(d, ac), n) / nn, w = dot3(cross3(ab, d), n) / nn;
  if (v > 0 && w > 0 && v + w < 1) offer(1 - v - w, v);
  return best;
}

/// The weights of the outputs in the sum, so that every output has a gradient of its own.
constexpr double kWeights[] = {1, 0.7, -1.3, 0.4, 0.9, -0.6};

TEST_P(MeshGradient, of_closest_points) {
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points = Array<vec3>(device(), data.points).requires_grad();
  const Mesh mesh(points, Array<int>(device(), data.indices));
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> place(-1.6f, 1.6f);
  const auto loss_of = kernel("loss", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> loss, Arr<int> face) {
    const Vec3 q = p[0];
    const MeshPointHit h = mesh_query_point(mesh, q, 100.f, MeshSign::normal);
    const Vec3 at = mesh_eval_position(mesh, h.face, h.u, h.v);
    loss[0] = h.distance + h.u * 0.7f - h.v * 1.3f + at.x * 0.4f + at.y * 0.9f - at.z * 0.6f;
    face[0] = h.face;
  });
  int faces = 0, others = 0;
  for (int round = 0; round < (on_reference() ? 15 : 24); ++round) {
    vec3 q{place(engine), place(engine), place(engine)};
    // Two in three points are above a vertex or an edge, which stay the closest under a small move.
    if (round % 3 == 0) q = data.points[std::size_t(round)] * 1.5f + vec3{1e-3f, -2e-3f, 1e-3f};
    if (round % 3 == 1) {
      const vec3 a = data.points[std::size_t(data.indices[std::size_t(3 * round)])];
      const vec3 b = data.points[std::size_t(data.indices[std::size_t(3 * round + 1)])];
      q = a * 0.8f + b * 0.7f;
    }
    const Array<vec3> p = Array<vec3>(device(), {q}).requires_grad();
    Array<float> loss = zeros<float>(device(), 1);
    Array<int> face = zeros<int>(device(), 1);
    points.zero_grad();
    Tape tape;
    tape.record([&] { launch(loss_of, 1, mesh, p, loss, face); });
    tape.backward(loss);
    const int f = face.at(0);
    ASSERT_GE(f, 0);
    Inputs in{as(q), as({0, 0, 0})};
    std::vector<vec3> gradients{p.grad().at(0), vec3{0, 0, 0}};
    const auto by_point = points.grad().to_vector();
    std::vector<vec3> rest = by_point;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto at = std::size_t(data.indices[std::size_t(3 * f) + k]);
      in[2 + k] = as(data.points[at]);
      gradients.push_back(by_point[at]);
      rest[at] = {};
    }
    for (const vec3& r : rest) ASSERT_EQ(r, (vec3{0, 0, 0})) << "points of other faces";
    const Closest c = closest(in[0], in[2], in[3], in[4]);
    const double least = std::min({c.u, c.v, 1 - c.u - c.v});
    if (least > 0 && least < 1e-3) continue;  // between a face and an edge
    (least > 0 ? faces : others) += 1;
    const auto f64 = [](const Inputs& in) {
      const Closest c = closest(in[0], in[2], in[3], in[4]);
      const double w = 1 - c.u - c.v;
      double sum = c.distance + kWeights[1] * c.u + kWeights[2] * c.v;
      for (std::size_t k = 0; k < 3; ++k) sum += kWeights[3 + k] * (c.u * in[2][k] + c.v * in[3][k] + w * in[4][k]);
      return sum;
    };
    compare(in, f64, gradients, "closest point");
  }
  EXPECT_GT(faces, 0);
  EXPECT_GT(others, 0);
}

TEST_P(MeshGradient, of_rays) {
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points = Array<vec3>(device(), data.points).requires_grad();
  const Mesh mesh(points, Array<int>(device(), data.indices));
  std::mt19937 engine(2);
  std::uniform_real_distribution<float> place(-0.3f, 0.3f);
  const auto loss_of = kernel("loss", [](Var<MeshArrays> mesh, Arr<const vec3> ray, Arr<float> loss, Arr<int> face) {
    Float sum = 0;
    // A query of its own finds the first hit, and a loop over all hits the second.
    const MeshRayHit first = mesh_query_ray(mesh, ray[0], ray[1]);
    sum += first.t + first.u * 0.7f - first.v * 1.3f + first.normal.x * 0.4f + first.normal.y * 0.9f -
           first.normal.z * 0.6f;
    face[0] = first.face;
    loss[0] = sum;
  });
  for (int round = 0; round < (on_reference() ? 5 : 20); ++round) {
    const vec3 o{2 + place(engine), place(engine), place(engine)},
        d{-1.5f + place(engine), place(engine), place(engine)};
    const Array<vec3> ray = Array<vec3>(device(), {o, d}).requires_grad();
    Array<float> loss = zeros<float>(device(), 1);
    Array<int> face = zeros<int>(device(), 1);
    points.zero_grad();
    Tape tape;
    tape.record([&] { launch(loss_of, 1, mesh, ray, loss, face); });
    tape.backward(loss);
    const int f = face.at(0);
    ASSERT_GE(f, 0);
    Inputs in{as(o), as(d)};
    std::vector<vec3> gradients = ray.grad().to_vector();
    const auto by_point = points.grad().to_vector();
    for (std::size_t k = 0; k < 3; ++k) {
      const auto at = std::size_t(data.indices[std::size_t(3 * f) + k]);
      in[2 + k] = as(data.points[at]);
      gradients.push_back(by_point[at]);
    }
    const auto f64 = [](const Inputs& in) {
      const V ab = sub(in[3], in[2]), ac = sub(in[4], in[2]), n = cross3(ab, ac);
      const double nn = dot3(n, n), t = dot3(sub(in[2], in[0]), n) / dot3(in[1], n);
      V p{};
      for (std::size_t k = 0; k < 3; ++k) p[k] = in[0][k] + t * in[1][k] - in[2][k];
      const double v = dot3(cross3(p, ac), n) / nn, w = dot3(cross3(ab, p), n) / nn, l = std::sqrt(nn);
      double sum = t + kWeights[1] * (1 - v - w) + kWeights[2] * v;
      for (std::size_t k = 0; k < 3; ++k) sum += kWeights[3 + k] * n[k] / l;
      return sum;
    };
    compare(in, f64, gradients, "ray");
  }
}

/// Loops over query results are differentiated like other loops; the way back walks the tree without a stack.
TEST_P(MeshGradient, of_loops_over_what_is_found) {
  std::vector<vec3> lo, hi;
  for (int k = 0; k < 50; ++k) lo.push_back({float(k % 7), float(k / 7), 0}), hi.push_back(lo.back() + vec3{1, 1, 1});
  const Bvh tree(device(), lo, hi);
  const Array<float> weights = full<float>(device(), 50, 2).requires_grad();
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(kernel("sum",
                  [](Var<BvhData> tree, Arr<const float> weights, Arr<float> loss) {
                    Float sum = 1;
                    for (auto k : bvh_query_aabb(tree, Vec3(1.5f, 1.5f, 0), Vec3(3.5f, 2.5f, 1)))
                      sum += weights[k] * weights[k] * 0.5f;
                    loss[0] = sum;
                  }),
           1, tree, weights, loss);
  });
  tape.backward(loss);
  const auto g = weights.grad().to_vector();
  float found = 0;
  for (int k = 0; k < 50; ++k) {
    const bool inside = lo[std::size_t(k)].x <= 3.5f && hi[std::size_t(k)].x >= 1.5f && lo[std::size_t(k)].y <= 2.5f &&
                        hi[std::size_t(k)].y >= 1.5f;
    EXPECT_EQ(g[std::size_t(k)], inside ? 2 : 0) << k;
    found += inside;
  }
  EXPECT_EQ(loss.at(0), 1 + 2 * found);
}

TEST_P(MeshGradient, of_all_hits_of_a_ray) {
  // A ray along x hits two sheets, at x = 1 and x = 2; the loss is the sum of squared t.
  const MeshData data{
      {vec3{1, -1, -1}, vec3{1, 2, -1}, vec3{1, -1, 2}, vec3{2, -1, -1}, vec3{2, 2, -1}, vec3{2, -1, 2}},
      {0, 1, 2, 3, 4, 5}};
  const Array<vec3> points = Array<vec3>(device(), data.points).requires_grad();
  const Mesh mesh(points, Array<int>(device(), data.indices));
  const Array<vec3> origin = Array<vec3>(device(), {vec3{0, 0, 0}}).requires_grad();
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(kernel("squares",
                  [](Var<MeshArrays> mesh, Arr<const vec3> origin, Arr<float> loss) {
                    Float sum = 0;
                    for (auto hit : mesh_query_ray_all(mesh, origin[0], Vec3(1, 0, 0))) sum += hit.t * hit.t;
                    loss[0] = sum;
                  }),
           1, mesh, origin, loss);
  });
  tape.backward(loss);
  EXPECT_NEAR(loss.at(0), 5, 1e-5);
  EXPECT_NEAR(origin.grad().at(0).x, -6, 1e-4);
  vec3 first{0, 0, 0}, second{0, 0, 0};
  for (int k = 0; k < 3; ++k) first += points.grad().at(k), second += points.grad().at(3 + k);
  EXPECT_NEAR(first.x, 2, 1e-4);
  EXPECT_NEAR(second.x, 4, 1e-4);
}

/// A triangle across the x axis: a ray along the axis hits it at the x of its points. The tests show what refit() and
/// rebuild() do to a tape.
MeshData sheet(float x) { return {{vec3{x, -1, -1}, vec3{x, 2, -1}, vec3{x, -1, 2}}, {0, 1, 2}}; }
const auto squared_t = kernel("squared t", [](Var<MeshArrays> mesh, Arr<float> loss) {
  const Float t = mesh_query_ray(mesh, Vec3(0, 0, 0), Vec3(1, 0, 0)).t;
  loss[0] += t * t;
});
const auto stretch = kernel("stretch", [](Arr<vec3> points) { points[tid()].x *= 1.5f; });

TEST_P(MeshGradient, passes_refits_and_rebuilds_between_launches) {
  const Array<vec3> points = Array<vec3>(device(), sheet(1).points).requires_grad();
  Mesh mesh(points, Array<int>(device(), sheet(1).indices));
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(squared_t, 1, mesh, loss);
    launch(stretch, 3, points);
    mesh.refit();
    launch(squared_t, 1, mesh, loss);
    launch(stretch, 3, points);
    mesh.rebuild();
    launch(squared_t, 1, mesh, loss);
  });
  EXPECT_NEAR(loss.at(0), 1 + 1.5 * 1.5 + 2.25 * 2.25, 1e-4);
  tape.backward(loss);
  float sum = 0;
  for (const vec3& g : points.grad().to_vector()) sum += g.x;
  // d/dx of x^2 + (1.5 x)^2 + (2.25 x)^2 at 1
  EXPECT_NEAR(sum, 2 * (1 + 2.25 + 2.25 * 2.25), 1e-3);
}

TEST_P(MeshGradient, passes_steps_that_refit_and_are_run_again) {
  const Array<vec3> points = Array<vec3>(device(), sheet(1).points).requires_grad();
  Mesh mesh(points, Array<int>(device(), sheet(1).indices));
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    tape.checkpointed(7, 2, [&](int k) {
      launch(squared_t, 1, mesh, loss);
      launch(stretch, 3, points);
      if (k % 3 == 2)
        mesh.rebuild();
      else
        mesh.refit();
    });
  });
  double value = 0, x = 1;
  for (int k = 0; k < 7; ++k, x *= 1.5) value += x * x;
  EXPECT_NEAR(loss.at(0), value, 1e-4 * value);
  tape.backward(loss);
  double sum = 0;
  for (const vec3& g : points.grad().to_vector()) sum += double(g.x);
  EXPECT_NEAR(sum, 2 * value, 1e-3 * value);
}

/// The loss of three steps, in float64, of a triangle that moves by its velocities and is hit by a ray.
double velocities_met(const std::array<V, 6>& in) {
  std::array<V, 6> now = in;
  double sum = 0;
  for (int step = 0; step < 3; ++step) {
    const V ab = sub(now[1], now[0]), ac = sub(now[2], now[0]), n = cross3(ab, ac), along{1, 0.1, 0.2};
    const double nn = dot3(n, n), t = dot3(now[0], n) / dot3(along, n);
    V p{};
    for (std::size_t k = 0; k < 3; ++k) p[k] = t * along[k] - now[0][k];
    const double v = dot3(cross3(p, ac), n) / nn, w = dot3(cross3(ab, p), n) / nn, u = 1 - v - w;
    for (std::size_t k = 0; k < 3; ++k) sum += kWeights[3 + k] * (u * now[3][k] + v * now[4][k] + w * now[5][k]);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k) now[i][k] += 0.25 * now[3 + i][k], now[3 + i][k] *= 1.5;
  }
  return sum;
}

TEST_P(MeshGradient, of_velocities_passes_a_refit_and_a_rebuild) {
  const std::vector<vec3> at = sheet(1).points, speeds{{0.3f, 0.1f, -0.2f}, {-0.1f, 0.4f, 0.2f}, {0.2f, -0.3f, 0.5f}};
  const Array<vec3> points = Array<vec3>(device(), at).requires_grad(),
                    velocities = Array<vec3>(device(), speeds).requires_grad();
  Mesh mesh(points, Array<int>(device(), sheet(1).indices), {.velocities = velocities});
  Array<float> loss = zeros<float>(device(), 1);
  const auto meet = kernel("meet", [](Var<MeshArrays> mesh, Arr<float> loss) {
    const MeshRayHit h = mesh_query_ray(mesh, Vec3(0, 0, 0), Vec3(1, 0.1f, 0.2f));
    loss[0] += dot(mesh_eval_velocity(mesh, h.face, h.u, h.v), Vec3(0.4f, 0.9f, -0.6f));
  });
  const auto move = kernel("move", [](Arr<vec3> points, Arr<vec3> velocities) {
    Int i = tid();
    points[i] += velocities[i] * 0.25f;
    velocities[i] *= 1.5f;
  });
  Tape tape;
  tape.record([&] {
    launch(meet, 1, mesh, loss);
    launch(move, 3, points, velocities);
    mesh.refit();
    launch(meet, 1, mesh, loss);
    launch(move, 3, points, velocities);
    mesh.rebuild();
    launch(meet, 1, mesh, loss);
  });
  std::array<V, 6> in;
  for (std::size_t k = 0; k < 3; ++k) in[k] = as(at[k]), in[3 + k] = as(speeds[k]);
  EXPECT_NEAR(loss.at(0), velocities_met(in), 1e-5);
  tape.backward(loss);
  std::vector<vec3> gradients = points.grad().to_vector();
  for (const vec3& g : velocities.grad().to_vector()) gradients.push_back(g);
  for (std::size_t k = 0; k < 6; ++k)
    for (std::size_t c = 0; c < 3; ++c) {
      std::array<V, 6> up = in, down = in;
      up[k][c] += 1e-6, down[k][c] -= 1e-6;
      const double expected = (velocities_met(up) - velocities_met(down)) / 2e-6;
      EXPECT_NEAR(gradients[k][int(c)], expected, 1e-4 * (1 + std::abs(expected))) << k << ", component " << c;
    }
}

TEST_P(MeshGradient, of_the_furthest_point) {
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points = Array<vec3>(device(), data.points).requires_grad();
  const Mesh mesh(points, Array<int>(device(), data.indices));
  const vec3 from{0.3f, -0.2f, 0.1f};
  const Array<vec3> p = Array<vec3>(device(), {from}).requires_grad();
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(kernel("furthest", [](Var<MeshArrays> mesh, Arr<const vec3> p,
                                 Arr<float> loss) { loss[0] = mesh_query_furthest_point(mesh, p[0]).distance; }),
           1, mesh, p, loss);
  });
  tape.backward(loss);
  std::size_t far = 0;
  for (std::size_t k = 1; k < data.points.size(); ++k)
    if (length(data.points[k] - from) > length(data.points[far] - from)) far = k;
  const vec3 along = normalize(from - data.points[far]);
  EXPECT_NEAR(length(p.grad().at(0) - along), 0, 1e-5);
  const auto by_point = points.grad().to_vector();
  for (std::size_t k = 0; k < by_point.size(); ++k)
    EXPECT_NEAR(length(by_point[k] - (k == far ? -along : vec3{0, 0, 0})), 0, 1e-5) << k;
}

/// The surface of a finely divided sphere is nearly a sphere: |p| - 1 from outside, 1 - |p| from inside.
TEST_P(MeshGradient, of_distances_to_a_sphere_is_nearly_the_direction) {
  const MeshData data = shapes::icosphere(1, on_reference() ? 2 : 5);
  const Mesh mesh(device(), data);
  std::vector<vec3> asked{vec3{2, 0.3f, 0.1f}, vec3{-0.3f, 0.6f, 0.2f}, vec3{0.1f, 0.2f, -3}, vec3{0, -0.5f, 0.4f}};
  const Array<vec3> p = Array<vec3>(device(), asked).requires_grad();
  Array<float> distance = zeros<float>(device(), 4);
  Tape tape;
  tape.record([&] {
    launch(kernel("signed distance",
                  [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> distance) {
                    Int i = tid();
                    const MeshPointHit h = mesh_query_point(mesh, p[i], 10.f, MeshSign::normal);
                    distance[i] = h.distance * h.sign;
                  }),
           4, mesh, p, distance);
  });
  tape.backward({{distance, ones<float>(device(), 4)}});
  for (int k = 0; k < 4; ++k) {
    const float r = length(asked[std::size_t(k)]), near = on_reference() ? 0.05f : 2e-3f;
    EXPECT_NEAR(distance.at(k), r - 1, near);
    EXPECT_NEAR(length(p.grad().at(k) - asked[std::size_t(k)] * (1 / r)), 0, 10 * near) << k;
  }
}

/// The closest point is rounded by more than the error of such distances, which must not tilt their gradients.
TEST_P(MeshGradient, of_distances_close_to_a_face_is_its_normal) {
  const MeshData data = shapes::torus(1, 0.35f, 12, 8);
  const Mesh mesh(device(), data);
  const auto of_distance = kernel("distance", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> distance) {
    distance[tid()] = mesh_query_point(mesh, p[tid()], 10.f).distance;
  });
  for (const auto& [height, error] : {std::pair{1e-2f, 2e-6f}, {1e-3f, 2e-6f}, {1e-4f, 2e-6f}, {1e-5f, 1e-4f}}) {
    std::vector<vec3> asked, normals;
    for (std::size_t f = 0; f < data.indices.size(); f += 3) {
      const auto corner = [&](std::size_t k) { return data.points[std::size_t(data.indices[f + k])]; };
      normals.push_back(normalize(cross(corner(1) - corner(0), corner(2) - corner(0))));
      asked.push_back((corner(0) + corner(1) + corner(2)) / 3.f + normals.back() * height);
    }
    const std::int64_t n = std::int64_t(asked.size());
    const Array<vec3> p = Array<vec3>(device(), asked).requires_grad();
    const Array<float> distance = zeros<float>(device(), n);
    Tape tape;
    tape.record([&] { launch(of_distance, n, mesh, p, distance); });
    tape.backward({{distance, ones<float>(device(), n)}});
    const std::vector<vec3> found = p.grad().to_vector();
    for (std::size_t k = 0; k < asked.size(); ++k)
      ASSERT_LT(length(found[k] - normals[k]), error) << "face " << k << " at " << height;
  }
}

/// Gradients go to the array of which the mesh was made, though that is one column of another.
TEST_P(MeshGradient, reaches_points_with_strides) {
  std::vector<vec3> both;
  for (const vec3& p : sheet(1).points) both.push_back(p), both.push_back({9, 9, 9});
  const Array<vec3> all = Array<vec3>(device(), both).requires_grad();
  Mesh mesh(all.slice(0, 6, 2), Array<int>(device(), sheet(1).indices));
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(squared_t, 1, mesh, loss); });
  tape.backward(loss);
  const auto g = all.grad().to_vector();
  EXPECT_NEAR(g[0].x + g[2].x + g[4].x, 2, 1e-4);
  EXPECT_EQ(g[1].x + g[3].x + g[5].x, 0);
  // By its handle, too, the mesh has the points of its view, and the present ones.
  Array<float> t = zeros<float>(device(), 1);
  const auto by_id = kernel("by_id", [](UInt64 id, Arr<float> t) {
    t[0] = mesh_query_ray(id, Vec3(0, 0, 0), Vec3(1, 0, 0)).t + mesh_get_point(id, 0).x;
  });
  launch(by_id, 1, mesh.id(), t);
  EXPECT_NEAR(t.at(0), 2, 1e-5);
  launch(stretch, 6, all);
  mesh.refit();
  launch(by_id, 1, mesh.id(), t);
  EXPECT_NEAR(t.at(0), 3, 1e-5);
}

}  // namespace
