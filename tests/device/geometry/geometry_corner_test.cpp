// Corner cases of queries: points at infinity, boxes that are none, ends that are passed, structures in wrong places.
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/weft.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../device_test.h"

// A program may open the whole namespace, as here: the library's own structs must not be in its way.
using namespace weft;
struct Dust {
  vec3 place;
  float radius;
};
WEFT_STRUCT(Dust, place, radius);

using weft::test::error_of;
using weft::test::expect_contains;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

DEVICE_TEST(GeometryCorner);

TEST_P(GeometryCorner, structs_of_programs_stand_beside_the_library) {
  Array<Dust> grains(device(), {Dust{{1, 2, 3}, 4}});
  launch(kernel("grow", [](Arr<Dust> g) { g[tid()].radius += 1; }), 1, grains);
  EXPECT_EQ(grains.at(0).radius, 5);
}

TEST_P(GeometryCorner, all_hits_of_a_ray_end_once_and_for_all) {
  const Mesh mesh(device(), {{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}, {0, 1, 2}});
  Array<int> rounds = zeros<int>(device(), 2);
  launch(kernel("pairs",
                [](Var<MeshArrays> mesh, Arr<int> rounds) {
                  auto hits = mesh_query_ray_all(mesh, Vec3(0.2f, 0.2f, 1), Vec3(0, 0, -1));
                  MeshRayHit in, out;
                  While (hits.next(in) & (rounds[0] < 50)) {
                    rounds[0] += 1;
                    rounds[1] += Int(hits.next(out));
                  }
                }),
         1, mesh, rounds);
  EXPECT_EQ(rounds.to_vector(), (std::vector<int>{1, 0}));
}

TEST_P(GeometryCorner, triangles_that_go_to_infinity_are_nowhere) {
  for (int leaf : {1, 8}) {
    for (int corner = 0; corner < 3; ++corner) {
      for (float gone : {kNan, kInf, -kInf}) {
        // There is a box, and beside it a triangle of which one point goes to infinity.
        MeshData data = shapes::box({2, 2, 2});
        const int first = int(data.points.size());
        for (const vec3& p : {vec3{3, 0, 0}, vec3{4, 0, 0}, vec3{3, 1, 0}}) data.points.push_back(p);
        for (int k = 0; k < 3; ++k) data.indices.push_back(first + k);
        Array<vec3> points(device(), data.points);
        Mesh mesh(points, Array<int>(device(), data.indices), {.leaf_size = leaf, .winding_number = true});
        data.points[std::size_t(first + corner)].y = gone;
        points.assign(data.points);
        mesh.refit();
        Array<float> out = zeros<float>(device(), 4);
        launch(kernel("look",
                      [](Var<MeshArrays> mesh, Arr<float> out) {
                        const MeshPointHit far = mesh_query_furthest_point(mesh, Vec3(-5, 0, 0));
                        const MeshPointHit near = mesh_query_point(mesh, Vec3(0.8f, 0, 0), 10.f, MeshSign::winding);
                        out[0] = far.distance;
                        out[1] = near.sign;
                        out[2] = near.distance;
                        out[3] = mesh_winding_number(mesh, Vec3(0.8f, 0, 0));
                      }),
               1, mesh, out);
        const std::vector<float> got = out.to_vector();
        EXPECT_NEAR(got[0], std::sqrt(38.f), 1e-5) << leaf << ' ' << corner << ' ' << gone;
        EXPECT_EQ(got[1], -1);
        EXPECT_NEAR(got[2], 0.2f, 1e-6);
        EXPECT_NEAR(got[3], 1, 1e-3);
      }
    }
  }
}

