// The right answers of queries on a mesh, from every triangle in turn, in float64.
#pragma once
#include <weft/runtime/geometry/mesh_data.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace weft::test {

class Oracle {
 public:
  using V = std::array<double, 3>;
  struct Hit {
    double t, u, v, sign;
    int face;
    double margin;  ///< the least of u, v and 1 - u - v: the distance from the edges
    double slope;   ///< sine of the angle to the plane
  };

  explicit Oracle(const MeshData& data) {
    for (std::size_t k = 0; k < data.indices.size(); k += 3) {
      Triangle t;
      for (std::size_t j = 0; j < 3; ++j) t[j] = as(data.points[std::size_t(data.indices[k + j])]);
      triangles_.push_back(t);
    }
  }

  struct Hits {
    std::vector<Hit> hits;  ///< with 0 <= t < limit, nearest first
    /// Whether the ray passes an edge, its origin or the limit within rounding, or runs along a triangle.
    bool unsure = false;
  };
  Hits ray(const vec3& origin, const vec3& direction, double limit) const {
    Hits found;
    const V o = as(origin), d = as(direction);
    for (std::size_t f = 0; f < triangles_.size(); ++f) {
      const Hit h = plane(o, d, int(f));
      if (h.margin >= 0 && h.t >= 0 && h.t < limit) found.hits.push_back(h);
      found.unsure = found.unsure || (h.margin > -0.1 && h.t > -1 && h.t < limit + 1 && h.slope < 2e-3) ||
                     (h.t > -1e-5 && h.t < limit + 1e-5 && std::abs(h.margin) < 1e-4) ||
                     (h.margin > -1e-4 && (std::abs(h.t) < 1e-5 || std::abs(h.t - limit) < 1e-5));
    }
    std::sort(found.hits.begin(), found.hits.end(), [](const Hit& a, const Hit& b) { return a.t < b.t; });
    return found;
  }
  V normal(int face) const {
    const Triangle& t = triangles_[std::size_t(face)];
    const V n = cross(sub(t[1], t[0]), sub(t[2], t[0]));
    const double l = std::sqrt(dot(n, n));
    return {n[0] / l, n[1] / l, n[2] / l};
  }
  double distance(const vec3& p) const {
    double best = INFINITY;
    for (int f = 0; f < int(triangles_.size()); ++f) best = std::min(best, distance(p, f));
    return best;
  }
  double distance(const vec3& point, int face) const {
    const Triangle& t = triangles_[std::size_t(face)];
    const V p = as(point);
    double best = INFINITY;
    for (int k = 0; k < 3; ++k) {
      const V& a = t[std::size_t(k)];
      const V e = sub(t[std::size_t((k + 1) % 3)], a), d = sub(p, a);
      const double l = dot(e, e), s = l > 0 ? std::clamp(dot(d, e) / l, 0.0, 1.0) : 0;
      const V r{d[0] - s * e[0], d[1] - s * e[1], d[2] - s * e[2]};
      best = std::min(best, std::sqrt(dot(r, r)));
    }
    const V ab = sub(t[1], t[0]), ac = sub(t[2], t[0]), n = cross(ab, ac), d = sub(p, t[0]);
    const double nn = dot(n, n);
    if (nn > 0) {
      const double v = dot(cross(d, ac), n) / nn, w = dot(cross(ab, d), n) / nn;
      if (v >= 0 && w >= 0 && v + w <= 1) best = std::min(best, std::abs(dot(d, n)) / std::sqrt(nn));
    }
    return best;
  }
  /// Source: van Oosterom & Strackee 1983.
  double winding(const vec3& point) const {
    const V p = as(point);
    double sum = 0;
    for (const Triangle& t : triangles_) {
      const V a = sub(t[0], p), b = sub(t[1], p), c = sub(t[2], p);
      const double la = std::sqrt(dot(a, a)), lb = std::sqrt(dot(b, b)), lc = std::sqrt(dot(c, c));
      sum += 2 * std::atan2(dot(a, cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb);
    }
    return sum / (4 * std::numbers::pi);
  }

 private:
  using Triangle = std::array<V, 3>;
  static V as(const vec3& v) { return {v.x, v.y, v.z}; }
  static V sub(const V& a, const V& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
  static double dot(const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
  static V cross(const V& a, const V& b) {
    return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  }
  /// The point where the ray meets the plane of a triangle; its margin is -infinity if there is none.
  Hit plane(const V& o, const V& d, int face) const {
    const Triangle& t = triangles_[std::size_t(face)];
    const V ab = sub(t[1], t[0]), ac = sub(t[2], t[0]), n = cross(ab, ac), from = sub(o, t[0]);
    const double slope = dot(d, n), nn = dot(n, n);
    if (slope == 0 || nn == 0) return {0, 0, 0, 0, face, -INFINITY, 0};
    const double at = -dot(from, n) / slope;
    const V p{from[0] + at * d[0], from[1] + at * d[1], from[2] + at * d[2]};
    const double v = dot(cross(p, ac), n) / nn, w = dot(cross(ab, p), n) / nn, u = 1 - v - w;
    return {at, u, v, slope < 0 ? 1.0 : -1.0, face, std::min({u, v, w}), std::abs(slope) / std::sqrt(nn * dot(d, d))};
  }
  std::vector<Triangle> triangles_;
};

}  // namespace weft::test
