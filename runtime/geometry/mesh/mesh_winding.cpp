// Winding numbers of meshes: the far fields of a mesh's parts, and the walk that sums them.
//
// The winding number of a triangle soup around q is the sum over its points of the field of a layer of dipoles, divided
// by 4 pi: n . r / |r|^3 with r from q to the point and n the normal times the area. For a part of the tree that is far
// away relative to its size, the field is expanded around the centre p of its area (Barill et al. 2018, section 3),
// with r from q to p:
//
//   N(r) / |r|^3  -  3 M(r, r) / |r|^5  +  15/2 T(r, r, r) / |r|^7
//   N = sum n,  M = sum n d,  T = sum n d d      d from p to the point
//
// The derivatives of r / |r|^3 are symmetric and have no traces, so the symmetric parts of M and T without traces
// suffice, 5 and 7 numbers: with p, the area and N they fill five rows. Terms of M and T are added by moving the
// centre: M' = M + N d, T' = T + 2 M d + N d d.
//
// Worked example: triangles of area 1/2 with normals +z and -z lie e above and below p. N is 0, and the first term
// alone would lose them; M is e z z less its trace, and the second term e / |r|^3 - 3 e r_z^2 / |r|^5.
#include <functional>
#include <numbers>

#include "../../../frontend/language/any_floats.h"
#include "../../../frontend/language/atomic.h"
#include "../../../frontend/language/own_gradient.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/vector.h"
#include "../shapes/overlap.h"
#include "mesh_passes.h"
#include "mesh_walks.h"

namespace weft {

namespace detail {

namespace {

constexpr int kRows = 5;  // rows of a child in MeshArrays::far_fields
constexpr int kSquares = 5, kCubes = 7;
// The numbers of M and T that are kept; the others follow because their traces are 0.
constexpr int kSquare[kSquares][2] = {{0, 0}, {1, 1}, {0, 1}, {0, 2}, {1, 2}};
constexpr int kCube[kCubes][3] = {{0, 0, 0}, {1, 1, 1}, {0, 0, 1}, {0, 1, 1}, {0, 0, 2}, {1, 1, 2}, {0, 1, 2}};

struct FarField {
  Vec3 centre;  // times the area
  Float area;
  Vec3 normal;             // N
  Float square[kSquares];  // M
  Float cube[kCubes];      // T

  FarField() = default;
  FarField(const Arr<vec4>& fields, const Int& child) {
    centre = middle_of(fields, child, area);
    read_moments(fields, child);
  }
  static Vec3 middle_of(const Arr<vec4>& fields, const Int& child, Float& area) {
    const Vec4 row = fields[child * kRows];
    area = row.w;
    return xyz(row);
  }
  void read_moments(const Arr<vec4>& fields, const Int& child) {
    const Int row = child * kRows;
    const Vec4 a = fields[row + 1], b = fields[row + 2], c = fields[row + 3], d = fields[row + 4];
    normal = xyz(a);
    square[0] = a.w;
    for (int i = 0; i < 4; ++i) square[i + 1] = b[i], cube[i] = c[i];
    for (int i = 0; i < 3; ++i) cube[i + 4] = d[i];
  }
  void store(const Arr<vec4>& fields, const Int& child) const {
    const Int row = child * kRows;
    fields[row] = Vec4(centre, area);
    fields[row + 1] = Vec4(normal, square[0]);
    fields[row + 2] = Vec4(square[1], square[2], square[3], square[4]);
    fields[row + 3] = Vec4(cube[0], cube[1], cube[2], cube[3]);
    fields[row + 4] = Vec4(cube[4], cube[5], cube[6], 0.f);
  }

  Vec3 middle() const { return centre / select(area > 0, area, 1.f); }