// The bounds of the device's own structure must not go to infinity with a point.
TEST_P(GeometryCorner, rays_of_the_device_miss_what_goes_to_infinity_and_nothing_else) {
  if (!device().has_ray_query()) return;
  const auto look = kernel("look by rays", [](Var<MeshArrays> mesh, Arr<const vec3> from, Arr<int> faces) {
    Int i = tid();
    faces[i * 3] = mesh_query_ray(mesh, from[i], Vec3(0, 0, -1), kInf, RaySearch::device).face;
    faces[i * 3 + 1] = mesh_query_ray(mesh, from[i], Vec3(0, 0, -1), kInf, RaySearch::walk).face;
    faces[i * 3 + 2] = Int(mesh_query_ray_anyhit(mesh, from[i], Vec3(0, 0, -1), kInf, RaySearch::device));
  });
  // Beside a box there is a triangle of which one point goes to infinity, and its neighbour, which has the other two.
  MeshData data = shapes::box({2, 2, 2});
  const int first = int(data.points.size()), going = int(data.indices.size() / 3), next = going + 1;
  for (const vec3& p : {vec3{3, 0, 0}, vec3{4, 0, 0}, vec3{3, 1, 0}, vec3{4, -1, 0}}) data.points.push_back(p);
  for (int k : {0, 1, 2, 0, 3, 1}) data.indices.push_back(first + k);
  const Array<int> indices(device(), data.indices);
  const Array<vec3> from(device(),
                         {vec3{0.1f, 0.2f, 5}, vec3{-0.3f, -0.4f, 5}, vec3{3.2f, 0.1f, 5}, vec3{3.8f, -0.4f, 5}});
  for (const bool strided : {false, true})
    for (int corner = 0; corner < 3; ++corner)
      for (int axis = 0; axis < 3; ++axis)
        for (const float gone : {kNan, kInf, -kInf})
          for (const bool anew : {false, true}) {
            SCOPED_TRACE(testing::Message() << "corner " << corner << " axis " << axis << " to " << gone);
            const int stride = strided ? 2 : 1;
            Array<vec3> all = zeros<vec3>(device(), stride * std::int64_t(data.points.size()));
            Array<vec3> points = all.slice(0, all.size(), stride);
            points.assign(data.points);
            Mesh mesh(points, indices, {.ray_query = true});
            std::vector<vec3> moved = data.points;
            moved[std::size_t(first + corner)][axis] = gone;
            const auto expect_found = [&](bool whole) {
              Array<int> faces = zeros<int>(device(), 3 * from.size());
              launch(look, from.size(), mesh, from, faces);
              const std::vector<int> found = faces.to_vector();
              const int expected[] = {found[1], found[4], whole ? going : -1, whole || corner == 2 ? next : -1};
              for (int i = 0; i < 4; ++i) {
                EXPECT_EQ(found[std::size_t(3 * i)], expected[i]) << "by the device " << i;
                EXPECT_EQ(found[std::size_t(3 * i + 1)], expected[i]) << "by a walk " << i;
                EXPECT_EQ(found[std::size_t(3 * i + 2)], int(expected[i] >= 0)) << "any " << i;
              }
              EXPECT_GE(found[1], 0) << "the box stands";
              EXPECT_GE(found[4], 0);
            };
            expect_found(true);
            points.assign(moved);
            anew ? mesh.rebuild() : mesh.refit();
            expect_found(false);
            points.assign(data.points);
            anew ? mesh.rebuild() : mesh.refit();
            expect_found(true);
          }
}

TEST_P(GeometryCorner, boxes_that_are_none_are_found_in_no_leaf) {
  for (BvhBuilder builder : {BvhBuilder::lbvh, BvhBuilder::hploc}) {
    for (int leaf : {1, 2, 8}) {
      Array<vec3> lowers(device(), {vec3{0, 0, 0}, vec3{2, 2, 2}, vec3{0, 0, -kInf}, vec3{1, 0, 0}, vec3{kNan, 0, 0}});
      Array<vec3> uppers(device(), {vec3{1, 1, 1}, vec3{-2, -2, -2}, vec3{1, 1, 1}, vec3{2, 1, 1}, vec3{1, 1, 1}});
      Bvh tree(device(), lowers, uppers, {.builder = builder, .leaf_size = leaf});
      EXPECT_EQ(tree.ignored(), 3);
      const auto count = kernel("count", [](Var<BvhData> tree, Arr<int> n) {
        for (auto i : bvh_query_aabb(tree, Vec3(-9), Vec3(9))) n[0] += select(i >= 0, 1, 0);
        for (auto i : bvh_query_sphere(tree, Vec3(0), 20.f)) n[1] += select(i >= 0, 1, 0);
        for (auto i : bvh_query_capsule(tree, Vec3(0), Vec3(1), 20.f)) n[2] += select(i >= 0, 1, 0);
        for (auto i : bvh_query_ray(tree, Vec3(0.5f, 0.5f, 5), Vec3(0, 0, -1))) n[3] += select(i >= 0, 1, 0);
      });
      Array<int> n = zeros<int>(device(), 4);
      launch(count, 1, tree, n);
      EXPECT_EQ(n.to_vector(), (std::vector<int>{2, 2, 2, 1})) << leaf;
      // Now a box that was one becomes none.
      std::vector<vec3> upper = uppers.to_vector();
      upper[3] = {-5, 1, 1};
      uppers.assign(upper);
      tree.refit();
      n.zero();
      launch(count, 1, tree, n);
      EXPECT_EQ(n.to_vector(), (std::vector<int>{1, 1, 1, 1})) << leaf;
    }
  }
}

struct Holder {
  MeshArrays mesh;
  int number;
};
WEFT_STRUCT(Holder, mesh, number);

