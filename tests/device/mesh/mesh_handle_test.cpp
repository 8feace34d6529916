// Meshes and hierarchies by their handles: 64-bit values in arrays and structs.
#include <weft/runtime/geometry/hash_grid.h>
#include <weft/runtime/geometry/hash_grid_query.h>
#include <weft/runtime/geometry/mesh.h>
#include <weft/runtime/geometry/mesh_query.h>
#include <weft/runtime/geometry/mesh_shapes.h>

#include <optional>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(MeshHandle);

struct Body {
  std::uint64_t mesh;
  vec3 position;
};
WEFT_STRUCT(Body, mesh, position);

/// The distance of each body's mesh from the body's place; -1 if nothing is found.
const auto measure = kernel("measure", [](Arr<const Body> bodies, Arr<float> out) {
  Int i = tid();
  const MeshPointHit h = mesh_query_point(bodies[i].mesh, bodies[i].position, 100.f);
  out[i] = select(h.hit, h.distance, -1.f);
});

TEST_P(MeshHandle, structs_hold_meshes) {
  std::vector<Mesh> meshes;
  std::vector<Body> bodies;
  for (int k = 0; k < 5; ++k) {
    meshes.emplace_back(device(), shapes::box({float(k + 1), 1, 1}));
    EXPECT_EQ(meshes.back().id(), meshes.back().id());
    bodies.push_back({meshes.back().id(), vec3{10, 0, 0}});
  }
  bodies.push_back({0, vec3{1, 2, 3}});
  Array<float> out = zeros<float>(device(), 6);
  launch(measure, 6, Array<Body>(device(), bodies), out);
  for (int k = 0; k < 5; ++k) EXPECT_NEAR(out.at(k), 10 - 0.5f * float(k + 1), 1e-5) << k;
  EXPECT_EQ(out.at(5), -1) << "0 names nothing";
}

TEST_P(MeshHandle, hierarchies_have_handles_too) {
  std::vector<vec3> lo, hi;
  for (int k = 0; k < 20; ++k) lo.push_back({float(k), 0, 0}), hi.push_back({float(k) + 0.5f, 1, 1});
  std::optional<Bvh> tree;
  tree.emplace(device(), lo, hi);
  Array<std::uint64_t> ids(device(), {tree->id(), std::uint64_t(0)});
  Array<int> counts = full<int>(device(), 2, -1);
  const auto count = kernel("count", [](Arr<const std::uint64_t> ids, Arr<int> counts) {
    Int i = tid(), n = 0;
    for (auto k : bvh_query_aabb(ids[i], Vec3(3.2f, 0, 0), Vec3(7.1f, 1, 1))) n += select(k >= 0, 1, 0);
    counts[i] = n;
  });
  launch(count, 2, ids, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{5, 0}));
  tree.reset();
  launch(count, 2, ids, counts);
  EXPECT_EQ(counts.to_vector(), (std::vector<int>{0, 0})) << "a hierarchy that is no more has no boxes";
}

TEST_P(MeshHandle, launches_are_ordered_with_what_changes_a_mesh) {
  const MeshData data = shapes::icosphere(1, on_reference() ? 1 : 4);
  const Array<vec3> points(device(), data.points);
  Mesh mesh(points, Array<int>(device(), data.indices));
  const Array<Body> bodies(device(), {Body{mesh.id(), vec3{100, 0, 0}}});
  const auto push = kernel("push", [](Arr<vec3> p) { p[tid()].x += 1; });
  Array<float> out = zeros<float>(device(), 40);
  const float first = [&] {
    launch(measure, 1, bodies, out);
    return out.at(0);
  }();
  const Stream other = device().create_stream();
  for (int k = 0; k < 40; ++k) {
    // Each answer is that of its moment, whichever stream the query runs on.
    if (k % 2)
      launch(other, measure, 1, bodies, out.slice(k, k + 1));
    else
      launch(measure, 1, bodies, out.slice(k, k + 1));
    launch(push, points.size(), points);
    mesh.refit();
  }
  const auto got = out.to_vector();
  for (int k = 0; k < 40; ++k) EXPECT_NEAR(got[std::size_t(k)], first - float(k), 1e-3) << k;
}

TEST_P(MeshHandle, a_mesh_lives_until_launches_have_used_it_and_is_found_no_more) {
  Array<float> out = zeros<float>(device(), 3);
  Array<Body> bodies;
  {
    const Mesh mesh(device(), shapes::icosphere(1, 2));
    bodies = Array<Body>(device(), {Body{mesh.id(), vec3{5, 0, 0}}});
    launch(measure, 1, bodies, out);
  }
  // Other meshes may take the memory; a new mesh has another handle.
  std::vector<Mesh> others;
  for (int k = 0; k < 4; ++k) {
    others.emplace_back(device(), shapes::icosphere(3, 2));
    EXPECT_NE(others.back().id(), bodies.at(0).mesh);
  }
  launch(measure, 1, bodies, out.slice(1, 2));
  EXPECT_NEAR(out.at(0), 4, 0.05);
  EXPECT_EQ(out.at(1), -1);
}

TEST_P(MeshHandle, debug_mode_reports_a_handle_of_nothing) {
  std::uint64_t id = 0;
  {
    const Mesh mesh(device(), shapes::box());
    id = mesh.id();
  }
  const Array<Body> bodies(device(), {Body{id, vec3{5, 0, 0}}});
  Array<float> out = zeros<float>(device(), 1);
  const int line = __LINE__ + 4;
  const auto checked = kernel("checked",
                              [](Arr<const Body> bodies, Arr<float> out) {
                                Int i = tid();
                                const MeshPointHit h = mesh_query_point(bodies[i].mesh, bodies[i].position);
                                out[i] = h.distance;
                              },
                              {.debug = true});
  launch(checked, 1, bodies, out);
  const std::string text = error_of([&] { out.to_vector(); });
  expect_contains(text, "\"checked\"");
  expect_contains(text, "mesh_handle_test.cpp:" + std::to_string(line));
  expect_contains(text, std::to_string(id) + " names no mesh, or one that is no more");
}

