// How captured work is given structures: within structs, by objects that launch kernels themselves, on tapes.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphStructureUses);

/// The hierarchy that kernels are given, and the place where they count its boxes.
struct Counted {
  BvhData tree;
  Array<int> found;
};
WEFT_STRUCT(Counted, tree, found);

const auto count_boxes = kernel("count boxes", [](Var<BvhData> tree, Arr<int> found) {
  for ([[maybe_unused]] auto i : bvh_query_aabb(tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) found[0] += 1;
});
const auto count_in_struct = kernel("count in a struct", [](Var<Counted> s) {
  for ([[maybe_unused]] auto i : bvh_query_aabb(s.tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) s.found[0] += 1;
});
const auto count_points_and_boxes =
    kernel("count points and boxes", [](Var<BvhData> tree, Var<HashGridArrays> grid, Arr<int> found) {
      for ([[maybe_unused]] auto i : bvh_query_aabb(tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) found[0] += 1;
      for ([[maybe_unused]] auto i : hash_grid_query(grid, Vec3(0, 0, 0), 0.25f)) found[0] += 100;
    });
const auto pull = kernel("pull", [](Var<HashGridArrays> grid, Arr<const float> x, Arr<float> loss) {
  for (auto i : hash_grid_query(grid, Vec3(0, 0, 0), 0.25f)) atomic_add(loss[0], x[i] * x[i]);
});
const auto pull_boxes = kernel("pull boxes", [](Var<BvhData> tree, Arr<const float> x, Arr<float> loss) {
  for (auto i : bvh_query_aabb(tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) atomic_add(loss[0], x[i] * x[i]);
});

TEST_P(GraphStructureUses, a_hierarchy_within_a_struct_is_asked_for_when_the_graph_runs) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh bvh(device(), ten, ten);
  Counted counted{bvh.data(), zeros<int>(device(), 1)};
  const Graph graph = capture(device(), [&] {
    counted.tree = bvh.data();
    launch(count_in_struct, 1, counted);
  });
  graph.launch();
  EXPECT_EQ(counted.found.at(0), 10);
  bvh.rebuild(thirty, thirty);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hierarchy of 10 boxes");
}

/// The kernel that the refusal of a graph's launch names.
std::string kernel_of_refusal(const Graph& graph) {
  try {
    graph.launch();
  } catch (const Error& e) {
    return e.kernel();
  }
  return "nothing was refused";
}

TEST_P(GraphStructureUses, launches_ask_for_the_structure_whose_data_they_are_given) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh asked(device(), ten, ten), given(device(), ten, ten);
  Array<int> found = zeros<int>(device(), 1), far;
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    (void)asked.data();  // given to no launch
    expect_contains(error_of([&] { launch(count_boxes, 1, asked.data(), far); }), "null array");
    launch(count_boxes, 1, given.data(), found);
    node = captured_launch();
  });
  asked.rebuild(thirty, thirty);
  graph.launch();
  EXPECT_EQ(found.at(0), 10);
  given.rebuild(thirty, thirty);
  EXPECT_EQ(kernel_of_refusal(graph), "count boxes");
  // After set(), the launch asks for the structure that it is given then, in either way.
  for (const bool by_data : {true, false}) {
    by_data ? graph.set(node, count_boxes, given.data(), found) : graph.set(node, count_boxes, given, found);
    found.fill(0);
    graph.launch();
    EXPECT_EQ(found.at(0), 30);
    given.rebuild(ten, ten);
    EXPECT_EQ(kernel_of_refusal(graph), "count boxes");
    given.rebuild(thirty, thirty);
  }
}

TEST_P(GraphStructureUses, copies_of_data_from_before_a_build_are_refused) {
  const Array<vec3> points = zeros<vec3>(device(), 10);
  HashGrid grid(device(), 4, 4, 4);
  Array<int> found = zeros<int>(device(), 1);
  const auto count = kernel("count points", [](Var<HashGridArrays> grid, Arr<int> found) {
    for ([[maybe_unused]] auto i : hash_grid_query(grid, Vec3(0, 0, 0), 0.25f)) found[0] += 1;
  });
  grid.build(points, 0.5f);
  const HashGridArrays before = grid.kernel_argument();
  grid.build(points, 8.f);
  launch(count, 1, grid.kernel_argument(), found);
  const std::string refused = error_of([&] { launch(count, 1, before, found); });
  expect_contains(refused, "in kernel \"count points\"");
  expect_contains(refused, "argument 1: a hash grid of 10 points is not what the device holds");
  EXPECT_EQ(found.at(0), 10);
  const Graph graph = capture(device(), [&] { launch(count, 1, before, found); });
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 10 points");
  // A build with the same size, width and memory makes the same data.
  grid.build(points, 0.5f);
  launch(count, 1, before, found);
  graph.launch();
  EXPECT_EQ(found.at(0), 30);
}

