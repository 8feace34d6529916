// The choice of the closest triangle, where several are nearly as close.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <cmath>
#include <random>

#include "../../common/mesh_oracle.h"
#include "../device_test.h"
#include "../full_sizes.h"
#include "mesh_asked.h"
#include "real_meshes.h"

using namespace weft;
using weft::test::Oracle;

namespace {

class MeshClosest : public test::GeometryTest {};
ON_EVERY_DEVICE(MeshClosest);

struct Answer {
  int face;
  float sign, distance;
};
WEFT_STRUCT(Answer, face, sign, distance);

constexpr float kNoLimit = std::numeric_limits<float>::infinity();

std::vector<Answer> ask(const Device& device, const Mesh& mesh, const std::vector<vec3>& points,
                        const std::vector<float>& limits) {
  static const auto k =
      kernel("ask", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<const float> limits, Arr<Answer> out) {
        Int i = tid();
        const MeshPointHit h = mesh_query_point(mesh, points[i], limits[i], MeshSign::normal);
        out[i] = Var<Answer>(h.face, h.sign, h.distance);
      });
  const auto n = std::int64_t(points.size());
  Array<Answer> out = zeros<Answer>(device, n);
  launch(k, n, mesh, Array<vec3>(device, points), Array<float>(device, limits), out);
  return out.to_vector();
}
std::vector<Answer> ask(const Device& device, const Mesh& mesh, const std::vector<vec3>& points, float limit) {
  return ask(device, mesh, points, std::vector<float>(points.size(), limit));
}

// A walk compares triangles by a distance that takes fewer steps, if they are wide enough for it.
TEST_P(MeshClosest, the_width_of_triangles_does_not_show_in_distances) {
  std::mt19937 engine(31);
  std::uniform_real_distribution<float> any(-1, 1), part(0, 1);
  const auto direction = [&] { return normalize(vec3{any(engine), any(engine), any(engine)} + vec3(0, 0, 1e-3f)); };
  MeshData data;
  std::vector<vec3> points;
  const int each = brief() ? 4 : 200;
  for (const float height : {1.f, 0.3f, 0.21f, 0.19f, 0.05f, 1e-2f, 1e-3f, 1e-5f})
    for (int i = 0; i < each; ++i) {
      const vec3 along = direction(), across = normalize(cross(along, direction()));
      const vec3 a{any(engine), any(engine), any(engine)}, b = a + along * 0.2f;
      const vec3 c = a + along * (0.4f * any(engine)) + across * (0.2f * height);
      const int first = int(data.points.size());
      for (const vec3& p : {a, b, c}) data.points.push_back(p);
      // Any of the corners may be the narrow one.
      for (int k = 0; k < 3; ++k) data.indices.push_back(first + (k + i) % 3);
      for (const float away : {0.f, 1e-4f, 1e-2f, 1.f, 1000.f}) {
        const float u = part(engine), v = part(engine) * (1 - u);
        points.push_back(a * u + b * v + c * (1 - u - v) + direction() * away);
      }
    }
  const Oracle oracle(data);
  const Mesh mesh(device(), data);
  const auto got = ask(device(), mesh, points, kNoLimit);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double d = oracle.distance(points[i]);
    ASSERT_NEAR(got[i].distance, d, 5e-7 * (1 + d)) << i;
  }
}

