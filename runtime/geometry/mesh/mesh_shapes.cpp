// The generated meshes. All but the simplest are rows of rings, sewn together.
#include "../mesh_shapes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "../../../frontend/library/vector.h"
#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"

namespace weft::shapes {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

[[noreturn]] void refuse(const char* shape, const std::string& reason) { invalid("shapes::{}: {}", shape, reason); }
void require_length(const char* shape, const char* what, float length) {
  if (!(length > 0) || !std::isfinite(length))
    refuse(shape, fmt::format("{} is {}; a finite length above 0 is wanted", what, length));
}
void require_count(const char* shape, const char* what, std::int64_t count, std::int64_t least) {
  if (count < least) refuse(shape, fmt::format("{} is {}; at least {} is wanted", what, count, least));
}
/// Checks factors whose product is the number of triangles.
template <class... N>
void require_triangles(const char* shape, N... factors) {
  double count = 1;
  ((count *= double(factors)), ...);
  if (count * 3 > double((std::numeric_limits<int>::max)()))
    refuse(shape, fmt::format("{} triangles are more than 32-bit indices reach", count));
}

vec3 rounded(double x, double y, double z) { return {float(x), float(y), float(z)}; }

/// Assembles a mesh from points, triangles and rings of points.
class Builder {
 public:
  int point(double x, double y, double z) {
    mesh_.points.push_back(rounded(x, y, z));
    return int(mesh_.points.size()) - 1;
  }
  void triangle(int a, int b, int c) { mesh_.indices.insert(mesh_.indices.end(), {a, b, c}); }
  /// Adds two triangles for a, b, c, d counter-clockwise.
  void quad(int a, int b, int c, int d) { triangle(a, b, c), triangle(a, c, d); }

  /// Adds a ring around the axis at height y, counter-clockwise as seen from above.
  /// \return  its first point
  int ring(double radius, double y, int slices) {
    const int first = int(mesh_.points.size());
    for (int i = 0; i < slices; ++i) {
      const double angle = kTurn * i / slices;
      point(radius * std::cos(angle), y, -radius * std::sin(angle));
    }
    return first;
  }
  /// Adds the band between two rings, of which the second is above or further along.
  void sew(int lower, int upper, int slices) {
    for (int i = 0; i < slices; ++i) {
      const int next = (i + 1) % slices;
      quad(lower + i, lower + next, upper + next, upper + i);
    }
  }
  /// Adds a fan from a ring to a point above it.
  void close_above(int ring, int tip, int slices) {
    for (int i = 0; i < slices; ++i) triangle(ring + i, ring + (i + 1) % slices, tip);
  }
  void close_below(int ring, int tip, int slices) {
    for (int i = 0; i < slices; ++i) triangle(ring + (i + 1) % slices, ring + i, tip);
  }

  MeshData take() { return std::move(mesh_); }
  MeshData& mesh() { return mesh_; }

 private:
  MeshData mesh_;
};

/// Two half spheres of `stacks` bands, `height` apart; at height 0 they share their widest ring.
MeshData rounded_column(double radius, double height, int slices, int stacks_below, int stacks_above) {
  Builder b;
  const int bottom = b.point(0, -radius - height / 2, 0);
  int last = -1;
  auto add = [&](double angle, double y) {
    const int ring = b.ring(radius * std::cos(angle), y + radius * std::sin(angle), slices);
    if (last < 0)
      b.close_below(ring, bottom, slices);
    else
      b.sew(last, ring, slices);
    last = ring;
  };
  const int stacks = stacks_below + stacks_above;
  for (int i = 1; i < stacks; ++i) {
    const double angle = std::numbers::pi * (double(i) / stacks - 0.5);
    if (height == 0) {
      add(angle, 0);
    } else if (2 * i == stacks) {
      add(0, -height / 2), add(0, height / 2);
    } else {
      add(angle, 2 * i < stacks ? -height / 2 : height / 2);
    }
  }
  b.close_above(last, b.point(0, radius + height / 2, 0), slices);
  return b.take();
}

}  // namespace

MeshData box(vec3 size, int segments) {
  for (int k = 0; k < 3; ++k) require_length("box", "a side", size[k]);
  require_count("box", "segments", segments, 1);
  require_triangles("box", 12, segments, segments);
  Builder b;
  // Points on edges belong to several faces and are found by their place on the lattice.
  std::map<std::int64_t, int> found;
  const std::int64_t n = segments;
  auto at = [&](const std::int64_t(&i)[3]) {
    const auto [entry, is_new] = found.try_emplace((i[0] * (n + 1) + i[1]) * (n + 1) + i[2], 0);
    if (is_new) {
      double p[3];
      for (int k = 0; k < 3; ++k) p[k] = (double(i[k]) / double(n) - 0.5) * double(size[k]);
      entry->second = b.point(p[0], p[1], p[2]);
    }
    return entry->second;
  };
  for (int axis = 0; axis < 3; ++axis)
    for (int side = 0; side < 2; ++side)
      for (std::int64_t u = 0; u < n; ++u)
        for (std::int64_t v = 0; v < n; ++v) {
          auto corner = [&](std::int64_t du, std::int64_t dv) {
            std::int64_t i[3];
            i[axis] = side * n;
            i[(axis + 1) % 3] = u + du;
            i[(axis + 2) % 3] = v + dv;
            return at(i);
          };
          const int p = corner(0, 0), q = corner(1, 0), r = corner(1, 1), s = corner(0, 1);
          if (side == 1)
            b.quad(p, q, r, s);
          else
            b.quad(p, s, r, q);
        }
  return b.take();
}

