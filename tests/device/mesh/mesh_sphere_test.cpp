// Triangles that a ball touches, where rounding could decide.
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "../../common/mesh_oracle.h"
#include "../device_test.h"
#include "../full_sizes.h"

using namespace weft;
using weft::test::Oracle;

namespace {

class MeshSphere : public test::GeometryTest {};
ON_EVERY_DEVICE(MeshSphere);

struct Asked {
  std::vector<vec3> centers;
  std::vector<float> radii;
  std::vector<int> faces;  ///< the face that each query must find
  void add(const vec3& center, float radius, int face) {
    centers.push_back(center), radii.push_back(radius), faces.push_back(face);
  }
};

/// Whether each ball finds its face.
std::vector<int> finds(const Device& device, const Mesh& mesh, const Asked& asked) {
  static const auto k = kernel("finds", [](Var<MeshArrays> mesh, Arr<const vec3> centers, Arr<const float> radii,
                                           Arr<const int> faces, Arr<int> found) {
    Int i = tid();
    for (auto f : mesh_query_sphere(mesh, centers[i], radii[i])) found[i] += select(f == faces[i], 1, 0);
  });
  const auto n = std::int64_t(asked.radii.size());
  Array<int> found = zeros<int>(device, n);
  launch(k, n, mesh, Array<vec3>(device, asked.centers), Array<float>(device, asked.radii),
         Array<int>(device, asked.faces), found);
  return found.to_vector();
}

// The distances are floats exactly, and a face at the radius belongs to the ball.
TEST_P(MeshSphere, a_face_at_the_radius_is_found) {
  const int n = brief() ? 40 : 10000;
  for (int leaf_size : {1, 4})
    for (int axis = 0; axis < 3; ++axis) {
      // One face crosses an axis at 1; others are around it.
      const int second = (axis + 1) % 3, third = (axis + 2) % 3;
      const auto at = [&](float x, float y, float z) {
        vec3 p;
        p[axis] = x, p[second] = y, p[third] = z;
        return p;
      };
      MeshData data;
      for (const float x : {1.f, -7.f, 9.f})
        for (const vec3& p : {at(x, 0.1f, 0.2f), at(x, 7.3f, 0.7f), at(x, 1.1f, 5.9f)}) {
          data.indices.push_back(int(data.points.size()));
          data.points.push_back(p);
        }
      const Mesh mesh(device(), data, {.leaf_size = leaf_size});
      std::mt19937 engine(61);
      std::uniform_real_distribution<float> part(0.02f, 0.95f), far(0, 3);
      Asked asked;
      for (int i = 0; i < n; ++i) {
        const float u = part(engine), v = part(engine) * (0.97f - u),
                    away = 0x1p-20f * std::round(0x1p20f * far(engine));
        vec3 p = data.points[0] * u + data.points[1] * v + data.points[2] * (1 - u - v);
        const float radius = i % 3 == 0 ? 0.f : i % 3 == 1 ? 1.f : away;
        p[axis] = 1 + (i % 2 ? radius : -radius);
        asked.add(p, std::abs(p[axis] - 1), 0);
      }
      const auto found = finds(device(), mesh, asked);
      EXPECT_EQ(std::ranges::count(found, 1), n) << "leaf " << leaf_size << " axis " << axis;
    }
}

// A triangle of any shape is found at its distance, rounded up, and not a little below that.
TEST_P(MeshSphere, triangles_are_found_from_their_distance_on) {
  const int n = brief() ? 60 : 3000;
  std::mt19937 engine(62);
  std::uniform_real_distribution<float> any(-1, 1), part(0, 1);
  const auto vector = [&] { return vec3{any(engine), any(engine), any(engine)}; };
  for (const float scale : {1.f, 1e-6f, 1e6f})
    for (const bool slivers : {false, true}) {
      MeshData data;
      for (int i = 0; i < n; ++i) {
        const vec3 along = normalize(vector() + vec3{0, 0, 2}),
                   across = cross(along, normalize(vec3{2, 0, 0} + vector()));
        const float height = slivers ? std::exp(-4 - 14 * part(engine)) : 0.1f + part(engine);
        const vec3 a = vector() * 2, b = a + along, c = a + along * any(engine) + normalize(across) * height;
        for (const vec3& p : {a, b, c}) {
          data.indices.push_back(int(data.points.size()));
          data.points.push_back(p * scale);
        }
      }
      const Oracle oracle(data);
      Asked at, below;
      for (int i = 0; i < n; ++i) {
        const vec3 *corner = &data.points[std::size_t(3 * i)], &a = corner[0], &b = corner[1], &c = corner[2];
        const float u = part(engine), v = (1 - u) * part(engine);
        // The point is on the triangle, near it, or away from it.
        const float away = i % 4 == 0 ? 0.f : i % 4 == 1 ? 1e-6f : i % 4 == 2 ? 1e-2f : 3.f;
        const vec3 p = a * u + b * v + c * (1 - u - v) + vector() * (scale * away);
        float reach = 0;
        for (const vec3& q : {a, b, c})
          for (int k = 0; k < 3; ++k) reach = std::max(reach, std::abs(q[k] - p[k]));
        const double d = oracle.distance(p, i);
        at.add(p, std::nextafter(float(d), INFINITY), i);
        const double less = d - double(reach) * (slivers ? 2e-5 : 1e-6);
        if (less >= 0) below.add(p, std::nextafter(float(less), 0.f), i);
      }
      const Mesh mesh(device(), data);
      const auto found = finds(device(), mesh, at), not_found = finds(device(), mesh, below);
      EXPECT_EQ(std::ranges::count(found, 1), n) << scale << (slivers ? " slivers" : "");
      EXPECT_GT(not_found.size(), std::size_t(n / 3));
      EXPECT_EQ(std::ranges::count(not_found, 0), std::ptrdiff_t(not_found.size())) << scale;
    }
}

}  // namespace
