// Queries on meshes that people have made: slivers, open edges, triangles over each other.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <algorithm>
#include <cmath>

#include "../../common/mesh_oracle.h"
#include "../device_test.h"
#include "../full_sizes.h"
#include "mesh_asked.h"
#include "mesh_patches.h"
#include "real_meshes.h"

using namespace weft;
using weft::test::ask_points;
using weft::test::cast_rays;
using weft::test::full_sizes;
using weft::test::Oracle;
using weft::test::Patch;
using weft::test::random_points;
using weft::test::Surface;

namespace {

class MeshQueryReal : public test::GeometryTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && meshes().empty()) GTEST_SKIP() << "there are none beside the project";
  }
  std::span<const test::RealMesh> meshes() const { return test::real_meshes_for(on_reference()); }
  bool full() const { return full_sizes(); }
  /// A number of queries that are compared with all triangles in float64: fewer for larger meshes.
  int count_for(const test::RealMesh& mesh, int most) const {
    const std::size_t corners = full() ? 2'000'000'000 : brief() ? 40'000 : 20'000'000;
    return int(std::clamp<std::size_t>(corners / mesh.data.indices.size(), brief() ? 10 : 100, std::size_t(most)));
  }
};
ON_EVERY_DEVICE(MeshQueryReal);

MeshData moved_by(MeshData data, const vec3& by) {
  for (vec3& p : data.points) p += by;
  return data;
}

