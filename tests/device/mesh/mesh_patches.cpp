// Finds the parts of a mesh that no ray may pass.
#include "mesh_patches.h"

#include <weft/weft.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace weft::test {

namespace {

using Edge = std::pair<int, int>;
Edge reversed(const Edge& e) { return {e.second, e.first}; }

// Makes a patch of triangles, whose rim consists of the edges that only one of them has.
Patch patch_of(const std::vector<std::array<int, 3>>& corners, const vec3& middle, std::vector<int> faces) {
  Patch patch{middle, std::move(faces), {}};
  std::vector<Edge> all;
  for (int f : patch.faces)
    for (std::size_t k = 0; k < 3; ++k) {
      const std::array<int, 3>& c = corners[std::size_t(f)];
      all.emplace_back(c[k], c[(k + 1) % 3]);
    }
  for (const Edge& e : all)
    if (std::ranges::find(all, reversed(e)) == all.end()) patch.rim.push_back(e);
  return patch;
}

}  // namespace

Surface::Surface(const MeshData& data) {
  std::map<std::tuple<float, float, float>, int> places;
  std::vector<std::array<int, 3>> corners(data.indices.size() / 3);
  std::map<Edge, std::vector<int>> owners;
  for (std::size_t f = 0; f < corners.size(); ++f) {
    for (std::size_t k = 0; k < 3; ++k) {
      const int i = data.indices[3 * f + k];
      const vec3& p = data.points[std::size_t(i)];
      corners[f][k] = places.try_emplace({p.x, p.y, p.z}, i).first->second;
    }
    for (std::size_t k = 0; k < 3; ++k) owners[{corners[f][k], corners[f][(k + 1) % 3]}].push_back(int(f));
  }
  // The triangle on the other side of an edge, if there is exactly one triangle on either side; otherwise -1.
  const auto beyond = [&](const Edge& e) {
    const auto back = owners.find(reversed(e));
    const bool two =
        e.first != e.second && owners.at(e).size() == 1 && back != owners.end() && back->second.size() == 1;
    return two ? back->second[0] : -1;
  };
  std::map<int, std::vector<int>> around;
  for (const auto& [edge, faces] : owners) {
    const auto& [a, b] = edge;
    for (int f : faces) around[a].push_back(f);
    const int other = beyond(edge);
    closed = closed && other >= 0;
    if (other < 0 || a > b) continue;
    const vec3 middle = (data.points[std::size_t(a)] + data.points[std::size_t(b)]) * 0.5f;
    edges.push_back(patch_of(corners, middle, {faces[0], other}));
  }
  for (const auto& [point, faces] : around) {
    // Goes from triangle to triangle around the point until the first one comes again.
    std::vector<int> ring;
    int f = faces[0];
    do {
      ring.push_back(f);
      const std::array<int, 3>& c = corners[std::size_t(f)];
      const auto k = std::size_t(std::ranges::find(c, point) - c.begin());
      f = beyond({c[(k + 2) % 3], point});
    } while (f >= 0 && f != faces[0] && ring.size() < faces.size());
    if (f == faces[0] && ring.size() == faces.size())
      points.push_back(patch_of(corners, data.points[std::size_t(point)], std::move(ring)));
  }
}

bool Patch::is_passed(const MeshData& data, const vec3& origin) const {
  using V = std::array<double, 3>;
  const auto from_origin = [&](const vec3& p) {
    return V{double(p.x) - double(origin.x), double(p.y) - double(origin.y), double(p.z) - double(origin.z)};
  };
  const auto cross = [](const V& a, const V& b) {
    return V{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  };
  const auto dot = [](const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
  const auto at = [&](int point) { return from_origin(data.points[std::size_t(point)]); };
  // The ray's direction is rounded, and so is this one.
  const vec3 rounded = middle - origin;
  const V d{rounded.x, rounded.y, rounded.z};
  const double length = std::sqrt(dot(d, d));
  int front = 0;
  for (int f : faces) {
    const auto corner = [&](int k) { return at(data.indices[std::size_t(3 * f + k)]); };
    const V a = corner(0), b = corner(1), c = corner(2);
    // This is twice the area of the triangle as seen along the ray.
    const V ab{b[0] - a[0], b[1] - a[1], b[2] - a[2]}, ac{c[0] - a[0], c[1] - a[1], c[2] - a[2]};
    const V n = cross(ab, ac);
    const double seen = dot(n, d);
    if (!(std::abs(seen) > 1e-4 * std::sqrt(dot(n, n)) * length)) return false;
    front += seen > 0 ? 1 : -1;
  }
  if (std::abs(front) != int(faces.size())) return false;
  for (const auto& [p, q] : rim) {
    const V a = at(p), b = at(q), e{b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    // The distance between the lines of ray and edge, positive on the side of the patch.
    const V normal = cross(e, d);
    const double inside = dot(normal, a) / std::sqrt(dot(normal, normal)) * (front > 0 ? 1 : -1);
    if (!(inside > 1e-5 * length)) return false;
  }
  return true;
}

}  // namespace weft::test
