// Structures of geometry and algorithms in debug mode, which checks all stores for NaN: theirs hold bits that are not
// numbers, or values of the user. And the reports of debug mode about queries.
#include <weft/algorithms.h>
#include <weft/runtime/geometry/bvh_query.h>
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/geometry/hash_grid_query.h>
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <cmath>

#include "../device_test.h"

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
      // The triangles of this point can no longer be found.
      std::vector<vec3> moved = data.points;
      const int gone = data.indices[30];
      for (const float away : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
        for (const bool anew : {false, true}) {
          moved[std::size_t(gone)].y = away;
          points.assign(moved);
          anew ? mesh.rebuild() : mesh.refit();
          const std::string told = test::error_of([&] { device().synchronize(); });
          test::expect_contains(told, "of a mesh has a point that is NaN or infinite");
          // The report names one of the triangles around the point.
          bool around = false;
          for (std::size_t k = 0; k < data.indices.size(); ++k)
            if (data.indices[k] == gone)
              around |= told.find("triangle " + std::to_string(k / 3) + " of a mesh") != std::string::npos;
          EXPECT_TRUE(around) << told;
        }
      points.assign(data.points);
      mesh.rebuild();
      launch(ask, 2, mesh, from, out);
      EXPECT_NEAR(out.at(0), 4, 0.2);
    }
}

