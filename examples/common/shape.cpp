// Joins shapes, and makes shapes that mark places.
#include "shape.h"

#include <cmath>
#include <numbers>

using namespace weft;

namespace {

// Sums the triangles' normals by area; drawing does not depend on the length of a sum.
auto normal_kernel = kernel("surface normals", [](Arr<const vec3> x, Arr<const vec3i> triangles, Arr<vec3> normal) {
  Vec3i t = triangles[tid()];
  Vec3 a = x[t.x];
  Vec3 area = cross(x[t.y] - a, x[t.z] - a);
  for (int k = 0; k < 3; ++k) atomic_add(normal[t[k]], area);
});

auto triangle_kernel = kernel("triangles of indices", [](Arr<const int> indices, Arr<vec3i> triangles) {
  Int i = tid();
  triangles[i] = Vec3i(indices[3 * i], indices[3 * i + 1], indices[3 * i + 2]);
});

}  // namespace

Shape shape_of(const Device& device, const BodyMesh& mesh) {
  std::vector<vec3> normals(mesh.positions.size());
  for (const vec3i& t : mesh.triangles) {
    const auto point = [&](int k) { return mesh.positions[std::size_t(t[k])]; };
    const vec3 area = cross(point(1) - point(0), point(2) - point(0));
    for (int k = 0; k < 3; ++k) normals[std::size_t(t[k])] += area;
  }
  for (vec3& n : normals) n = normalize(n);
  return {Array<vec3>(device, mesh.positions), Array<vec3i>(device, mesh.triangles), Array<vec3>(device, normals)};
}

Shape shape_of(const Array<vec3>& positions, const Array<vec3i>& triangles) {
  const Array<vec3> normals = zeros<vec3>(positions.device(), positions.size());
  launch(normal_kernel, triangles.size(), positions, triangles, normals);
  return {positions, triangles, normals};
}

Shape shape_of(const VolumeSurface& surface) {
  const Array<vec3i> triangles = empty<vec3i>(surface.points.device(), surface.indices.size() / 3);
  launch(triangle_kernel, triangles.size(), surface.indices, triangles);
  return shape_of(surface.points, triangles);
}

Shape together(const std::vector<Shape>& shapes) {
  std::vector<vec3> positions, normals;
  std::vector<vec3i> triangles;
  for (const Shape& s : shapes) {
    const int first = int(positions.size());
    const std::vector<vec3> p = s.positions.to_vector(), n = s.normals.to_vector();
    positions.insert(positions.end(), p.begin(), p.end());
    normals.insert(normals.end(), n.begin(), n.end());
    for (const vec3i& t : s.triangles.to_vector()) triangles.push_back(t + vec3i{first, first, first});
  }
  const Device device = shapes.front().positions.device();
  return {Array<vec3>(device, positions), Array<vec3i>(device, triangles), Array<vec3>(device, normals)};
}

Shape floor_ring(const Device& device, const vec3& centre, float inner, float outer) {
  constexpr int kCorners = 64;
  constexpr float kHeight = 0.01f;
  std::vector<vec3> positions;
  std::vector<vec3i> triangles;
  for (int k = 0; k < kCorners; ++k) {
    const float angle = 2 * std::numbers::pi_v<float> * float(k) / kCorners;
    for (float radius : {inner, outer})
      positions.push_back({centre.x + radius * std::cos(angle), kHeight, centre.z - radius * std::sin(angle)});
    const int i = 2 * k, j = 2 * ((k + 1) % kCorners);
    triangles.push_back({i, i + 1, j + 1});
    triangles.push_back({i, j + 1, j});
  }
  const std::vector<vec3> up(positions.size(), vec3{0, 1, 0});
  return {Array<vec3>(device, positions), Array<vec3i>(device, triangles), Array<vec3>(device, up)};
}
