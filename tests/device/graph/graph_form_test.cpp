// Graphs and structures that are built for another number of points or boxes than they were captured with.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <functional>
#include <optional>
#include <thread>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphForms);

/// How many are found, and one more than the highest number of them.
template <class Query>
void tally(Query query, const Arr<int>& found) {
  Int count = 0, end = 0;
  for (auto i : query) {
    count += 1;
    end = max(end, i + 1);
  }
  found[0] = count;
  found[1] = end;
}
const auto count_points = kernel("count points", [](Var<HashGridArrays> grid, Arr<int> found) {
  tally(hash_grid_query(grid, Vec3(0, 0, 0), 0.25f), found);
});
const auto count_points_by_id = kernel("count points by id", [](Arr<const std::uint64_t> id, Arr<int> found) {
  tally(hash_grid_query(id[0], Vec3(0, 0, 0), 0.25f), found);
});
const auto count_boxes = kernel("count boxes", [](Var<BvhData> bvh, Arr<int> found) {
  tally(bvh_query_aabb(bvh, Vec3(-9, -9, -9), Vec3(9, 9, 9)), found);
});
const auto count_boxes_by_id = kernel("count boxes by id", [](Arr<const std::uint64_t> id, Arr<int> found) {
  tally(bvh_query_aabb(id[0], Vec3(-9, -9, -9), Vec3(9, 9, 9)), found);
});

using Counts = std::vector<int>;
Counts all_of(int n) { return {n, n}; }

/// Two sets of points around the origin, in a grid that sees all of them.
struct Points {
  explicit Points(const Device& device)
      : device(device), many(zeros<vec3>(device, 100)), few(zeros<vec3>(device, 20)), grid(device, 4, 4, 4) {}
  Counts count() const {
    Array<int> found = zeros<int>(device, 2);
    launch(count_points, 1, grid, found);
    return found.to_vector();
  }
  Counts count_by_id() const {
    Array<int> found = zeros<int>(device, 2);
    launch(count_points_by_id, 1, Array<std::uint64_t>(device, {grid.id()}), found);
    return found.to_vector();
  }
  const Device device;
  const Array<vec3> many, few;
  HashGrid grid;
};

const std::string kNotThere = "is not what the device holds";

TEST_P(GraphForms, a_hash_grid_that_a_graph_has_built_otherwise_is_refused_until_it_is_built) {
  for (const bool grows : {false, true}) {
    Points p(device());
    const Array<vec3>& captured = grows ? p.few : p.many;
    const Array<vec3>& outside = grows ? p.many : p.few;
    p.grid.build(outside, 0.125f);
    const Graph graph = capture(device(), [&] { p.grid.build(captured, 0.5f); });
    EXPECT_EQ(p.count_by_id(), all_of(int(outside.size()))) << "nothing has run";
    expect_contains(error_of([&] { p.count(); }), kNotThere);
    graph.launch();
    for (int k = 0; k < 2; ++k) {
      EXPECT_EQ(p.count(), all_of(int(captured.size())));
      EXPECT_EQ(p.count_by_id(), all_of(int(captured.size())));
      p.grid.build(outside, 0.125f);
      EXPECT_EQ(p.count(), all_of(int(outside.size())));
      EXPECT_EQ(p.count_by_id(), all_of(int(outside.size())));
      graph.launch();
      const std::string error = error_of([&] { p.count(); });
      expect_contains(
          error, "argument 1: a hash grid of " + std::to_string(outside.size()) + " points in cells of width 0.125");
      expect_contains(error, kNotThere);
      expect_contains(error, "\"count points\"");
      EXPECT_EQ(p.count_by_id(), all_of(int(captured.size())));
      p.grid.build(captured, 0.5f);
    }
  }
}