// A plate is 1.5e-6 thick and has a corner of 12 degrees: a point above it is closer to the upper side, by little.
TEST_P(MeshClosest, the_far_side_of_a_thin_plate_does_not_win) {
  const float thick = 1.5e-6f;
  const vec3 a{0, 0, 0}, b{1, 0, 0}, c{0.9f * std::cos(0.204f), 0.9f * std::sin(0.204f), 0}, up{0, 0, thick};
  std::mt19937 engine(5);
  std::uniform_real_distribution<float> part(0.1f, 0.9f);
  for (const float size : {1.f, 1000.f})
    for (int turn = 0; turn < 3; ++turn) {
      const auto placed = [&](const vec3& v) {
        const vec3 w{0.8f * v.x - 0.6f * v.y, 0.6f * v.x + 0.8f * v.y, v.z};
        return vec3{w.x + 0.31f, 0.8f * w.y - 0.6f * w.z + 0.17f, 0.6f * w.y + 0.8f * w.z - 0.23f} * size;
      };
      MeshData plate{{placed(a), placed(b), placed(c), placed(a + up), placed(b + up), placed(c + up)}, {}};
      for (int k = 0; k < 3; ++k) plate.indices.push_back(3 + (k + turn) % 3);
      for (int k = 0; k < 3; ++k) plate.indices.push_back(2 - (k + turn) % 3);
      for (int k : {0, 1, 4, 0, 4, 3, 1, 2, 5, 1, 5, 4, 2, 0, 3, 2, 3, 5}) plate.indices.push_back(k);
      std::vector<vec3> points;
      for (int i = 0; i < (brief() ? 50 : 2000); ++i) {
        const float u = part(engine), v = (1 - u) * part(engine);
        points.push_back(placed(a * (1 - u - v) + b * u + c * v + up * 1.2f));
      }
      const auto got = ask(device(), Mesh(device(), plate), points, kNoLimit);
      for (std::size_t i = 0; i < points.size(); ++i) {
        ASSERT_EQ(got[i].face, 0) << i << " of a plate of size " << size;
        ASSERT_EQ(got[i].sign, 1) << i;
      }
    }
}

TEST_P(MeshClosest, products_beyond_the_range_of_floats_lose_no_triangle) {
  struct Row {
    vec3 b, c, point;
    double distance;
  };
  // The triangle's first corner is the origin.
  for (const Row& row :
       {Row{{83811936, -37564748, 0}, {83811936, 29972118, 0}, {7.32613241e14f, -3796315, 0}, 7.326131572e14},
        Row{{97647824, -47996016, 0}, {97647824, 41667084, 0}, {7.24090348e14f, -3164466, -6.38684655e14f}, 9.6551e14},
        Row{{1e9f, -5e8f, 0}, {1e9f, 5e8f, 0}, {1e12f, 0, 0}, 9.99e11},
        Row{{3e-20f, 0, 0}, {0, 1, 0}, {1e-20f, -1, 0}, 1}, Row{{1e-10f, 0, 0}, {0, 1e-10f, 0}, {3e-11f, 3e-11f, 1}, 1},
        Row{{1e-10f, 1e-11f, 1e-11f}, {1e-11f, 1e-10f, 1e-11f}, {3e-11f, 3e-11f, 1}, 1}}) {
    const Mesh mesh(device(), MeshData{{vec3{0, 0, 0}, row.b, row.c}, {0, 1, 2}});
    const Answer got = ask(device(), mesh, {row.point}, kNoLimit)[0];
    EXPECT_EQ(got.face, 0) << row.distance;
    EXPECT_NEAR(got.distance, row.distance, 1e-5 * row.distance);
  }
}

TEST_P(MeshClosest, meshes_of_every_size_are_found) {
  const auto ask_all =
      kernel("ask all", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<Answer> out, Arr<float> t, Arr<int> near) {
        Int i = tid();
        const MeshPointHit h = mesh_query_point(mesh, points[i], kNoLimit, MeshSign::normal);
        out[i] = Var<Answer>(h.face, h.sign, h.distance);
        t[i] = mesh_query_ray(mesh, points[i], Vec3(0, -1, 0)).t;
        for (auto face : mesh_query_sphere(mesh, points[i], h.distance * 1.01f)) near[i] += select(face >= 0, 1, 0);
      });
  // The mesh is a square. The points are above one of its triangles, nearly on the other, below it, beside it, and
  // above a corner.
  const std::vector<vec3> square{{-1, 0, -1}, {1, 0, -1}, {1, 0, 1}, {-1, 0, 1}};
  const std::vector<vec3> asked{
      {0.3f, 0.1f, 0.2f}, {0.3f, 1e-3f, -0.2f}, {0.6f, -0.4f, 0.1f}, {3, 0.5f, 0.1f}, {-1.2f, 0.3f, 1.3f}};
  const auto n = std::int64_t(asked.size());
  for (int power = -15; power <= 15; ++power) {
    const float s = float(std::pow(10., power));
    MeshData data{square, {0, 2, 1, 0, 3, 2}};
    std::vector<vec3> points = asked;
    for (vec3& p : data.points) p = p * s;
    for (vec3& p : points) p = p * s;
    const Oracle oracle(data);
    Array<Answer> out = zeros<Answer>(device(), n);
    Array<float> t = zeros<float>(device(), n);
    Array<int> near = zeros<int>(device(), n);
    launch(ask_all, n, Mesh(device(), data), Array<vec3>(device(), points), out, t, near);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const Answer got = out.at(std::int64_t(i));
      const double d = oracle.distance(points[i]);
      EXPECT_GE(got.face, 0) << s << ", " << i;
      EXPECT_NEAR(double(got.distance) / d, 1, 1e-5) << s << ", " << i;
      EXPECT_EQ(got.sign, asked[i].y < 0 ? -1 : 1) << s << ", " << i;
      EXPECT_GE(near.at(std::int64_t(i)), 1) << s << ", " << i;
      if (i < 2) {
        EXPECT_NEAR(t.at(std::int64_t(i)) / (asked[i].y * s), 1, 1e-5) << s << ", " << i;
      }
    }
  }
}

