// Rays and points that tests ask of a mesh on a device.
#pragma once
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/weft.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weft::test {

inline std::vector<vec3> random_points(int n, float size, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> place(-size, size);
  std::vector<vec3> points;
  for (int i = 0; i < n; ++i) {
    const float x = place(engine), y = place(engine), z = place(engine);
    points.push_back({x, y, z});
  }
  return points;
}

inline float diagonal_of(const MeshData& data) {
  vec3 lower = data.points.at(0), upper = lower;
  for (const vec3& p : data.points)
    for (int k = 0; k < 3; ++k) lower[k] = std::min(lower[k], p[k]), upper[k] = std::max(upper[k], p[k]);
  return length(upper - lower);
}

struct RayRow {
  int hit, face;
  float t, u, v, sign;
  vec3 normal;
  int any, count;
};
WEFT_STRUCT(RayRow, hit, face, t, u, v, sign, normal, any, count);

inline const auto cast = kernel(
    "cast", [](Var<MeshArrays> mesh, Arr<const vec3> origin, Arr<const vec3> direction, Float max_t, Arr<RayRow> out) {
      Int i = tid();
      const MeshRayHit h = mesh_query_ray(mesh, origin[i], direction[i], max_t);
      const Bool any = mesh_query_ray_anyhit(mesh, origin[i], direction[i], max_t);
      out[i] = Var<RayRow>(select(h.hit, 1, 0), h.face, h.t, h.u, h.v, h.sign, h.normal, select(any, 1, 0),
                           mesh_query_ray_count(mesh, origin[i], direction[i], max_t));
    });

inline std::vector<RayRow> cast_rays(const Device& device, const Mesh& mesh, const std::vector<vec3>& origins,
                                     const std::vector<vec3>& directions, float max_t) {
  const std::int64_t n = std::int64_t(origins.size());
  Array<RayRow> out = zeros<RayRow>(device, n);
  launch(cast, n, mesh, Array<vec3>(device, origins), Array<vec3>(device, directions), max_t, out);
  return out.to_vector();
}

struct PointRow {
  int hit, face;
  float sign, u, v, distance;
  vec3 position;
};
WEFT_STRUCT(PointRow, hit, face, sign, u, v, distance, position);

inline std::vector<PointRow> ask_points(const Device& device, const Mesh& mesh, const std::vector<vec3>& points,
                                        float max_dist, MeshSign sign, bool far = false) {
  const std::int64_t n = std::int64_t(points.size());
  Array<PointRow> out = zeros<PointRow>(device, n);
  launch(kernel("ask",
                [=](Var<MeshArrays> mesh, Arr<const vec3> points, Float limit, Arr<PointRow> out) {
                  Int i = tid();
                  const Vec3 p = points[i];
                  const MeshPointHit h =
                      far ? mesh_query_furthest_point(mesh, p, limit) : mesh_query_point(mesh, p, limit, sign);
                  Vec3 at;
                  If (h.hit) {
                    at = mesh_eval_position(mesh, h.face, h.u, h.v);
                  }
                  out[i] = Var<PointRow>(select(h.hit, 1, 0), h.face, h.sign, h.u, h.v, h.distance, at);
                }),
         n, mesh, Array<vec3>(device, points), max_dist, out);
  return out.to_vector();
}

inline std::vector<float> winding_numbers(const Device& device, const Mesh& mesh, const std::vector<vec3>& points) {
  const std::int64_t n = std::int64_t(points.size());
  Array<float> numbers = zeros<float>(device, n);
  launch(kernel("wind",
                [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> out) {
                  Int i = tid();
                  out[i] = mesh_winding_number(mesh, p[i]);
                }),
         n, mesh, Array<vec3>(device, points), numbers);
  return numbers.to_vector();
}

}  // namespace weft::test
