// Meshes: files, the torus knot, merging of equal vertices.
#include "mesh.h"

#include <fmt/core.h>
#include <weft/runtime/geometry/mesh_file.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <tuple>

using weft::vec3;
using weft::vec3i;

namespace {

// Indices have 32 bits on the device, and so has a position in the list of a triangle grid.
constexpr std::size_t kMostTriangles = 20'000'000;

// Makes a BodyMesh of corners that may repeat positions. (A file repeats a vertex along a seam of its texture, and a
// body that is cut there would come apart.) Drops triangles whose indices enclose no area, and unused vertices.
BodyMesh merge(const std::vector<vec3>& corners, const std::vector<vec3i>& triangles) {
  auto key = [&](int i) {
    const vec3& p = corners[std::size_t(i)];
    return std::tuple(p.x, p.y, p.z);
  };
  std::vector<int> order(corners.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return std::tuple(key(a), a) < std::tuple(key(b), b); });
  std::vector<int> representative(corners.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    bool same = k > 0 && key(order[k]) == key(order[k - 1]);
    representative[std::size_t(order[k])] = same ? representative[std::size_t(order[k - 1])] : order[k];
  }

  BodyMesh mesh;
  std::vector<int> number(corners.size(), -1);
  for (const vec3i& t : triangles) {
    vec3i r;
    for (int k = 0; k < 3; ++k) r[k] = representative[std::size_t(t[k])];
    if (r.x == r.y || r.y == r.z || r.z == r.x) continue;
    for (int k = 0; k < 3; ++k) {
      int& n = number[std::size_t(r[k])];
      if (n < 0) {
        n = int(mesh.positions.size());
        mesh.positions.push_back(corners[std::size_t(r[k])]);
      }
      r[k] = n;
    }
    mesh.triangles.push_back(r);
  }

  // Orientation matters because the struts of a body start inwards: a closed surface has a positive volume.
  double volume = 0;
  for (const vec3i& t : mesh.triangles) {
    const vec3 a = mesh.positions[std::size_t(t.x)], b = mesh.positions[std::size_t(t.y)];
    volume += double(dot(a, cross(b, mesh.positions[std::size_t(t.z)])));
  }
  if (volume < 0)
    for (vec3i& t : mesh.triangles) std::swap(t.y, t.z);
  return mesh;
}

}  // namespace

BodyMesh read_mesh(const std::string& path) {
  auto fail = [&](const std::string& reason) { throw std::runtime_error(fmt::format("{}: {}", path, reason)); };
  const weft::MeshData data = weft::load_mesh(path);
  if (data.indices.size() / 3 > kMostTriangles)
    fail(fmt::format("{} triangles are more than this example handles ({})", data.indices.size() / 3, kMostTriangles));
  for (const vec3& p : data.points)
    for (int k = 0; k < 3; ++k)
      if (std::abs(p[k]) >= 1e15f) fail(fmt::format("a coordinate of {} is beyond what this example handles", p[k]));
  std::vector<vec3i> triangles;
  for (std::size_t t = 0; t < data.indices.size(); t += 3)
    triangles.push_back({data.indices[t], data.indices[t + 1], data.indices[t + 2]});
  BodyMesh mesh = merge(data.points, triangles);
  if (mesh.triangles.empty()) fail("all of its triangles are points or lines");
  return mesh;
}

BodyMesh torus_knot(int rings) {
  const int around = std::max(rings * 2 / 25, 5);
  constexpr float kRing = 1, kSwing = 0.5f, kTube = 0.3f;
  constexpr float kTurn = 2 * std::numbers::pi_v<float>;
  BodyMesh mesh;
  for (int i = 0; i < rings; ++i) {
    float a = 2 * kTurn * float(i) / float(rings);  // around the vertical axis, twice
    float b = 3 * kTurn * float(i) / float(rings);  // around the ring, three times
    vec3 out{std::cos(a), 0, std::sin(a)};
    // The normal of the torus on which the knot lies is perpendicular to the knot and, unlike the Frenet frame,
    // comes back to itself.
    vec3 normal = out * std::cos(b) + vec3{0, std::sin(b), 0};
    vec3 centre = out * kRing + normal * kSwing;
    vec3 tangent = vec3{-std::sin(a), 0, std::cos(a)} * (2 * (kRing + kSwing * std::cos(b))) +
                   (vec3{0, std::cos(b), 0} - out * std::sin(b)) * (3 * kSwing);
    vec3 binormal = normalize(cross(tangent, normal));
    for (int j = 0; j < around; ++j) {
      float c = kTurn * float(j) / float(around);
      mesh.positions.push_back(centre + (normal * std::cos(c) + binormal * std::sin(c)) * kTube);
    }
  }
  for (int i = 0; i < rings; ++i)
    for (int j = 0; j < around; ++j) {
      int i1 = (i + 1) % rings, j1 = (j + 1) % around;
      int p = i * around + j, q = i1 * around + j, r = i1 * around + j1, s = i * around + j1;
      mesh.triangles.push_back({p, q, r});
      mesh.triangles.push_back({p, r, s});
    }
  return merge(mesh.positions, mesh.triangles);
}

void place(BodyMesh& mesh, float size, float lowest, float x, float z) {
  vec3 lo = mesh.positions.front(), hi = lo;
  for (const vec3& p : mesh.positions)
    for (int k = 0; k < 3; ++k) {
      lo[k] = std::min(lo[k], p[k]);
      hi[k] = std::max(hi[k], p[k]);
    }
  vec3 sides = hi - lo;
  const double scale = double(size) / double(std::max({sides.x, sides.y, sides.z}));
  vec3 from{(lo.x + hi.x) / 2, lo.y, (lo.z + hi.z) / 2};
  for (vec3& p : mesh.positions)
    for (int k = 0; k < 3; ++k) p[k] = float(double(p[k] - from[k]) * scale) + vec3{x, lowest, z}[k];
}

Adjacency triangles_of_vertices(const BodyMesh& mesh) {
  Adjacency a;
  a.first.assign(mesh.positions.size() + 1, 0);
  for (const vec3i& t : mesh.triangles)
    for (int k = 0; k < 3; ++k) ++a.first[std::size_t(t[k]) + 1];
  std::partial_sum(a.first.begin(), a.first.end(), a.first.begin());
  a.item.resize(std::size_t(a.first.back()));
  std::vector<int> next(a.first.begin(), a.first.end() - 1);
  for (std::size_t i = 0; i < mesh.triangles.size(); ++i)
    for (int k = 0; k < 3; ++k) a.item[std::size_t(next[std::size_t(mesh.triangles[i][k])]++)] = int(i);
  return a;
}