TEST_P(MeshQueryReal, all_triangles_one_by_one_say_the_same) {
  for (const test::RealMesh& real : meshes()) {
    SCOPED_TRACE(real.name);
    const Oracle oracle(real.data);
    const int n = count_for(real, 100'000);
    const std::vector<vec3> origins = random_points(n, 1, 2), directions = random_points(n, 2, 3);
    std::vector<Oracle::Hits> all_hits;
    std::vector<double> distances;
    for (std::size_t i = 0; i < origins.size(); ++i) {
      all_hits.push_back(oracle.ray(origins[i], directions[i], 1.5));
      distances.push_back(oracle.distance(origins[i]));
    }
    for (int leaf_size : {1, 4}) {
      const Mesh mesh(device(), real.data, {.leaf_size = leaf_size});
      const auto hits = cast_rays(device(), mesh, origins, directions, 1.5f);
      const auto near = ask_points(device(), mesh, origins, 10, MeshSign::none);
      int seen = 0;
      for (std::size_t i = 0; i < origins.size(); ++i) {
        ASSERT_EQ(near[i].hit, true);
        ASSERT_NEAR(near[i].distance, distances[i], 3e-5) << i;
        const Oracle::Hits& expected = all_hits[i];
        if (expected.unsure) continue;
        const std::vector<Oracle::Hit>& below = expected.hits;
        ASSERT_EQ(hits[i].hit, !below.empty()) << i;
        ASSERT_EQ(hits[i].any, !below.empty()) << i;
        ASSERT_EQ(hits[i].count, int(below.size())) << i;
        if (below.empty()) continue;
        ++seen;
        ASSERT_NEAR(hits[i].t, below[0].t, 1e-5 * std::max(1.0, below[0].t)) << i;
        const bool first_alone = below.size() == 1 || below[1].t - below[0].t > 1e-5;
        ASSERT_TRUE(!first_alone || hits[i].face == below[0].face) << i;
      }
      EXPECT_GT(seen, n / 20);
    }
  }
}

struct Passed {
  int hit, any;
  float t;    ///< t of the first hit of all
  int count;  ///< hits on triangles of the patch
  float last;
};
WEFT_STRUCT(Passed, hit, any, t, count, last);

// Open meshes have no inside, but no gaps either where their triangles meet: a ray from close by, on either side,
// through an edge of two triangles or through a point with triangles all around, hits exactly one of them.
TEST_P(MeshQueryReal, no_ray_passes_between_triangles_that_meet) {
  const auto pass = kernel("pass", [](Var<MeshArrays> mesh, Arr<const vec3> origin, Arr<const vec3> middle,
                                      Arr<const int> first, Arr<const int> faces, Arr<Passed> out) {
    Int i = tid();
    const Vec3 direction = Vec3(middle[i]) - Vec3(origin[i]);
    const MeshRayHit h = mesh_query_ray(mesh, origin[i], direction);
    const Bool any = mesh_query_ray_anyhit(mesh, origin[i], direction, 2.f);
    Int count = 0;
    Float last = 0;
    for (auto hit : mesh_query_ray_all(mesh, origin[i], direction, 2.f)) {
      for (Int k : range(first[i], first[i + 1])) {
        If (faces[k] == hit.face) {
          count += 1;
          last = hit.t;
        }
      }
    }
    out[i] = Var<Passed>(select(h.hit, 1, 0), select(any, 1, 0), h.t, count, last);
  });
  for (const test::RealMesh& real : meshes())
    for (const float away : {0.f, 1e4f}) {
      SCOPED_TRACE(real.name + (away > 0 ? ", far from 0" : ""));
      const MeshData data = moved_by(real.data, {away, -away, away});
      const Surface surface(data);
      const std::size_t most = brief() ? 200 : full() ? 1'000'000 : 10'000;
      std::vector<vec3> origins, middles;
      std::vector<int> first{0}, faces;
      std::size_t seen = 0;
      const std::vector<vec3> from = random_points(10'007, 0.3f, 31);
      for (const auto* patches : {&surface.edges, &surface.points}) {
        const std::size_t step = patches->size() / most + 1;
        for (std::size_t k = 0; k < patches->size(); k += step) {
          const Patch& patch = (*patches)[k];
          ++seen;
          for (const float side : {-1.f, 1.f}) {
            // The origin is roughly along the normal of one of the triangles.
            const auto point = [&](int j) {
              return data.points[std::size_t(data.indices[std::size_t(3 * patch.faces[0] + j)])];
            };
            const vec3 normal = cross(point(1) - point(0), point(2) - point(0));
            if (!(length(normal) > 0)) continue;
            const vec3 origin = patch.middle + (normalize(normal) + from[k % from.size()]) * (side * 0.1f);
            if (!patch.is_passed(data, origin)) continue;
            origins.push_back(origin);
            middles.push_back(patch.middle);
            faces.insert(faces.end(), patch.faces.begin(), patch.faces.end());
            first.push_back(int(faces.size()));
          }
        }
      }
      EXPECT_GT(origins.size(), seen);
      const auto n = std::int64_t(origins.size());
      Array<Passed> out = zeros<Passed>(device(), n);
      launch(pass, n, Mesh(device(), data), Array<vec3>(device(), origins), Array<vec3>(device(), middles),
             Array<int>(device(), first), Array<int>(device(), faces), out);
      const std::vector<Passed> got = out.to_vector();
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].count, 1) << "of the triangles around " << middles[i].x << " " << middles[i].y << " "
                                   << middles[i].z << " from " << origins[i].x << " " << origins[i].y << " "
                                   << origins[i].z;
        ASSERT_EQ(got[i].hit, 1) << i;
        ASSERT_EQ(got[i].any, 1) << i;
        ASSERT_LE(got[i].t, got[i].last) << i;
      }
    }
}