TEST_P(GraphForms, a_build_that_is_captured_and_never_run_leaves_what_the_device_holds) {
  Points p(device());
  p.grid.build(p.few, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  const Graph asks = capture(device(), [&] { launch(count_points, 1, p.grid, found); });
  capture(device(), [&] { p.grid.build(p.many, 0.5f); });
  expect_contains(error_of([&] { p.count(); }), kNotThere);
  asks.launch();
  EXPECT_EQ(found.to_vector(), all_of(20));
  // Captured after it, with what the other one would have built.
  const Graph later = capture(device(), [&] { launch(count_points, 1, p.grid, found); });
  expect_contains(error_of([&] { later.launch(); }), "a graph works on a hash grid of 100 points");
  p.grid.build(p.many, 0.5f);
  later.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
}

TEST_P(GraphForms, graphs_that_build_one_hash_grid_take_turns) {
  for (const bool grows : {false, true}) {
    Points p(device());
    Array<int> found = zeros<int>(device(), 2);
    const auto step = [&](const Array<vec3>& points) {
      return capture(device(), [&] {
        p.grid.build(points, 0.5f);
        launch(count_points, 1, p.grid, found);
      });
    };
    const Array<vec3>&first = grows ? p.few : p.many, &second = grows ? p.many : p.few;
    const Graph one = step(first), other = step(second);
    for (int k = 0; k < 3; ++k) {
      one.launch();
      EXPECT_EQ(found.to_vector(), all_of(int(first.size())));
      expect_contains(error_of([&] { p.count(); }), kNotThere);
      other.launch();
      EXPECT_EQ(found.to_vector(), all_of(int(second.size())));
      EXPECT_EQ(p.count(), all_of(int(second.size())));
    }
  }
}

TEST_P(GraphForms, graphs_that_build_one_hash_grid_may_be_launched_by_several_threads) {
  Points p(device());
  const Array<std::uint64_t> id(device(), {p.grid.id()});
  const Graph many = capture(device(), [&] { p.grid.build(p.many, 0.5f); });
  const Graph few = capture(device(), [&] { p.grid.build(p.few, 0.5f); });
  for (int round = 0; round < (on_reference() ? 100 : 30); ++round) {
    std::thread other([&] { many.launch(); });
    few.launch();
    other.join();
    const Counts there = p.count_by_id();
    // The host says that there are few.
    if (there == all_of(20))
      EXPECT_EQ(p.count(), there);
    else
      expect_contains(error_of([&] { p.count(); }), kNotThere);
  }
}

TEST_P(GraphForms, a_hierarchy_that_a_graph_has_built_otherwise_is_refused_until_it_is_built) {
  const Array<vec3> many = zeros<vec3>(device(), 90), few = zeros<vec3>(device(), 30);
  Bvh bvh(device(), few, few);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] { bvh.rebuild(many, many); });
  graph.launch();
  for (int k = 0; k < 2; ++k) {
    launch(count_boxes, 1, bvh, found);
    EXPECT_EQ(found.to_vector(), all_of(90));
    bvh.rebuild(few, few);
    launch(count_boxes, 1, bvh, found);
    EXPECT_EQ(found.to_vector(), all_of(30));
    graph.launch();
    expect_contains(error_of([&] { launch(count_boxes, 1, bvh, found); }), "a hierarchy of 30 boxes " + kNotThere);
    const Graph again = capture(device(), [&] { bvh.rebuild(many, many); });
    again.launch();
  }
}

TEST_P(GraphForms, refits_are_of_the_hierarchy_that_the_device_holds) {
  const Array<vec3> many = zeros<vec3>(device(), 90), few = zeros<vec3>(device(), 30);
  const Array<vec3> there = full<vec3>(device(), 90, vec3(50, 50, 50));
  Bvh bvh(device(), few, few);
  const Array<std::uint64_t> id(device(), {bvh.id()});
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] { bvh.rebuild(many, many); });
  expect_contains(error_of([&] { bvh.refit(); }), "a hierarchy of 90 boxes " + kNotThere);
  graph.launch();
  bvh.refit();
  launch(count_boxes, 1, bvh, found);
  EXPECT_EQ(found.to_vector(), all_of(90));
  // Found by its handle as the last refit has left it.
  const Graph again = capture(device(), [&] {
    bvh.refit();
    launch(count_boxes_by_id, 1, id, found);
  });
  for (int k = 0; k < 2; ++k) {
    again.launch();
    EXPECT_EQ(found.to_vector(), all_of(90));
    bvh.refit(there, there);
    launch(count_boxes_by_id, 1, id, found);
    EXPECT_EQ(found.to_vector(), all_of(0));
  }
}