  // Adds M and T of normals that sum to n at offset d from the middle.
  void add_layer(const Vec3& n, const Vec3& d) {
    for (int s = 0; s < kSquares; ++s) {
      const auto [i, j] = kSquare[s];
      square[s] += (n[i] * d[j] + n[j] * d[i]) * 0.5f;
      if (i == j) square[s] -= dot(n, d) / 3.f;
    }
    add_spread(n, d);
  }
  // Adds T only.
  void add_spread(const Vec3& n, const Vec3& d) {
    add_cubes([&](int i, int j, int k) { return (n[i] * d[j] * d[k] + n[j] * d[i] * d[k] + n[k] * d[i] * d[j]) / 3.f; },
              (d * (2 * dot(n, d)) + n * dot(d, d)) / 3.f);
  }
  // Adds those of a part whose middle is d away.
  void add_part(const FarField& part, const Vec3& d) {
    for (int s = 0; s < kSquares; ++s) square[s] += part.square[s];
    for (int c = 0; c < kCubes; ++c) cube[c] += part.cube[c];
    const auto m = [&](int i, int j) -> Float {
      if (i > j) std::swap(i, j);
      if (i == 2) return -(part.square[0] + part.square[1]);
      return part.square[i == j ? i : i + j + 1];
    };
    Vec3 md;
    for (int i = 0; i < 3; ++i) md[i] = m(i, 0) * d.x + m(i, 1) * d.y + m(i, 2) * d.z;
    add_cubes([&](int i, int j, int k) { return (m(i, j) * d[k] + m(i, k) * d[j] + m(j, k) * d[i]) * (2 / 3.f); },
              md * (4 / 3.f));
    add_layer(part.normal, d);
  }

  // The field for r from the point to the middle; not finite if r is 0 or the numbers are too large. Direction and
  // length of r enter separately, because powers of r would overflow and underflow beside those of the part's size.
  Float at(const Vec3& r) const {
    const Float by_length = 1 / length(r);
    const Vec3 u = r * by_length;
    const Float x = u.x, y = u.y, z = u.z, xx = x * x, yy = y * y, zz = z * z;
    const Float m =
        square[0] * (xx - zz) + square[1] * (yy - zz) + 2 * (square[2] * x * y + square[3] * x * z + square[4] * y * z);
    const Float t = cube[0] * x * (xx - 3 * zz) + cube[1] * y * (yy - 3 * zz) + 3 * cube[2] * y * (xx - zz) +
                    3 * cube[3] * x * (yy - zz) + cube[4] * z * (3 * xx - zz) + cube[5] * z * (3 * yy - zz) +
                    6 * cube[6] * x * y * z;
    return (dot(u, normal) + (7.5f * t * by_length - 3 * m) * by_length) * by_length * by_length;
  }