TEST_P(GeometryCorner, meshes_in_elements_are_refused_for_their_handles) {
  const Mesh mesh(device(), shapes::box());
  const auto look = kernel("look into an element", [](Arr<const Holder> holders, Arr<float> t) {
    t[0] = mesh_query_ray(Var<Holder>(holders[tid()]).mesh, Vec3(0.1f, 0.2f, 3), Vec3(0, 0, -1)).t;
  });
  const Array<Holder> holders(device(), {Holder{mesh.kernel_argument(), 1}});
  expect_contains(error_of([&] { launch(look, 1, holders, zeros<float>(device(), 1)); }), "id()");
}

TEST_P(GeometryCorner, boxes_in_strides_pass_gradients) {
  for (int stride : {1, 2}) {
    Array<vec3> all = full<vec3>(device(), 8, vec3{0, 0, 0}).requires_grad();
    const Array<vec3> lowers = all.slice(0, 4 * stride, stride), uppers = full<vec3>(device(), 4, vec3{1, 1, 1});
    Array<float> sum = zeros<float>(device(), 1).requires_grad();
    const Bvh tree(device(), lowers, uppers);
    Tape tape;
    tape.record([&] {
      launch(kernel("sum lowers",
                    [](Var<BvhData> tree, Arr<float> sum) { atomic_add(sum[0], Vec3(tree.lowers[tid()]).x); }),
             4, tree, sum);
    });
    tape.backward(sum);
    EXPECT_EQ(all.grad().at(stride).x, 1) << stride;
  }
}

TEST_P(GeometryCorner, signs_by_winding_need_its_data) {
  const Mesh mesh(device(), shapes::box());
  Array<float> sign = zeros<float>(device(), 2);
  launch(kernel("sign",
                [](Var<MeshArrays> mesh, Arr<float> sign) {
                  sign[0] = mesh_query_point(mesh, Vec3(0, 0, 0), 9.f, MeshSign::winding).sign;
                  sign[1] = mesh_winding_number(mesh, Vec3(0, 0, 0));
                }),
         1, mesh, sign);
  EXPECT_TRUE(std::isnan(sign.at(0))) << "not an answer that looks like one";
  EXPECT_TRUE(std::isnan(sign.at(1)));
}

TEST_P(GeometryCorner, winding_numbers_do_not_depend_on_the_unit_of_length) {
  const MeshData unit = shapes::icosphere(1, on_reference() ? 2 : 4);
  const auto ask = kernel("ask", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<float> numbers) {
    Int i = tid();
    numbers[i] = mesh_winding_number(mesh, points[i]);
  });
  const std::vector<vec3> places = {{0, 0, 0}, {0.5f, 0.3f, -0.2f}, {-0.7f, 0.1f, 0.1f}, {0, 3, 0}, {-1, -1, 2}};
  for (const float scale : {1e-8f, 1e-4f, 1.f, 1e4f, 1e8f}) {
    MeshData data = unit;
    for (vec3& p : data.points) p = p * scale;
    std::vector<vec3> points = places;
    for (vec3& p : points) p = p * scale;
    Array<float> numbers = zeros<float>(device(), 5);
    launch(ask, 5, Mesh(device(), data, {.winding_number = true}), Array<vec3>(device(), points), numbers);
    for (int k = 0; k < 5; ++k) EXPECT_NEAR(numbers.at(k), k < 3 ? 1 : 0, 0.01) << scale << " " << k;
  }
}

TEST_P(GeometryCorner, triangles_are_found_as_far_away_as_numbers_go) {
  const float far = 3e38f;
  const MeshData data{{{far, 0, 0}, {far, 1e38f, 0}, {far, 0, 1e38f}}, {0, 1, 2}};
  const Mesh mesh(device(), data);
  EXPECT_EQ(mesh.tree().ignored(), 0);
  Array<int> n = zeros<int>(device(), 1);
  launch(kernel("count",
                [](Var<MeshArrays> mesh, Arr<int> n) {
                  for (auto i : mesh_query_aabb(mesh, Vec3(1e38f, -1, -1), Vec3(3.2e38f, 1e37f, 1e37f))) n[0] += i + 1;
                }),
         1, mesh, n);
  EXPECT_EQ(n.at(0), 1);
}

TEST_P(GeometryCorner, zeros_of_both_signs_give_the_same_tree_in_every_build) {
  const int n = on_reference() ? 200 : 20000;
  std::vector<vec3> lowers, uppers;
  for (int i = 0; i < n; ++i) {
    const float x = float((i * 7919) % n), y = float((i * 104729) % n), zero = i % 3 ? 0.f : -0.f;
    lowers.push_back({x, y, zero});
    uppers.push_back({x + 2, y + 2, -zero});
  }
  for (const BvhBuilder builder : {BvhBuilder::lbvh, BvhBuilder::hploc})
    for (const int leaf_size : {1, 4}) {
      Bvh tree(device(), lowers, uppers, {builder, leaf_size});
      const auto first = tree.data().nodes.to_vector();
      for (int k = 0; k < 6; ++k) {
        tree.rebuild();
        const auto again = tree.data().nodes.to_vector();
        ASSERT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof first[0]), 0) << k;
      }
    }
}