/// One structure of each kind, around the origin.
struct Kinds {
  explicit Kinds(const Device& device)
      : mesh(device, shapes::box()),
        tree(device, std::vector<vec3>{{-1, -1, -1}, {0, 0, 0}}, std::vector<vec3>{{1, 1, 1}, {1, 1, 1}}),
        grid(device, 4, 4, 4) {
    grid.build(Array<vec3>(device, {vec3{0.1f, 0, 0}, vec3{0.2f, 0, 0}, vec3{0.3f, 0, 0}}), 1);
  }
  std::vector<std::uint64_t> ids() const { return {mesh.id(), tree.id(), grid.id()}; }
  Mesh mesh;
  Bvh tree;
  HashGrid grid;
};

TEST_P(MeshHandle, a_handle_of_another_kind_finds_nothing) {
  const Kinds kinds(device());
  const auto ask = kernel("ask as each kind", [](Arr<const std::uint64_t> ids, Arr<int> found) {
    Int i = tid(), boxes = 0, points = 0;
    found[i * 4] = select(mesh_query_point(ids[i], Vec3(2, 0, 0)).hit, 1, 0);
    found[i * 4 + 1] = select(mesh_query_ray_anyhit(ids[i], Vec3(2, 0, 0), Vec3(-1, 0, 0)), 1, 0);
    for (auto k : bvh_query_aabb(ids[i], Vec3(-2), Vec3(2))) boxes += select(k >= 0, 1, 0);
    for (auto k : hash_grid_query(ids[i], Vec3(), 1)) points += select(k >= 0, 1, 0);
    found[i * 4 + 2] = boxes;
    found[i * 4 + 3] = points;
  });
  const Array<std::uint64_t> ids(device(), kinds.ids());
  const Array<int> found = full<int>(device(), 12, -1);
  launch(ask, 3, ids, found);
  EXPECT_EQ(found.to_vector(), (std::vector<int>{1, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3}));
}

TEST_P(MeshHandle, debug_mode_says_of_which_kind_a_handle_is) {
  const Kinds kinds(device());
  const std::vector<std::uint64_t> ids = kinds.ids();
  const int line = __LINE__ + 6;
  const auto take = [](int as) {
    return kernel("take",
                  [as](Arr<const std::uint64_t> ids, Arr<int> n) {
                    n[0] = 0;
                    // This is the reported line.
                    if (as == 0) n[0] = mesh_at(ids[0]).tree.count;
                    if (as == 1) n[0] = bvh_at(ids[0]).count;
                    if (as == 2) n[0] = hash_grid_at(ids[0]).count;
                  },
                  {.debug = true});
  };
  const char* const names[] = {"a mesh", "a hierarchy of boxes", "a hash grid"};
  Array<int> n = zeros<int>(device(), 1);
  for (int as = 0; as < 3; ++as) {
    const auto taken = take(as);
    for (int of = 0; of < 3; ++of) {
      launch(taken, 1, Array<std::uint64_t>(device(), {ids[std::size_t(of)]}), n);
      if (as == of) {
        EXPECT_GT(n.at(0), 0);
        continue;
      }
      const std::string text = error_of([&] { n.to_vector(); });
      expect_contains(text, "\"take\"");
      expect_contains(text, "mesh_handle_test.cpp:" + std::to_string(line + as));
      expect_contains(
          text, std::to_string(ids[std::size_t(of)]) + " is that of " + names[of] + ", but used for " + names[as]);
    }
  }
}

TEST_P(MeshHandle, a_tape_refuses_handles_while_points_have_gradients) {
  const Array<vec3> points(device(), shapes::icosphere(1, 1).points);
  const Array<int> indices(device(), shapes::icosphere(1, 1).indices);
  Array<float> out = zeros<float>(device(), 1);
  const auto ask = kernel("ask", [](Arr<const std::uint64_t> mesh, Arr<const vec3> p, Arr<float> out) {
    Int i = tid();
    out[i] = mesh_query_point(mesh[i], p[i]).distance;
  });
  const Array<vec3> asked = Array<vec3>(device(), {vec3{3, 0.1f, 0.2f}}).requires_grad();
  {
    Mesh mesh(points, indices);
    const Array<std::uint64_t> id(device(), {mesh.id()});
    {
      // The distance has a gradient with respect to the query's point.
      Tape tape;
      tape.record([&] { launch(ask, 1, id, asked, out); });
      tape.backward(out);
      EXPECT_NEAR(asked.grad().at(0).x, 1, 0.2);
      EXPECT_NEAR(length(asked.grad().at(0)), 1, 1e-3);
      tape.zero();
    }
    {
      Tape tape;
      tape.record([&] { launch(ask, 1, id, asked, out); });
      mesh.refit();
      const std::string text = error_of([&] { tape.backward(out); });
      expect_contains(text, "\"ask\"");
      expect_contains(text, "has changed since");
    }
  }
  points.requires_grad();
  const Mesh mesh(points, indices);
  const Array<std::uint64_t> id(device(), {mesh.id()});
  Tape tape;
  const std::string text = error_of([&] { tape.record([&] { launch(ask, 1, id, asked, out); }); });
  expect_contains(text, "\"ask\"");
  expect_contains(text, "give it the Mesh itself");
}

}  // namespace