TEST_P(GraphForms, conditions_may_build_and_ask) {
  Points p(device());
  const Array<vec3> here = zeros<vec3>(device(), 90), there = full<vec3>(device(), 90, vec3(50, 50, 50));
  Bvh bvh(device(), here, here);
  HashGrid grid(device(), 4, 4, 4);
  Array<int> flag = full<int>(device(), 1, 1), points = zeros<int>(device(), 2), boxes = zeros<int>(device(), 2),
             none = zeros<int>(device(), 2);
  const auto stop = kernel("stop", [](Arr<int> flag) { flag[0] = 0; });
  const Graph graph = capture(device(), [&] {
    graph_while(flag, 3, [&] {
      grid.build(p.many, 0.5f);
      launch(count_points, 1, grid, points);
      bvh.refit(there, there);
      launch(count_boxes, 1, bvh, none);
      bvh.refit(here, here);
      launch(count_boxes, 1, bvh, boxes);
      launch(stop, 1, flag);
    });
  });
  for (int k = 0; k < 2; ++k) {
    flag.fill(1);
    for (Array<int>* found : {&points, &boxes, &none}) found->fill(-1);
    graph.launch();
    EXPECT_EQ(points.to_vector(), all_of(100));
    EXPECT_EQ(boxes.to_vector(), all_of(90));
    EXPECT_EQ(none.to_vector(), all_of(0));
    launch(count_boxes, 1, bvh, boxes);
    EXPECT_EQ(boxes.to_vector(), all_of(90));
    grid.build(p.few, 0.5f);  // the graph builds before it asks
  }
}

TEST_P(GraphForms, a_captured_way_back_needs_the_structures_of_its_launches) {
  const auto pull = kernel("pull", [](Var<HashGridArrays> grid, Arr<const float> x, Arr<float> loss) {
    for (auto i : hash_grid_query(grid, Vec3(0, 0, 0), 0.25f)) atomic_add(loss[0], x[i] * x[i]);
  });
  Points p(device());
  p.grid.build(p.few, 0.5f);
  const Array<float> x = full<float>(device(), 20, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  Tape tape;
  tape.record([&] { launch(pull, 1, p.grid, x, loss); });
  const Graph graph = capture(device(), [&] { tape.backward({{loss, full<float>(device(), 1, 1)}}); });
  graph.launch();
  EXPECT_EQ(x.grad().at(19), 6);
  p.grid.build(zeros<vec3>(device(), 5000), 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 20 points");
}

TEST_P(GraphForms, captured_refits_go_on_with_other_boxes) {
  const Array<vec3> here = zeros<vec3>(device(), 90), there = full<vec3>(device(), 90, vec3(50, 50, 50));
  for (const int leaf_size : {1, 4}) {
    Bvh bvh(device(), here, here, {.leaf_size = leaf_size});
    Array<int> found = zeros<int>(device(), 2);
    const Graph away = capture(device(), [&] { bvh.refit(there, there); });
    const Graph asks = capture(device(), [&] {
      bvh.refit(here, here);
      launch(count_boxes, 1, bvh, found);
    });
    for (int k = 0; k < 3; ++k) {
      away.launch();
      asks.launch();
      EXPECT_EQ(found.to_vector(), all_of(90));
      bvh.refit(there, there);
      launch(count_boxes, 1, bvh, found);
      EXPECT_EQ(found.to_vector(), all_of(0));
    }
  }
}

TEST_P(GraphForms, a_graph_refuses_a_hash_grid_that_was_built_otherwise_since) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] { launch(count_points, 1, p.grid, found); });
  const auto expect_refusal = [&] {
    const std::string error = error_of([&] { graph.launch(); });
    expect_contains(
        error, "a graph works on a hash grid of 100 points in cells of width 0.5, and the device holds another one");
    expect_contains(error, "\"count points\"");
    expect_contains(error, "graph_form_test.cpp:");
  };
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  p.grid.build(p.few, 0.5f);
  expect_refusal();
  p.grid.build(p.many, 0.25f);
  expect_refusal();
  p.grid.build(p.many, 0.5f, zeros<int>(device(), 100));
  expect_refusal();
  p.grid.build(p.many, 0.5f);
  found.fill(-1);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100)) << "built so again";
  p.grid.build(zeros<vec3>(device(), 5000), 0.5f);
  expect_refusal();
  p.grid.build(p.many, 0.5f);
  expect_refusal();  // it has other memory since
}

