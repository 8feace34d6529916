// Structures of geometry where debug mode looks at all stores for NaN: theirs hold other things than numbers.
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/geometry/hash_grid_query.h>
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <cmath>

#include "device_test.h"

using namespace weft;

namespace {

class GeometryDebug : public weft::test::DeviceTest {
 public:
  GeometryDebug() { set_debug(Debug::all()); }
  ~GeometryDebug() override { set_debug(before_); }

 private:
  const Debug before_ = debug_mode();
};
ON_EVERY_DEVICE(GeometryDebug);

TEST_P(GeometryDebug, meshes_are_built_refitted_and_asked) {
  const auto ask = kernel("ask", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<float> out) {
    Int i = tid();
    const MeshPointHit near = mesh_query_point(mesh, points[i], 100.f, MeshSign::winding);
    const MeshRayHit ahead = mesh_query_ray(mesh, points[i], Vec3(-1, 0.01f, 0.02f));
    out[i] = near.sign * near.distance + select(ahead.hit, ahead.t, 0.f);
  });
  const MeshData data = shapes::icosphere(1, on_reference() ? 1 : 3);
  for (const BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh})
    for (const int leaf_size : {1, 4}) {
      Array<vec3> points(device(), data.points);
      Mesh mesh(points, Array<int>(device(), data.indices),
                {.builder = builder, .leaf_size = leaf_size, .winding_number = true});
      const Array<vec3> from(device(), {vec3{3, 0, 0}, vec3{2, 0, 0}});
      Array<float> out = zeros<float>(device(), 2);
      launch(ask, 2, mesh, from, out);
      EXPECT_NEAR(out.at(0), 4, 0.2);
      EXPECT_NEAR(out.at(1), 2, 0.2);
      // A triangle that nobody finds any more.
      std::vector<vec3> moved = data.points;
      moved[0].x = std::numeric_limits<float>::quiet_NaN();
      points.assign(moved);
      mesh.refit();
      device().synchronize();
      points.assign(data.points);
      mesh.rebuild();
      launch(ask, 2, mesh, from, out);
      EXPECT_NEAR(out.at(0), 4, 0.2);
    }
}

TEST_P(GeometryDebug, groups_and_grids_are_built) {
  std::vector<vec3> lowers, uppers;
  std::vector<int> groups;
  for (int i = 0; i < 50; ++i) {
    lowers.push_back({float(i), 0, 0}), uppers.push_back({float(i) + 1, 1, 1});
    groups.push_back(i % 3);
  }
  const Array<vec3> low(device(), lowers), high(device(), uppers);
  for (const BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh}) {
    Bvh tree(device(), low, high, {.builder = builder, .groups = Array<int>(device(), groups)});
    tree.refit();
    tree.rebuild();
  }
  HashGrid grid(device(), 4, 4, 4, {.keep_positions = true});
  grid.build(low, 1.5f);
  EXPECT_NO_THROW(device().synchronize());
}

}  // namespace