TEST_P(GeometryCorner, queries_are_gone_through_once) {
  const Mesh mesh(device(), shapes::box());
  const auto twice = kernel("twice", [](Var<MeshArrays> mesh, Arr<int> n) {
    auto query = mesh_query_aabb(mesh, Vec3(-1), Vec3(1));
    for (auto i : query) n[0] += i;
    for (auto i : query) n[0] += i;
  });
  expect_contains(error_of([&] { launch(twice, 1, mesh, zeros<int>(device(), 1)); }), "gone through twice");
  const auto rays = kernel("rays twice", [](Var<MeshArrays> mesh, Arr<int> n) {
    auto hits = mesh_query_ray_all(mesh, Vec3(0, 0, 3), Vec3(0, 0, -1));
    for (auto h : hits) n[0] += h.face;
    for (auto h : hits) n[0] += h.face;
  });
  expect_contains(error_of([&] { launch(rays, 1, mesh, zeros<int>(device(), 1)); }), "gone through twice");
  HashGrid grid(device(), 4, 4, 4);
  grid.build(zeros<vec3>(device(), 3), 1);
  const auto points = kernel("points twice", [](Var<HashGridArrays> grid, Arr<int> n) {
    auto query = hash_grid_query(grid, Vec3(0), 1.f);
    for (auto i : query) n[0] += i;
    for (auto i : query) n[0] += i;
  });
  expect_contains(error_of([&] { launch(points, 1, grid, zeros<int>(device(), 1)); }), "gone through twice");
}

TEST_P(GeometryCorner, queries_are_made_inside_the_loop_that_goes_through_them) {
  const Mesh mesh(device(), shapes::box());
  HashGrid grid(device(), 4, 4, 4);
  grid.build(zeros<vec3>(device(), 3), 1);
  Array<int> n = zeros<int>(device(), 1);
  const auto boxes = kernel("boxes", [](Var<MeshArrays> mesh, Arr<int> n) {
    auto query = mesh_query_aabb(mesh, Vec3(-1), Vec3(1));
    for (auto round : range(2)) {
      for (auto i : query) n[0] += i + round;
    }
  });
  expect_contains(error_of([&] { launch(boxes, 1, mesh, n); }), "made outside a loop");
  const auto rays = kernel("rays", [](Var<MeshArrays> mesh, Arr<int> n) {
    auto hits = mesh_query_ray_all(mesh, Vec3(0, 0, 3), Vec3(0, 0, -1));
    While (n[0] < 3) {
      for (auto h : hits) n[0] += h.face;
    }
  });
  expect_contains(error_of([&] { launch(rays, 1, mesh, n); }), "made outside a loop");
  const auto points = kernel("points", [](Var<HashGridArrays> grid, Arr<int> n) {
    auto query = hash_grid_query(grid, Vec3(0), 1.f);
    for (auto round : range(2)) {
      for (auto i : query) n[0] += i + round;
    }
  });
  expect_contains(error_of([&] { launch(points, 1, grid, n); }), "made outside a loop");
  const auto branch = kernel("branch", [](Var<MeshArrays> mesh, Arr<int> n) {
    for (auto round : range(2)) {
      auto query = mesh_query_aabb(mesh, Vec3(-1), Vec3(1));
      If (round == 1) {
        for (auto i : query) n[0] += i * 0 + 1;
      }
    }
  });
  launch(branch, 1, mesh, n);
  EXPECT_EQ(n.at(0), 12);
}

TEST_P(GeometryCorner, the_hierarchy_of_a_mesh_is_the_meshs_own) {
  Mesh mesh(device(), shapes::box());
  Bvh tree = mesh.tree();
  expect_contains(error_of([&] { tree.refit(); }), "of a mesh");
  expect_contains(error_of([&] { tree.rebuild(); }), "of a mesh");
  mesh.refit();
  mesh.rebuild();
}

TEST_P(GeometryCorner, histograms_reach_over_all_numbers) {
  Array<float> x(device(), {-3e38f, -1e38f, 0.f, 1e38f, 2.9e38f, 3e38f, kNan, kInf});
  Array<int> counts = zeros<int>(device(), 4);
  histogram(x, -3e38f, 3e38f, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{1, 1, 2, 2}));
  expect_contains(error_of([&] { histogram(x, 0.f, 1e-44f, counts); }), "too narrow");
}

}  // namespace