TEST_P(GeometryDebug, a_negative_limit_of_a_query_is_reported) {
  const Mesh mesh(device(), shapes::icosphere(1, 1));
  const Array<int> found = zeros<int>(device(), 1);
  // The limit is an argument, or a number whose fault is known while the kernel is traced.
  const auto expect_reported = [&](const char* query, const char* limit, auto ask) {
    const auto of_argument = kernel("ask", [ask](Var<MeshArrays> mesh, Var<BvhData> tree, Float radius,
                                                 Arr<int> found) { ask(mesh, tree, radius, found); });
    for (const float radius : {-0.5f, std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE(std::string(query) + " of " + std::to_string(radius));
      const std::string expected = std::string(query) + ": the " + limit + " is" + (radius < 0 ? " -0.5" : "");
      launch(of_argument, 1, mesh, mesh.tree(), radius, found);
      test::expect_contains(test::error_of([&] { found.to_vector(); }), expected);
      const auto of_number = kernel("ask", [ask, radius](Var<MeshArrays> mesh, Var<BvhData> tree, Arr<int> found) {
        ask(mesh, tree, Float(radius), found);
      });
      launch(of_number, 1, mesh, mesh.tree(), found);
      test::expect_contains(test::error_of([&] { found.to_vector(); }), expected);
      launch(of_number, 1, mesh, mesh.tree(), found);
      test::expect_contains(test::error_of([&] { found.at(0); }), expected);
      launch(of_number, 1, mesh, mesh.tree(), found);
      test::expect_contains(test::error_of([&] { found.wait(); }), expected);
    }
    launch(of_argument, 1, mesh, mesh.tree(), 0.f, found);
    EXPECT_NO_THROW(found.to_vector()) << query << ": 0 is a limit";
  };
  expect_reported("mesh_query_sphere", "radius", [](auto& mesh, auto&, const Float& radius, Arr<int>& found) {
    for (auto k : mesh_query_sphere(mesh, Vec3(1, 0, 0), radius)) found[0] = k;
  });
  expect_reported("bvh_query_sphere", "radius", [](auto&, auto& tree, const Float& radius, Arr<int>& found) {
    for (auto k : bvh_query_sphere(tree, Vec3(1, 0, 0), radius)) found[0] = k;
  });
  expect_reported("bvh_query_capsule", "radius", [](auto&, auto& tree, const Float& radius, Arr<int>& found) {
    for (auto k : bvh_query_capsule(tree, Vec3(1, 0, 0), Vec3(2, 0, 0), radius)) found[0] = k;
  });
  expect_reported("bvh_query_ray", "max_dist", [](auto&, auto& tree, const Float& limit, Arr<int>& found) {
    for (auto k : bvh_query_ray(tree, Vec3(3, 0, 0), Vec3(-1, 0, 0), limit)) found[0] = k;
  });
  expect_reported("mesh_query_point", "max_dist", [](auto& mesh, auto&, const Float& limit, Arr<int>& found) {
    found[0] = mesh_query_point(mesh, Vec3(3, 0, 0), limit).face;
  });
  expect_reported("mesh_query_ray", "max_t", [](auto& mesh, auto&, const Float& limit, Arr<int>& found) {
    found[0] = mesh_query_ray(mesh, Vec3(3, 0, 0), Vec3(-1, 0, 0), limit).face;
  });
  expect_reported("mesh_query_ray_anyhit", "max_t", [](auto& mesh, auto&, const Float& limit, Arr<int>& found) {
    found[0] = Int(mesh_query_ray_anyhit(mesh, Vec3(3, 0, 0), Vec3(-1, 0, 0), limit));
  });
  expect_reported("mesh_query_ray_count", "max_t", [](auto& mesh, auto&, const Float& limit, Arr<int>& found) {
    found[0] = mesh_query_ray_count(mesh, Vec3(3, 0, 0), Vec3(-1, 0, 0), limit);
  });
  expect_reported("mesh_query_ray_all", "max_t", [](auto& mesh, auto&, const Float& limit, Arr<int>& found) {
    for (auto hit : mesh_query_ray_all(mesh, Vec3(3, 0, 0), Vec3(-1, 0, 0), limit)) found[0] = hit.face;
  });
}

TEST_P(GeometryDebug, a_mesh_without_winding_numbers_is_reported) {
  const Mesh with(device(), shapes::icosphere(1, 1), {.winding_number = true}),
      without(device(), shapes::icosphere(1, 1));
  const Array<int> inside = zeros<int>(device(), 1);
  const auto by_sign = kernel("inside by sign", [](Var<MeshArrays> mesh, Arr<int> inside) {
    inside[0] = select(mesh_query_point(mesh, Vec3(), 9.f, MeshSign::winding).sign < 0, 1, 0);
  });
  const auto by_number = kernel("inside by number", [](Var<MeshArrays> mesh, Arr<int> inside) {
    inside[0] = select(mesh_winding_number(mesh, Vec3()) > 0.5f, 1, 0);
  });
  for (const auto* ask : {&by_sign, &by_number}) {
    launch(*ask, 1, with, inside);
    EXPECT_EQ(inside.at(0), 1);
    launch(*ask, 1, without, inside);
    test::expect_contains(test::error_of([&] { inside.at(0); }), "the mesh was made without .winding_number = true");
  }
}

TEST_P(GeometryDebug, what_algorithms_copy_is_no_fault) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Array<float> none = empty<float>(device(), 0), some(device(), {1, nan, inf});
  EXPECT_EQ(reduce_min(none), inf);
  EXPECT_EQ(reduce_max(none), -inf);
  EXPECT_EQ(reduce_max(Array<float>(device(), {1, inf})), inf);
  Array<float> values = zeros<float>(device(), 3);
  Array<int> lengths = zeros<int>(device(), 3), count = zeros<int>(device(), 1);
  run_length_encode(some, values, lengths, count);
  EXPECT_EQ(count.at(0), 3);
  compact(some, Array<int>(device(), {0, 1, 1}), values, count);
  EXPECT_EQ(values.at(1), inf);
  Array<float> sorted = some.clone(), segments = some.clone();
  radix_sort(sorted);
  EXPECT_EQ(sorted.at(1), inf);
  segmented_sort(segments, Array<int>(device(), {0, 3}));
  EXPECT_EQ(segments.at(1), inf);
}

TEST_P(GeometryDebug, offsets_of_segments_that_make_no_sense_are_reported) {
  Array<int> keys(device(), {5, 4, 3, 2, 1});
  const auto told = [&](const std::vector<int>& offsets) {
    segmented_sort(keys, Array<int>(device(), offsets));
    return test::error_of([&] { keys.to_vector(); });
  };
  test::expect_contains(told({0, 3, 2}), "segmented_sort: offset 2 is 2 and the one before it 3");
  test::expect_contains(told({0, 6}), "segmented_sort: offset 1 is 6 among 5 keys");
  test::expect_contains(told({-1, 5}), "segmented_sort: offset 0 is -1 among 5 keys");
  keys.assign(std::vector<int>{5, 4, 3, 2, 1});
  segmented_sort(keys, Array<int>(device(), {0, 2, 2, 5}));
  EXPECT_EQ(keys.to_vector(), (std::vector<int>{4, 5, 1, 2, 3}));
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