// From a point inside of a closed mesh, a ray hits an odd number of triangles, whatever is in its way.
TEST_P(MeshQueryReal, no_ray_escapes_from_inside) {
  std::vector<test::RealMesh> closed;
  for (const test::RealMesh& real : meshes())
    if (Surface(real.data).closed) closed.push_back(real);
  if (closed.empty()) GTEST_SKIP() << "none of them is closed";
  for (const test::RealMesh& real : closed)
    for (const float away : {0.f, 1e4f, 1e5f}) {
      SCOPED_TRACE(real.name + (away > 0 ? ", far from 0" : ""));
      const vec3 by{away, -away, away};
      // Far away many triangles lose their area by rounding; the mesh is still closed.
      const MeshData data = moved_by(real.data, by);
      const Oracle oracle(data);
      // The origins inside come first.
      std::vector<vec3> origins, outside;
      for (const vec3& p : random_points(40, 0.9f, 32)) {
        if (oracle.distance(p + by) < 1e-3) continue;
        const double winding = oracle.winding(p + by);
        ASSERT_NEAR(winding, std::round(winding), 1e-6);
        (std::llround(std::abs(winding)) % 2 ? origins : outside).push_back(p + by);
      }
      const int inside = int(origins.size());
      ASSERT_GT(inside, 2);
      origins.insert(origins.end(), outside.begin(), outside.end());
      const int count = int(origins.size()), random = full() ? 2'000'000 : brief() ? 1000 : 20'000;
      const int step = full() ? 1 : 37;
      // The counts of missed nearest hits, missed any hits, and wrong numbers of hits.
      Array<int> escaped = zeros<int>(device(), 3);
      launch(kernel("escape",
                    [=](Var<MeshArrays> mesh, Arr<const vec3> origins, Arr<int> escaped) {
                      Int i = tid();
                      // Rays to points and edges come from inside alone.
                      const Int k = select(i < random, i % count, (i - random) / 2 % inside);
                      const Bool odd = k < inside;
                      const Vec3 origin = origins[k];
                      UInt rng = rand_init(33, i);
                      Vec3 direction;
                      for (int c = 0; c < 3; ++c) direction[c] = randf(rng, -1.f, 1.f);
                      // The later rays go to points, and to the middles of edges.
                      If (i >= random) {
                        const Int corner = (i - random) / 2 * step, next = corner / 3 * 3 + (corner + 1) % 3;
                        const Vec3 a = mesh_get_point(mesh, corner), b = mesh_get_point(mesh, next);
                        direction = select(i % 2 == 0, a, (a + b) * 0.5f) - origin;
                      }
                      If (odd && !mesh_query_ray(mesh, origin, direction).hit) {
                        atomic_add(escaped[0], 1);
                      }
                      If (odd && !mesh_query_ray_anyhit(mesh, origin, direction)) {
                        atomic_add(escaped[1], 1);
                      }
                      If ((mesh_query_ray_count(mesh, origin, direction) & 1) != select(odd, 1, 0)) {
                        atomic_add(escaped[2], 1);
                      }
                    }),
             random + 2 * (std::int64_t(data.indices.size()) / step), Mesh(device(), data),
             Array<vec3>(device(), origins), escaped);
      EXPECT_EQ(escaped.to_vector(), (std::vector<int>{0, 0, 0}));
    }
}

TEST_P(MeshQueryReal, winding_numbers_and_signs_are_those_of_all_triangles) {
  for (const test::RealMesh& real : meshes())
    for (const bool whole : {true, false}) {
      SCOPED_TRACE(real.name + (whole ? "" : " without a tenth of its triangles"));
      MeshData data{real.data.points, {}};
      for (std::size_t k = 0; k < real.data.indices.size(); ++k)
        if (whole || (k / 3 * 7919u) % 10 != 0) data.indices.push_back(real.data.indices[k]);
      const bool closed = Surface(data).closed;
      const Mesh mesh(device(), data, {.winding_number = true});
      const Oracle oracle(data);
      const std::vector<vec3> points = random_points(std::max(count_for(real, 100'000) / 4, 10), 0.8f, 36);
      const auto numbers = test::winding_numbers(device(), mesh, points);
      const auto by_winding = ask_points(device(), mesh, points, 100, MeshSign::winding),
                 by_normal = ask_points(device(), mesh, points, 100, MeshSign::normal),
                 by_majority = ask_points(device(), mesh, points, 100, MeshSign::majority);
      int inside = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const double winding = oracle.winding(points[i]);
        EXPECT_NEAR(numbers[i], winding, 0.005) << i;
        // Within 1e-4 of the diagonal either sign is right.
        if (by_normal[i].distance < 1e-4f * test::diagonal_of(data)) continue;
        const int sign = winding > 0.5 ? -1 : 1;
        inside += sign < 0;
        if (std::abs(winding - 0.5) > 0.005) {
          EXPECT_EQ(by_winding[i].sign, sign) << i;
        }
        if (!closed) continue;
        EXPECT_EQ(by_normal[i].sign, sign) << i;
        EXPECT_EQ(by_majority[i].sign, sign) << i;
      }
      EXPECT_GT(inside, 0);
    }
}

}  // namespace