MeshData icosphere(float radius, int subdivisions) {
  require_length("icosphere", "the radius", radius);
  require_count("icosphere", "subdivisions", subdivisions, 0);
  require_triangles("icosphere", 20, std::pow(4., subdivisions));
  // Directions are kept in double, so that the points of the last division are as round as those of the first.
  std::vector<vec3d> points;
  const double g = std::numbers::phi;
  for (int k = 0; k < 3; ++k)
    for (double s : {-1., 1.})
      for (double t : {-g, g}) {
        vec3d p;
        p[(k + 1) % 3] = s, p[(k + 2) % 3] = t;
        points.push_back(normalize(p));
      }
  // Faces of the hull are all triples at the least distance, turned outwards.
  std::vector<int> indices;
  const double edge = 1.0515;
  for (int i = 0; i < 12; ++i)
    for (int j = i + 1; j < 12; ++j)
      for (int k = j + 1; k < 12; ++k) {
        const vec3d &a = points[std::size_t(i)], &b = points[std::size_t(j)], &c = points[std::size_t(k)];
        if (distance(a, b) > 1.01 * edge || distance(b, c) > 1.01 * edge || distance(c, a) > 1.01 * edge) continue;
        const bool outwards = dot(a, cross(b, c)) > 0;
        indices.insert(indices.end(), {i, outwards ? j : k, outwards ? k : j});
      }
  for (int level = 0; level < subdivisions; ++level) {
    std::map<std::pair<int, int>, int> middles;
    auto middle = [&](int i, int j) {
      const auto [entry, is_new] =
          middles.try_emplace(std::pair((std::min)(i, j), (std::max)(i, j)), int(points.size()));
      if (is_new) points.push_back(normalize(points[std::size_t(i)] + points[std::size_t(j)]));
      return entry->second;
    };
    std::vector<int> finer;
    finer.reserve(indices.size() * 4);
    for (std::size_t t = 0; t < indices.size(); t += 3) {
      const int a = indices[t], b = indices[t + 1], c = indices[t + 2];
      const int ab = middle(a, b), bc = middle(b, c), ca = middle(c, a);
      finer.insert(finer.end(), {a, ab, ca, b, bc, ab, c, ca, bc, ab, bc, ca});
    }
    indices = std::move(finer);
  }
  MeshData mesh;
  for (const vec3d& p : points)
    mesh.points.push_back(rounded(p.x * double(radius), p.y * double(radius), p.z * double(radius)));
  mesh.indices = std::move(indices);
  return mesh;
}

MeshData uv_sphere(float radius, int slices, int stacks) {
  require_length("uv_sphere", "the radius", radius);
  require_count("uv_sphere", "slices", slices, 3);
  require_count("uv_sphere", "stacks", stacks, 2);
  require_triangles("uv_sphere", 2, slices, stacks);
  return rounded_column(double(radius), 0, slices, stacks, 0);
}

MeshData capsule(float radius, float height, int slices, int stacks) {
  require_length("capsule", "the radius", radius);
  require_length("capsule", "the height", height);
  require_count("capsule", "slices", slices, 3);
  require_count("capsule", "stacks", stacks, 1);
  require_triangles("capsule", 4, slices, double(stacks) + 1);
  return rounded_column(double(radius), double(height), slices, stacks, stacks);
}

MeshData torus(float ring, float tube, int around, int across) {
  require_length("torus", "the ring's radius", ring);
  require_length("torus", "the tube's radius", tube);
  if (tube >= ring) refuse("torus", fmt::format("a tube of radius {} fills a ring of radius {}", tube, ring));
  require_count("torus", "around", around, 3);
  require_count("torus", "across", across, 3);
  require_triangles("torus", 2, around, across);
  Builder b;
  for (int i = 0; i < around; ++i) {
    const double u = kTurn * i / around;
    for (int j = 0; j < across; ++j) {
      const double v = kTurn * j / across, r = double(ring) + double(tube) * std::cos(v);
      b.point(r * std::cos(u), double(tube) * std::sin(v), -r * std::sin(u));
    }
  }
  for (int i = 0; i < around; ++i) b.sew((i + 1) % around * across, i * across, across);
  return b.take();
}

