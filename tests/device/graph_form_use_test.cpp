// How captured work is given structures: within structs, by objects that launch kernels themselves, on tapes.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <string>

#include "device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphFormUses);

/// Of which kernels are given the hierarchy, and where to count its boxes.
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

TEST_P(GraphFormUses, a_hierarchy_within_a_struct_is_asked_for_when_the_graph_runs) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh bvh(device(), ten, ten);
  Counted counted{{}, zeros<int>(device(), 1)};
  const Graph graph = capture(device(), [&] {
    counted.tree = bvh.data();
    launch(count_in_struct, 1, counted);
  });
  graph.launch();
  EXPECT_EQ(counted.found.at(0), 10);
  bvh.rebuild(thirty, thirty);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hierarchy of 10 boxes");
}

TEST_P(GraphFormUses, who_asks_for_data_and_gives_them_to_no_launch_blames_no_kernel) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh asked(device(), ten, ten), given(device(), ten, ten);
  Array<int> found = zeros<int>(device(), 1);
  const auto kernel_of_refusal = [&](Bvh& changed) -> std::string {
    const Graph graph = capture(device(), [&] {
      (void)asked.data();
      launch(count_boxes, 1, given, found);
    });
    changed.rebuild(thirty, thirty);
    try {
      graph.launch();
    } catch (const Error& e) {
      return e.kernel();
    }
    return "nothing was refused";
  };
  EXPECT_EQ(kernel_of_refusal(asked), "");
  EXPECT_EQ(kernel_of_refusal(given), "count boxes");
}

/// Builds its grid where it is asked for, and tells by a kernel of its own how often.
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

TEST_P(GraphFormUses, an_argument_that_launches_kernels_takes_nothing_from_the_launch) {
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

TEST_P(GraphFormUses, a_captured_way_back_asks_for_no_grid_of_which_the_tape_has_copies) {
  const Array<vec3> points = zeros<vec3>(device(), 40);
  HashGrid grid(device(), 4, 4, 4);
  const Array<float> x = full<float>(device(), 40, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  Tape tape;
  tape.record([&] {
    for (const int n : {40, 10}) {
      grid.build(points.slice(0, n), 0.5f);
      launch(pull, 1, grid, x, loss);
    }
  });
  const Graph graph = capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
  graph.launch();
  EXPECT_EQ(x.grad().at(9), 12);  // of both launches
  EXPECT_EQ(x.grad().at(39), 6);
  // The last one is read where it lies.
  grid.build(points, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 10 points");
}

TEST_P(GraphFormUses, a_captured_way_back_asks_for_data_that_were_taken_while_the_tape_recorded) {
  const Array<vec3> ten = zeros<vec3>(device(), 10), thirty = zeros<vec3>(device(), 30);
  Bvh bvh(device(), ten, ten);
  const Array<float> x = full<float>(device(), 30, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  Tape tape;
  tape.record([&] {
    const BvhData tree = bvh.data();
    launch(pull_boxes, 1, tree, x, loss);
  });
  const Graph graph = capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
  graph.launch();
  EXPECT_EQ(x.grad().at(9), 6);
  bvh.rebuild(thirty, thirty);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hierarchy of 10 boxes");
}

TEST_P(GraphFormUses, what_a_condition_builds_first_is_what_the_loop_around_it_leaves) {
  const Array<vec3> points = zeros<vec3>(device(), 40);
  HashGrid grid(device(), 4, 4, 4);
  const Array<int> flag = full<int>(device(), 1, 1);
  const auto loop = [&](int behind) {
    return capture(device(), [&] {
      graph_while(flag, 2, [&] {
        graph_if(flag, [&] { grid.build(points, 0.5f); });
        grid.build(points.slice(0, behind), 0.5f);
      });
    });
  };
  expect_contains(error_of([&] { (void)loop(10); }),
                  "a hash grid of 40 points in cells of width 0.5 is made in a condition inside of graph_while()");
  EXPECT_FALSE(loop(40).is_null());
}

}  // namespace