TEST_P(MeshClosest, nothing_is_found_beyond_the_limit) {
  std::mt19937 engine(8);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<vec3> points;
  for (int i = 0; i < (brief() ? 40 : 5000); ++i) points.push_back({any(engine), any(engine), any(engine)});
  for (const auto& [name, data] :
       test::with_real_meshes(shapes::random_soup(brief() ? 40 : 1000, 0.2f, 3), on_reference())) {
    SCOPED_TRACE(name);
    const Mesh mesh(device(), data);
    const auto free = ask(device(), mesh, points, kNoLimit);
    for (const int ulps : {-40, -3, -2, -1, 0, 1, 2, 3, 40}) {
      std::vector<float> limits;
      for (const Answer& a : free) limits.push_back(a.distance * (1 + float(ulps) * 6e-8f));
      const auto got = ask(device(), mesh, points, limits);
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (got[i].face >= 0) {
          ASSERT_LT(got[i].distance, limits[i]) << i << " by " << ulps;
          ASSERT_GE(ulps, -3) << i;
        } else {
          ASSERT_EQ(got[i].distance, 0);
          ASSERT_LE(ulps, 3) << i;
        }
      }
    }
  }
}

TEST_P(MeshClosest, nothing_furthest_is_found_at_the_limit) {
  const auto ask_again = kernel("ask again", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<int> counts) {
    const Vec3 point = points[tid()];
    const Float distance = mesh_query_furthest_point(mesh, point).distance;
    const MeshPointHit again = mesh_query_furthest_point(mesh, point, distance);
    If (again.hit && !(again.distance > distance)) {
      atomic_add(counts[0], 1);
    }
    const MeshPointHit below = mesh_query_furthest_point(mesh, point, distance * 0.999999f);
    If (below.hit && below.distance == distance) {
      atomic_add(counts[1], 1);
    }
  });
  const int n = brief() ? 40 : 5000;
  for (const auto& [name, data] : test::with_real_meshes(shapes::random_soup(40, 0.2f, 3), on_reference())) {
    SCOPED_TRACE(name);
    Array<int> counts = zeros<int>(device(), 2);
    launch(ask_again, n, Mesh(device(), data), Array<vec3>(device(), test::random_points(n, 1, 8)), counts);
    EXPECT_EQ(counts.to_vector(), (std::vector<int>{0, n}));
  }
}

// Every point is further than a number below 0, even the query's own, and no point is further than a NaN.
TEST_P(MeshClosest, the_furthest_point_may_have_a_limit_below_zero) {
  const std::vector<float> limits{-1, -1e-30f, 0, 2, std::numeric_limits<float>::quiet_NaN()};
  const auto ask = kernel("ask", [](Var<MeshArrays> mesh, Arr<const float> limits, Arr<float> found) {
    const MeshPointHit hit = mesh_query_furthest_point(mesh, Vec3(0, 0, 0), limits[tid()]);
    found[tid()] = select(hit.hit, hit.distance, -1.f);
  });
  Array<float> found = zeros<float>(device(), 5);
  const MeshData triangle{{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {0, 1, 2}},
      nothing{{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {0, 1, 2}};
  launch(ask, 5, Mesh(device(), triangle), Array<float>(device(), limits), found);
  EXPECT_EQ(found.to_vector(), (std::vector<float>{1, 1, 1, -1, -1}));
  launch(ask, 5, Mesh(device(), nothing), Array<float>(device(), limits), found);
  EXPECT_EQ(found.to_vector(), (std::vector<float>{0, 0, -1, -1, -1}));
}

}  // namespace