TEST_P(GraphStructureUses, copies_of_a_meshs_data_are_refused_while_its_indices_are_others) {
  const Array<vec3> points(device(), {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  Array<int> indices(device(), {0, 1, 2});
  Mesh mesh(points, indices);
  Array<int> hits = zeros<int>(device(), 1);
  const auto look = kernel("look up", [](Var<MeshArrays> mesh, Arr<int> hits) {
    If (mesh_query_ray(mesh, Vec3(0.2f, 0.2f, -1), Vec3(0, 0, 1), 2.f).hit) hits[0] += 1;
  });
  const MeshArrays before = mesh.kernel_argument();
  launch(look, 1, before, hits);
  indices.assign(std::vector<int>{0, 2, 1});
  const std::string refused = error_of([&] { launch(look, 1, before, hits); });
  expect_contains(refused, "in kernel \"look up\"");
  expect_contains(refused, "argument 1: a mesh of 1 triangles is not what the device holds");
  mesh.rebuild();
  launch(look, 1, before, hits);
  EXPECT_EQ(hits.at(0), 2);
}

TEST_P(GraphStructureUses, a_capture_that_fails_takes_nothing_from_data_of_before) {
  const Array<vec3> ten = zeros<vec3>(device(), 10);
  Bvh bvh(device(), ten, ten);
  const BvhData before = bvh.data();
  Array<int> found = zeros<int>(device(), 1);
  EXPECT_THROW((void)capture(device(),
                             [&] {
                               bvh.rebuild();
                               launch(count_boxes, 1, bvh.data(), found);
                               throw std::runtime_error("no more");
                             }),
               std::runtime_error);
  const Graph graph = capture(device(), [&] { launch(count_boxes, 1, before, found); });
  graph.launch();
  launch(count_boxes, 1, before, found);
  EXPECT_EQ(found.at(0), 20);
}

TEST_P(GraphStructureUses, data_of_which_an_array_is_missing_or_another_are_refused) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), other = zeros<vec3>(device(), 10);
  Bvh bvh(device(), ten, ten);
  HashGrid grid(device(), 4, 4, 4);
  grid.build(ten, 0.5f);
  Array<int> found = zeros<int>(device(), 1);
  const auto refused = [&](const std::function<void(BvhData&, HashGridArrays&)>& change) {
    BvhData tree = bvh.data();
    HashGridArrays arrays = grid.kernel_argument();
    change(tree, arrays);
    return error_of([&] { launch(count_points_and_boxes, 1, tree, arrays, found); });
  };
  expect_contains(refused([](auto& tree, auto&) { tree.nodes = {}; }), "argument 1.nodes is a null array");
  for (const auto member : {&BvhData::primitives, &BvhData::parents, &BvhData::groups, &BvhData::group_roots})
    expect_contains(refused([&](auto& tree, auto&) { tree.*member = {}; }), "argument 1");
  for (const auto member : {&BvhData::lowers, &BvhData::uppers})
    for (const Array<vec3>& now : {Array<vec3>(), other})
      expect_contains(refused([&](auto& tree, auto&) { tree.*member = now; }), "argument 1");
  expect_contains(refused([](auto&, auto& grid) { grid.begins = {}; }), "argument 2.begins is a null array");
  expect_contains(refused([](auto&, auto& grid) { grid.points = {}; }), "argument 2");
  expect_contains(refused([&](auto&, auto& grid) { grid.positions = other; }), "exchanged for another");
  EXPECT_EQ(found.at(0), 0);
}

TEST_P(GraphStructureUses, members_of_data_are_arrays_as_others) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), far = full<vec3>(device(), 10, vec3(50, 50, 50));
  Bvh bvh(device(), ten, ten);
  Array<int> found = zeros<int>(device(), 1);
  const auto count_nodes =
      kernel("count nodes", [](Arr<const BvhNode> nodes, Arr<int> found) { found[0] += nodes.shape(0); });
  const Graph graph = capture(device(), [&] { launch(count_nodes, 1, bvh.data().nodes, found); });
  bvh.refit(far, far);
  graph.launch();
  EXPECT_EQ(found.at(0), 9);
}