 private:
  // Adds a symmetric tensor less its trace.
  // \param trace  over any two of its places
  void add_cubes(const std::function<Float(int, int, int)>& of, const Vec3& trace) {
    for (int c = 0; c < kCubes; ++c) {
      const auto [i, j, k] = kCube[c];
      Float value = of(i, j, k);
      if (i == j) value -= trace[k] / 5.f;
      if (i == k) value -= trace[j] / 5.f;
      if (j == k) value -= trace[i] / 5.f;
      cube[c] += value;
    }
  }
};

const auto& fields_of_leaves() {
  static const auto k = kernel("far fields of leaves", [](Arr<const BvhNode> nodes, Arr<const int> parents,
                                                          Arr<const vec4> corners, Arr<vec4> fields) {
    const tracing::AnyFloats any;
    const tracing::AsWritten as_written;
    const Int node = tid();
    If (parents[node] < -1) {
      Return();  // names no node
    }
    const Var<BvhNode> n = nodes[node];
    const Int link[2] = {bitcast<int>(n.lower0.w), bitcast<int>(n.lower1.w)};
    const Int count[2] = {bitcast<int>(n.upper0.w), bitcast<int>(n.upper1.w)};
    for (int side = 0; side < 2; ++side) {
      If (link[side] < 0) {
        FarField f;
        const auto each = [&](auto add) {
          for (auto k : range(count[side])) {
            const Int place = (~link[side] + k) * 3;
            const Vec3 p[3] = {xyz(corners[place]), xyz(corners[place + 1]), xyz(corners[place + 2])};
            const Vec3 normal = cross(p[1] - p[0], p[2] - p[0]) * 0.5f;
            const Float area = length(normal);
            // Triangles that have moved to infinity count for nothing.
            If (isfinite(area)) {
              add(p, normal, area);
            }
          }
        };
        each([&](const Vec3* p, const Vec3& normal, const Float& area) {
          f.centre += (p[0] + p[1] + p[2]) * (area / 3.f);
          f.area += area;
          f.normal += normal;
        });
        const Vec3 middle = f.middle();
        each([&](const Vec3* p, const Vec3& normal, const Float&) {
          // Differences are formed before their sum: far from the origin, a triangle's centre is off by as much as its
          // size.
          const Vec3 d[3] = {p[0] - middle, p[1] - middle, p[2] - middle}, centre = (d[0] + d[1] + d[2]) * (1 / 3.f);
          f.add_layer(normal, centre);
          for (int k = 0; k < 3; ++k) f.add_spread(normal / 12.f, d[k] - centre);
        });
        f.store(fields, node * 2 + side);
      }
    }
  });
  return k;
}

// The threads of nodes whose children are both leaves climb. The second of two threads that meet at a node continues,
// with the sums of both children.
const auto& fields_upwards() {
  static const auto k = kernel(
      "far fields upwards", [](Arr<const BvhNode> nodes, Arr<const int> parents, Arr<vec4> fields, Arr<int> arrived) {
        const tracing::AnyFloats any;
        const tracing::AsWritten as_written;
        Int node = tid(), link = parents[node];
        const auto is_inner = [&](int side) {
          return bitcast<int>(Float(side ? nodes[node].lower1.w : nodes[node].lower0.w)) >= 0;
        };
        If (link < 0) {
          Return();  // the root, or names no node
        }
        If (is_inner(0) | is_inner(1)) {
          Return();
        }
        While (link >= 0) {
          const FarField one(fields, node * 2), two(fields, node * 2 + 1);
          FarField both;
          both.centre = one.centre + two.centre;
          both.area = one.area + two.area;
          both.normal = one.normal + two.normal;
          const Vec3 middle = both.middle();
          both.add_part(one, one.middle() - middle);
          both.add_part(two, two.middle() - middle);
          both.store(fields, link);
          node = link >> 1;
          If (is_inner(0) & is_inner(1)) {
            fence();
            If (atomic_add(arrived[node], 1) == 0) {
              Break();
            }
            fence();
            arrived[node] = 0;
          }
          link = parents[node];
        }
      });
  return k;
}

}  // namespace

void sum_far_fields(const MeshArrays& mesh, const Array<int>& arrived) {
  const BvhData& tree = mesh.tree;
  launch(fields_of_leaves(), tree.nodes.size(), tree.nodes, tree.parents, mesh.corners, mesh.far_fields);
  launch(fields_upwards(), tree.nodes.size(), tree.nodes, tree.parents, mesh.far_fields, arrived);
}

Float winding_number(const Var<MeshArrays>& mesh, const Vec3& point, float accuracy) {
  Float sum = 0;
  const auto choose = [&](const Children& c) {
    Choice choice{{false, false}, false};
    for (int side = 0; side < 2; ++side) {
      const Int child = c.node * 2 + side;
      FarField f;
      f.centre = FarField::middle_of(mesh.far_fields, child, f.area);
      const Vec3 middle = f.middle(), away = middle - point;
      const Vec3 reach = max(abs(c.lower[side] - middle), abs(c.upper[side] - middle));
      const Bool near = dot(away, away) <= accuracy * accuracy * dot(reach, reach);
      Bool counts = false;
      If (!near) {
        f.read_moments(mesh.far_fields, child);
        const Float share = f.at(away);
        counts = isfinite(share);
        sum += select(counts & !c.again, share, 0.f);
      }
      // A part too large for the expansion is visited triangle by triangle.
      choice.hit[side] = (f.area > 0) & !counts;
    }
    return choice;
  };
  If (mesh.has_far_fields != 0) {
    walk_tree(mesh.tree, false, choose, [&](const Int& place) {
      const Corners t(mesh, place);
      const Float angle = solid_angle(point, t.a, t.b, t.c);
      sum += select(isfinite(angle), angle, 0.f);  // triangles at infinity count for nothing
    });
  }
  Else { sum = std::numeric_limits<float>::quiet_NaN(); }
  return sum * float(1 / (4 * std::numbers::pi));
}

void check_winding_numbers(const char* query, const Var<MeshArrays>& mesh, Loc loc) {
  if (!tracing::Trace::current(loc).debug().checks) return;
  assert_(In<bool>(mesh.has_far_fields != 0, loc),
          std::string(query) + ": the mesh was made without .winding_number = true");
}

}  // namespace detail

Float mesh_winding_number(const MeshInKernel& mesh, In<vec3> point, float accuracy, Loc loc) {
  tracing::CallPlace place(loc, tracing::Rounding::as_written);
  const Var<MeshArrays>& m = mesh.arrays;
  detail::check_winding_numbers("mesh_winding_number", m, loc);
  return detach(detail::winding_number(m, detach(detail::value(point)), accuracy));
}

}  // namespace weft
