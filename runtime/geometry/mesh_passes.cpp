// Kernels that prepare a mesh for queries.
#include "mesh_passes.h"

#include "../../frontend/edsl/atomic.h"
#include "../../frontend/edsl/names.h"
#include "../../frontend/edsl/vector.h"

namespace weft::detail {

namespace {

Vec3 corner(const Arr<const vec3>& points, const Arr<const int>& indices, const Int& triangle, int k) {
  return points[indices[triangle * 3 + k]];
}
Vec3 xyz(const Vec4& v) { return Vec3(v.x, v.y, v.z); }

}  // namespace

void triangle_boxes(const MeshArrays& mesh, const Array<vec3>& lowers, const Array<vec3>& uppers) {
  static const auto k =
      kernel("triangle boxes", [](Arr<const vec3> points, Arr<const int> indices, Arr<vec3> lowers, Arr<vec3> uppers) {
        Int i = tid();
        const Vec3 a = corner(points, indices, i, 0), b = corner(points, indices, i, 1),
                   c = corner(points, indices, i, 2);
        // min and max pass NaN by: a triangle with one is marked by a box that is none.
        const Vec3 sum = a + b + c;
        const Bool whole = isfinite(sum.x) & isfinite(sum.y) & isfinite(sum.z);
        const Float nan = std::numeric_limits<float>::quiet_NaN();
        for (int d = 0; d < 3; ++d) {
          lowers[i][d] = select(whole, min(min(a[d], b[d]), c[d]), nan);
          uppers[i][d] = select(whole, max(max(a[d], b[d]), c[d]), nan);
        }
      });
  launch(k, lowers.size(), mesh.points, mesh.indices, lowers, uppers);
}

void gather_corners(const MeshArrays& mesh) {
  static const auto k = kernel("gather corners", [](Arr<const vec3> points, Arr<const int> indices,
                                                    Arr<const int> primitives, Arr<vec4> corners) {
    Int i = tid();
    const Int triangle = primitives[i];
    for (int k = 0; k < 3; ++k)
      corners[i * 3 + k] = Vec4(corner(points, indices, triangle, k), k == 0 ? bitcast<float>(triangle) : Float(0));
  });
  launch(k, mesh.tree.count, mesh.points, mesh.indices, mesh.tree.primitives, mesh.corners);
}

namespace {

const auto& sum_leaves() {
  static const auto k = kernel(
      "sum leaves", [](Arr<const BvhNode> nodes, Arr<const int> parents, Arr<const vec4> corners, Arr<vec4> dipoles) {
        const Int node = tid();
        If (parents[node] < -1) {
          Return();  // no node
        }
        const Var<BvhNode> n = nodes[node];
        const Int link[2] = {bitcast<int>(n.lower0.w), bitcast<int>(n.lower1.w)};
        const Int count[2] = {bitcast<int>(n.upper0.w), bitcast<int>(n.upper1.w)};
        for (int side = 0; side < 2; ++side) {
          If (link[side] < 0) {
            Vec4 centre, normal;
            for (auto k : range(count[side])) {
              const Int place = (~link[side] + k) * 3;
              const Vec3 a = xyz(corners[place]), b = xyz(corners[place + 1]), c = xyz(corners[place + 2]);
              const Vec3 by_area = cross(b - a, c - a) * 0.5f;
              const Float area = length(by_area);
              // What has moved to infinity counts for nothing.
              If (isfinite(area)) {
                centre += Vec4((a + b + c) * (area / 3), area);
                normal += Vec4(by_area, 0);
              }
            }
            dipoles[node * 4 + side * 2] = centre;
            dipoles[node * 4 + side * 2 + 1] = normal;
          }
        }
      });
  return k;
}

// The threads of nodes that have leaves alone go up. Of two threads that meet at a node the second goes on, with the
// sums of both children.
const auto& sum_upwards() {
  static const auto k =
      kernel("sum upwards", [](Arr<const BvhNode> nodes, Arr<const int> parents, Arr<vec4> dipoles, Arr<int> arrived) {
        Int node = tid(), link = parents[node];
        const auto is_inner = [&](int side) {
          return bitcast<int>(Float(side ? nodes[node].lower1.w : nodes[node].lower0.w)) >= 0;
        };
        If (link < 0) {
          Return();  // the root, or no node
        }
        If (is_inner(0) | is_inner(1)) {
          Return();
        }
        While (link >= 0) {
          const Int place = (link >> 1) * 4 + (link & 1) * 2;
          for (int k = 0; k < 2; ++k) dipoles[place + k] = dipoles[node * 4 + k] + dipoles[node * 4 + 2 + k];
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

void sum_dipoles(const MeshArrays& mesh, const Array<int>& arrived) {
  const BvhData& tree = mesh.tree;
  launch(sum_leaves(), tree.nodes.size(), tree.nodes, tree.parents, mesh.corners, mesh.dipoles);
  launch(sum_upwards(), tree.nodes.size(), tree.nodes, tree.parents, mesh.dipoles, arrived);
}

}  // namespace weft::detail
