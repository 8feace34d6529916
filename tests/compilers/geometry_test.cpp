// Builds of every structure, and queries of every kind with their gradients.
#include <weft/runtime/geometry/geometry.h>
#include <weft/runtime/tape.h>

#include "compile_test.h"

using namespace weft;
using namespace weft::test;

namespace {

class CompilesGeometry : public CompileTest {
 protected:
  static constexpr int kPoints = 1000;
  const MeshData data_ = shapes::torus();
  const Array<vec3> points_{device(), std::vector<vec3>(kPoints, vec3(1, 2, 3))};
  const Array<float> out_ = zeros<float>(device(), kPoints);
};

TEST_F(CompilesGeometry, hierarchies) {
  const Array<vec3> upper(device(), std::vector<vec3>(kPoints, vec3(2, 3, 4)));
  for (const BvhBuilder builder : {BvhBuilder::lbvh, BvhBuilder::hploc})
    for (const int leaf_size : {1, 4})
      for (const int curve_bits : {30, 60}) {
        Bvh bvh(device(), points_, upper, {.builder = builder, .leaf_size = leaf_size, .curve_bits = curve_bits});
        bvh.refit();
        bvh.rebuild();
      }
  const Bvh bvh(device(), points_, upper, {.groups = zeros<int>(device(), kPoints)});
  const auto found = kernel("found", [](Var<BvhData> bvh, Arr<const vec3> p, Arr<float> out) {
    const Int i = tid();
    Float n = 0.f;
    const auto count = [&](auto&& query) {
      for (auto k : query) n += Float(k);
    };
    count(bvh_query_aabb(bvh, p[i], p[i] + Vec3(1.f)));
    count(bvh_query_sphere(bvh, p[i], 0.5f));
    count(bvh_query_capsule(bvh, p[i], p[i] + Vec3(1.f), 0.5f));
    count(bvh_query_ray(bvh, p[i], p[i] + Vec3(1.f)));
    count(bvh_query_aabb(bvh, p[i], p[i] + Vec3(1.f), bvh_group_root(bvh, i)));
    out[i] = n;
  });
  launch(found, kPoints, bvh, points_, out_);
  expect_compiled(15);
}

TEST_F(CompilesGeometry, hash_grids) {
  for (const bool deterministic : {false, true}) {
    HashGrid grid(device(), 16, 16, 16, {.deterministic = deterministic, .keep_positions = true});
    grid.build(points_, 0.5f);
    grid.build(points_, 0.5f, zeros<int>(device(), kPoints));
    const auto near_ones = kernel("near ones", [](Var<HashGridArrays> grid, Arr<const vec3> p, Arr<float> out) {
      const Int i = hash_grid_point_id(grid, tid());
      Float n = 0.f;
      for (auto j : hash_grid_query(grid, p[i], 0.5f)) n += length(p[j] - p[i]);
      for (auto j : hash_grid_query(grid, p[i], 0.5f, 0)) n += Float(j);
      out[i] = n;
    });
    launch(near_ones, kPoints, grid, points_, out_);
  }
  expect_compiled(6);
}

TEST_F(CompilesGeometry, meshes_and_gradients_of_what_they_are_asked) {
  const Array<vec3> corners = Array<vec3>(device(), data_.points).requires_grad(),
                    p = Array<vec3>(device(), std::vector<vec3>(kPoints, vec3(1, 2, 3))).requires_grad();
  const Array<int> indices(device(), data_.indices);
  Mesh mesh(corners, indices, {.velocities = Array<vec3>(device(), data_.points), .winding_number = true});
  mesh.refit();
  mesh.rebuild();
  const auto rays = kernel("rays", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> out) {
    const Int i = tid();
    const MeshRayHit hit = mesh_query_ray(mesh, p[i], normalize(p[i]));
    Float sum = select(hit.hit, hit.t + dot(hit.normal, p[i]), 0.f);
    sum += select(mesh_query_ray_anyhit(mesh, p[i], p[i]), 1.f, Float(mesh_query_ray_count(mesh, p[i], p[i])));
    out[i] = sum;
  });
  const auto nearest = kernel("nearest", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> out) {
    const Int i = tid();
    Float sum = 0.f;
    for (const MeshSign sign : {MeshSign::none, MeshSign::majority, MeshSign::normal, MeshSign::winding}) {
      const MeshPointHit hit = mesh_query_point(mesh, p[i], 10.f, sign);
      sum += hit.sign * hit.distance;
      sum += length(mesh_eval_position(mesh, hit.face, hit.u, hit.v) - p[i]);
    }
    out[i] = sum + mesh_query_furthest_point(mesh, p[i]).distance;
  });
  const auto others = kernel("others", [](Var<MeshArrays> mesh, Arr<const vec3> p, Arr<float> out) {
    const Int i = tid();
    Float sum = 0.f;
    for (auto hit : mesh_query_ray_all(mesh, p[i], p[i])) sum += hit.t;
    for (auto face : mesh_query_aabb(mesh, p[i], p[i] + Vec3(1.f))) sum += length(mesh_eval_face_normal(mesh, face));
    for (auto face : mesh_query_sphere(mesh, p[i], 1.f)) sum += length(mesh_eval_velocity(mesh, face, 0.2f, 0.3f));
    out[i] = sum;
  });
  Tape tape;
  tape.record([&] {
    launch(rays, kPoints, mesh, p, out_);
    tape.unrecorded([&] { launch(others, kPoints, mesh, p, zeros<float>(device(), kPoints)); });
  });
  tape.backward({{out_, full<float>(device(), kPoints, 1)}});
  tape.reset();
  tape.record([&] { launch(nearest, kPoints, mesh, p, out_); });
  tape.backward({{out_, full<float>(device(), kPoints, 1)}});
  spatial_order(points_);
  expect_compiled(12);
}

}  // namespace