TEST_P(GraphStructureUses, data_that_no_launch_is_given_are_not_asked_for) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), far = full<vec3>(device(), 10, vec3(50, 50, 50));
  Bvh bvh(device(), ten, ten);
  HashGrid grid(device(), 4, 4, 4);
  grid.build(ten, 0.5f);
  Array<int> flag = full<int>(device(), 1, 0);
  const Graph graph = capture(device(), [&] {
    (void)bvh.data();
    (void)grid.kernel_argument();
    flag.fill(1);
  });
  bvh.rebuild(far.slice(0, 5), far.slice(0, 5));
  grid.build(far.slice(0, 5), 1.f);
  graph.launch();
  EXPECT_EQ(flag.at(0), 1);
}

/// An object that builds its grid when it is asked for it, and counts the builds by a kernel of its own.
struct BuiltWhenAsked {
  const HashGridArrays& kernel_argument() const {
    grid.build(points, 0.5f);
    launch(count_boxes, 1, other, asked);
    return grid.kernel_argument();
  }
  mutable HashGrid grid;
  Array<vec3> points;
  Bvh other;
  Array<int> asked;
};

TEST_P(GraphStructureUses, an_argument_that_launches_kernels_takes_nothing_from_the_launch) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh bvh(device(), ten, ten);
  const BuiltWhenAsked grid{HashGrid(device(), 4, 4, 4), thirty, Bvh(device(), ten, ten), zeros<int>(device(), 1)};
  Array<int> found = zeros<int>(device(), 1);
  const Graph graph = capture(device(), [&] { launch(count_points_and_boxes, 1, bvh, grid, found); });
  graph.launch();
  EXPECT_EQ(found.at(0), 3010);
  EXPECT_EQ(grid.asked.at(0), 10);
  bvh.rebuild(thirty, thirty);
  try {
    graph.launch();
    ADD_FAILURE() << "the launch was given 10 boxes";
  } catch (const Error& e) {
    EXPECT_EQ(e.kernel(), "count points and boxes");
  }
}

TEST_P(GraphStructureUses, a_captured_way_back_asks_for_all_grids_that_the_tape_was_given) {
  const Array<vec3> points = zeros<vec3>(device(), 40);
  HashGrid grid(device(), 4, 4, 4);
  const Array<float> x = full<float>(device(), 40, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  const auto record = [&](Tape& tape, const std::vector<int>& sizes) {
    tape.record([&] {
      for (const int n : sizes) {
        grid.build(points.slice(0, n), 0.5f);
        launch(pull, 1, grid, x, loss);
      }
    });
    return capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
  };
  Tape one, two;
  const Graph refused = record(one, {40, 10});
  expect_contains(error_of([&] { refused.launch(); }), "a graph works on a hash grid of 40 points");
  const Graph graph = record(two, {10, 10});
  graph.launch();
  EXPECT_EQ(x.grad().at(9), 12);  // from both launches
  EXPECT_EQ(x.grad().at(39), 0);
  grid.build(points, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 10 points");
}

TEST_P(GraphStructureUses, a_captured_way_back_asks_for_data_that_the_tape_recorded) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh bvh(device(), ten, ten), other(device(), ten, ten);
  const Array<float> x = full<float>(device(), 30, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  Array<int> found = zeros<int>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(pull_boxes, 1, bvh.data(), x, loss);
    launch(count_boxes, 1, other.data(), found);  // no gradient passes through it
  });
  const Graph graph = capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
  other.rebuild(thirty, thirty);
  graph.launch();
  EXPECT_EQ(x.grad().at(9), 6);
  bvh.rebuild(thirty, thirty);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hierarchy of 10 boxes");
}

// One graph has the tape's recording, and another its way back.
TEST_P(GraphStructureUses, a_way_back_in_another_graph_asks_for_what_the_first_has_built) {
  const Array<vec3> forty = zeros<vec3>(device(), 40), ten = zeros<vec3>(device(), 10);
  for (const bool by_data : {false, true}) {
    HashGrid grid(device(), 4, 4, 4);
    const Array<float> x = full<float>(device(), 40, 3).requires_grad();
    const Array<float> loss = zeros<float>(device(), 1).requires_grad();
    Tape tape;
    const Graph there = capture(device(), [&] {
      grid.build(forty, 0.5f);
      tape.record([&] { by_data ? launch(pull, 1, grid.kernel_argument(), x, loss) : launch(pull, 1, grid, x, loss); });
    });
    const Graph back = capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
    expect_contains(error_of([&] { back.launch(); }), "a graph works on a hash grid of 40 points");
    there.launch();
    back.launch();
    EXPECT_EQ(x.grad().at(39), 6);
    grid.build(ten, 0.5f);
    expect_contains(error_of([&] { back.launch(); }), "a graph works on a hash grid of 40 points");
  }
}

}  // namespace