TEST_P(GraphForms, a_graph_refuses_a_hierarchy_that_was_built_otherwise_since) {
  const Array<vec3> many = zeros<vec3>(device(), 90), few = zeros<vec3>(device(), 30);
  Bvh bvh(device(), many, many);
  Array<int> found = zeros<int>(device(), 2);
  const Graph asks = capture(device(), [&] { launch(count_boxes, 1, bvh, found); });
  const Graph refits = capture(device(), [&] { bvh.refit(); });
  for (const Graph* graph : {&asks, &refits}) graph->launch();
  const Array<vec3> there = full<vec3>(device(), 90, vec3(50, 50, 50));
  bvh.refit(there, there);
  expect_contains(error_of([&] { asks.launch(); }), "a graph works on a hierarchy of 90 boxes");
  refits.launch();  // to the boxes that it was captured with
  asks.launch();
  EXPECT_EQ(found.to_vector(), all_of(90));
  expect_contains(error_of([&] { launch(count_boxes, 1, bvh, found); }), "a hierarchy of 90 boxes " + kNotThere);
  bvh.refit(many, many);
  launch(count_boxes, 1, bvh, found);
  EXPECT_EQ(found.to_vector(), all_of(90));
  bvh.rebuild(few, few);
  for (const Graph* graph : {&asks, &refits})
    expect_contains(error_of([&] { graph->launch(); }),
                    "a graph works on a hierarchy of 90 boxes, and the device holds another one");
  expect_contains(error_of([&] { asks.launch(); }), "\"count boxes\"");
  launch(count_boxes, 1, bvh, found);
  EXPECT_EQ(found.to_vector(), all_of(30));
}

TEST_P(GraphForms, a_graph_that_builds_behind_its_use_finds_what_it_was_captured_with) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] {
    launch(count_points, 1, p.grid, found);
    p.grid.build(p.few, 0.5f);
  });
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  EXPECT_EQ(p.count(), all_of(20));
  found.fill(-1);
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 100 points");
  EXPECT_EQ(found.at(0), -1) << "nothing of it has run";
  p.grid.build(p.few, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 100 points");
  p.grid.build(p.many, 0.5f);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  expect_contains(error_of([&] { p.count(); }), kNotThere);
}

TEST_P(GraphForms, conditions_build_a_structure_as_it_is) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  const Array<vec3> boxes = zeros<vec3>(device(), 10);
  Bvh bvh(device(), boxes, boxes);
  Array<int> flag = full<int>(device(), 1, 1), found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] {
    const auto refused = [&](const std::function<void()>& work) { return error_of([&] { graph_if(flag, work); }); };
    expect_contains(refused([&] { p.grid.build(p.few, 0.5f); }),
                    "a hash grid of 100 points in cells of width 0.5 is made a hash grid of 20 points in cells of "
                    "width 0.5 in a condition of a graph");
    expect_contains(refused([&] { bvh.rebuild(p.few, p.few); }),
                    "a hierarchy of 10 boxes is made a hierarchy of 20 boxes in a condition");
    graph_if(flag, [&] { p.grid.build(p.many, 0.5f); });
    launch(count_points, 1, p.grid, found);
  });
  EXPECT_EQ(p.grid.size(), 100);
  EXPECT_EQ(bvh.size(), 10);
  for (const int runs : {1, 0}) {
    flag.fill(runs);
    found.fill(-1);
    graph.launch();
    EXPECT_EQ(found.to_vector(), all_of(100));
  }
  bvh.refit();
  p.grid.build(p.few, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 100 points");

  // One that was not built before has no points until it is.
  HashGrid fresh(device(), 4, 4, 4);
  flag.fill(0);
  const Graph first = capture(device(), [&] {
    graph_if(flag, [&] { fresh.build(p.few, 0.5f); });
    launch(count_points, 1, fresh, found);
  });
  for (const int runs : {0, 1}) {
    flag.fill(runs);
    first.launch();
    EXPECT_EQ(found.to_vector(), all_of(20 * runs));
  }
  // Nor has one that a condition constructs.
  std::optional<Bvh> constructed;
  const Graph second = capture(device(), [&] {
    graph_if(flag, [&] { constructed.emplace(device(), p.few, p.few); });
    launch(count_boxes, 1, *constructed, found);
  });
  expect_contains(error_of([&] { launch(count_boxes, 1, *constructed, found); }), kNotThere);
  for (const int runs : {0, 1}) {
    flag.fill(runs);
    second.launch();
    EXPECT_EQ(found.to_vector(), all_of(20 * runs));
  }
}

TEST_P(GraphForms, a_hierarchy_of_nothing_stays_what_it_is) {
  const Array<vec3> none = zeros<vec3>(device(), 0);
  Bvh bvh(device(), none, none);
  Array<int> found = full<int>(device(), 2, -1), flag = full<int>(device(), 1, 1);
  const Graph asks = capture(device(), [&] { launch(count_boxes, 1, bvh, found); });
  const Graph refits = capture(device(), [&] { graph_if(flag, [&] { bvh.refit(); }); });
  for (int k = 0; k < 2; ++k) {
    bvh.refit();
    bvh.rebuild();
    asks.launch();
    EXPECT_EQ(found.to_vector(), all_of(0));
    refits.launch();
    launch(count_boxes, 1, bvh, found);
  }
}

