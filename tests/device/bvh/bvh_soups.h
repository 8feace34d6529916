// Boxes to build hierarchies from, and checks of a finished hierarchy.
#pragma once
#include <gtest/gtest.h>
#include <weft/runtime/geometry/bvh.h>
#include <weft/runtime/geometry/mesh_data.h>
#include <weft/weft.h>

#include <vector>

namespace weft::test {

struct Boxes {
  std::vector<vec3> lowers, uppers;
  std::size_t size() const { return lowers.size(); }
  void add(const vec3& lower, const vec3& upper) {
    lowers.push_back(lower);
    uppers.push_back(upper);
  }
};

/// Boxes of small triangles at random places of a cube.
Boxes random_soup(int n, unsigned seed = 1);
/// Boxes of an icosahedron whose faces are divided `levels` times in four, on the unit sphere.
Boxes icosphere(int levels);
/// Boxes of 2 * around * along triangles on a torus.
Boxes torus(int around, int along);
/// Boxes of the triangles of a mesh.
Boxes boxes_of(const MeshData& mesh);

/// A copy on the host of the tree's arrays.
struct HostBvh {
  explicit HostBvh(const Bvh& bvh);
  std::vector<BvhNode> nodes;
  std::vector<int> primitives, parents;
};

/// Fails the test unless every primitive is in exactly one leaf, no leaf holds too many, every box is the smallest
/// around what is below it, and parents and depth are right. Primitives that are none have empty boxes.
void expect_valid(const Bvh& bvh, const Boxes& boxes);
/// The surface area heuristic with cost 1 for a node and for a primitive, over the area of the root.
double cost_of(const Bvh& bvh);
/// The cost of a tree that the host builds from 16 bins along each axis, with leaves of up to `leaf_size` primitives
/// where these cost less.
double cost_of_binned_build(const Boxes& boxes, int leaf_size = 1);

}  // namespace weft::test