MeshData torus_knot(int p, int q, float tube, int around, int across) {
  if (p == 0 || q == 0 || std::gcd(p, q) != 1)
    refuse("torus_knot", fmt::format("no knot winds {} and {} times: neither is 0, no number divides both", p, q));
  require_length("torus_knot", "the tube's radius", tube);
  require_count("torus_knot", "around", around, 8 * (std::abs(std::int64_t(p)) + std::abs(std::int64_t(q))));
  require_count("torus_knot", "across", across, 3);
  require_triangles("torus_knot", 2, around, across);
  constexpr double swing = 0.5;
  Builder builder;
  for (int i = 0; i < around; ++i) {
    const double a = p * kTurn * i / around, b = q * kTurn * i / around;
    const vec3d out{std::cos(a), 0., std::sin(a)};
    // The normal of the torus on which the knot lies is perpendicular to the knot and, unlike Frenet's, returns to
    // itself.
    const vec3d normal = out * std::cos(b) + vec3d{0., std::sin(b), 0.};
    const vec3d centre = out + normal * swing;
    const vec3d tangent = vec3d{-std::sin(a), 0., std::cos(a)} * (p * (1 + swing * std::cos(b))) +
                          (vec3d{0., std::cos(b), 0.} - out * std::sin(b)) * (q * swing);
    const vec3d binormal = normalize(cross(tangent, normal));
    for (int j = 0; j < across; ++j) {
      const double c = kTurn * j / across;
      const vec3d point = centre + (normal * std::cos(c) + binormal * std::sin(c)) * double(tube);
      builder.point(point.x, point.y, point.z);
    }
  }
  for (int i = 0; i < around; ++i) builder.sew(i * across, (i + 1) % around * across, across);
  return builder.take();
}

MeshData grid(float size_x, float size_z, int segments_x, int segments_z) {
  require_length("grid", "a side", size_x);
  require_length("grid", "a side", size_z);
  require_count("grid", "segments along x", segments_x, 1);
  require_count("grid", "segments along z", segments_z, 1);
  require_triangles("grid", 2, segments_x, segments_z);
  Builder b;
  for (int j = 0; j <= segments_z; ++j)
    for (int i = 0; i <= segments_x; ++i)
      b.point((double(i) / segments_x - 0.5) * double(size_x), 0, (double(j) / segments_z - 0.5) * double(size_z));
  const int row = segments_x + 1;
  for (int j = 0; j < segments_z; ++j)
    for (int i = 0; i < segments_x; ++i) {
      const int p = j * row + i;
      b.quad(p, p + row, p + row + 1, p + 1);
    }
  return b.take();
}

MeshData cylinder(float radius, float height, int slices) {
  require_length("cylinder", "the radius", radius);
  require_length("cylinder", "the height", height);
  require_count("cylinder", "slices", slices, 3);
  require_triangles("cylinder", 4, slices);
  Builder b;
  const double half = double(height) / 2;
  const int lower = b.ring(double(radius), -half, slices), upper = b.ring(double(radius), half, slices);
  b.sew(lower, upper, slices);
  b.close_below(lower, b.point(0, -half, 0), slices);
  b.close_above(upper, b.point(0, half, 0), slices);
  return b.take();
}

MeshData cone(float radius, float height, int slices) {
  require_length("cone", "the radius", radius);
  require_length("cone", "the height", height);
  require_count("cone", "slices", slices, 3);
  require_triangles("cone", 2, slices);
  Builder b;
  const double half = double(height) / 2;
  const int base = b.ring(double(radius), -half, slices);
  b.close_below(base, b.point(0, -half, 0), slices);
  b.close_above(base, b.point(0, half, 0), slices);
  return b.take();
}

MeshData random_soup(int triangles, float size, unsigned seed) {
  require_count("random_soup", "the number of triangles", triangles, 0);
  require_triangles("random_soup", triangles);
  if (!(size >= 0) || !std::isfinite(size))
    refuse("random_soup", fmt::format("the size is {}; a finite length is wanted", size));
  // Standard libraries differ in their distributions; this generator is the same everywhere.
  std::uint64_t state = seed;
  auto next = [&] {  // SplitMix64 (Steele, Lea, Flood 2014), in [-1, 1)
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return double((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
  };
  MeshData mesh;
  for (int i = 0; i < triangles; ++i) {
    double centre[3];
    for (double& c : centre) c = next();
    for (int k = 0; k < 3; ++k) {
      double p[3];
      for (int axis = 0; axis < 3; ++axis) p[axis] = centre[axis] + double(size) * next();
      mesh.points.push_back(rounded(p[0], p[1], p[2]));
      mesh.indices.push_back(3 * i + k);
    }
  }
  return mesh;
}

}  // namespace weft::shapes