TEST_P(GraphForms, arguments_are_set_with_structures_as_the_graph_makes_them) {
  Points p(device());
  HashGrid other(device(), 4, 4, 4);
  p.grid.build(p.many, 0.5f);
  other.build(p.few, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    p.grid.build(p.many, 0.5f);
    launch(count_points, 1, p.grid, found);
    node = captured_launch();
  });
  graph.set(node, count_points, other, found);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(20));
  other.build(p.many, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 20 points");
  p.grid.build(p.few, 0.5f);
  const std::string error = error_of([&] { graph.set(node, count_points, p.grid, found); });
  expect_contains(error,
                  "set with a hash grid of 20 points in cells of width 0.5, which the graph makes a hash grid of 100");
  expect_contains(error, "\"count points\"");
  graph.set(node, count_points, other, found);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  p.grid.build(p.many, 0.5f);
  graph.set(node, count_points, p.grid, found);
  p.grid.build(p.few, 0.5f);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100)) << "it builds the grid itself";
}

TEST_P(GraphForms, set_counts_what_conditions_make) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2), flag = full<int>(device(), 1, 1);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    graph_if(flag, [&] { p.grid.build(p.many, 0.5f); });
    launch(count_points, 1, p.grid, found);
    node = captured_launch();
  });
  p.grid.build(p.few, 0.5f);
  expect_contains(error_of([&] { graph.set(node, count_points, p.grid, found); }),
                  "which the graph makes a hash grid of 100 points");
  p.grid.build(p.many, 0.5f);
  graph.set(node, count_points, p.grid, found);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
}

TEST_P(GraphForms, set_gives_a_launch_the_structure_as_it_is) {
  Points p(device());
  HashGrid other(device(), 4, 4, 4);
  other.build(p.many, 0.5f);
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(count_points, 1, p.grid, found);
    node = captured_launch();
    p.grid.build(p.few, 0.5f);
  });
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 100 points");
  graph.set(node, count_points, p.grid, found);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(20));
  graph.set(node, count_points, other, found);
  p.grid.build(p.many, 0.5f);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  // What is set for one graph is no use by another that is captured meanwhile.
  const Graph meanwhile = capture(device(), [&] {
    graph.set(node, count_points, other, found);
    launch(count_boxes, 1, Bvh(device(), p.few, p.few), found);
  });
  other.build(p.few, 0.5f);
  meanwhile.launch();
}

TEST_P(GraphForms, launches_that_are_refused_or_over_no_threads_use_no_structure) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2), far, none = zeros<int>(device(), 0);
  const Graph graph = capture(device(), [&] {
    launch(count_points, 0, p.grid, found);
    expect_contains(error_of([&] { launch(count_points, 1, p.grid, far); }), "null array");
    expect_contains(error_of([&] { launch(count_points, 1, p.grid, none); }), "empty array");
    expect_contains(error_of([&] { launch(count_points, 1, HashGrid(device(), 4, 4, 4), found); }),
                    "before it was built");
    found.fill(7);
  });
  p.grid.build(p.few, 0.5f);
  graph.launch();
  EXPECT_EQ(found.at(0), 7);
}

TEST_P(GraphForms, a_graph_refuses_a_structure_that_was_built_otherwise_before_it_went) {
  Points p(device());
  Array<int> found = zeros<int>(device(), 2);
  std::optional<HashGrid> grid(std::in_place, device(), 4, 4, 4);
  grid->build(p.few, 0.5f);
  const Graph graph = capture(device(), [&] { launch(count_points, 1, *grid, found); });
  grid->build(p.many, 0.5f);
  grid.reset();
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 20 points");
}

TEST_P(GraphForms, a_graph_goes_on_with_a_structure_that_is_gone) {
  Array<int> found = zeros<int>(device(), 2);
  const Array<vec3> points = zeros<vec3>(device(), 30);
  Graph graph;
  {
    HashGrid grid(device(), 4, 4, 4);
    Bvh bvh(device(), points, points);
    grid.build(points, 0.5f);
    graph = capture(device(), [&] {
      launch(count_boxes, 1, bvh, found);
      bvh.rebuild();
      grid.build(points, 0.5f);
      launch(count_points, 1, grid, found);
    });
  }
  for (int k = 0; k < 2; ++k) {
    found.fill(-1);
    graph.launch();
    EXPECT_EQ(found.to_vector(), all_of(30));
  }
}

}  // namespace
