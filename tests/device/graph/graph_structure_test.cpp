// Graphs that build and query structures: with the size and memory that these had, or not at all.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphStructures);

/// Finds the number of results of a query, and one more than the largest of them.
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

TEST_P(GraphStructures, are_built_in_a_capture_in_the_size_and_memory_that_they_have) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  const Array<vec3> boxes = zeros<vec3>(device(), 100);
  Bvh bvh(device(), boxes, boxes);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] {
    const std::function<void()> builds[] = {[&] { p.grid.build(p.few, 0.5f); }, [&] { p.grid.build(p.many, 0.25f); },
                                            [&] { p.grid.build(p.many, 0.5f, zeros<int>(device(), 100)); },
                                            [&] { p.grid.build(zeros<vec3>(device(), 5000), 0.5f); }};
    for (const auto& build : builds)
      expect_contains(error_of(build), "a hash grid of 100 points in cells of width 0.5 is built for ");
    expect_contains(error_of([&] { p.grid.build(p.few, 0.5f); }), "while a graph is captured");
    const std::function<void()> changes[] = {[&] { bvh.rebuild(p.few, p.few); }, [&] { bvh.rebuild(p.many, p.many); },
                                             [&] { bvh.refit(p.many, boxes); },
                                             [&] { bvh.rebuild(boxes, boxes, zeros<int>(device(), 100)); }};
    for (const auto& change : changes)
      expect_contains(error_of(change), "a hierarchy of 100 boxes is built or refitted with ");
    expect_contains(error_of([&] { Bvh(device(), boxes, boxes); }),
                    "a hierarchy of boxes is made while a graph is captured: make it before");
    p.grid.build(p.many, 0.5f);
    bvh.rebuild();
    bvh.refit();
    launch(count_points, 1, p.grid, found);
    launch(count_boxes, 1, bvh, found);
  });
  EXPECT_EQ(p.grid.size(), 100);
  EXPECT_EQ(bvh.size(), 100);
  EXPECT_EQ(p.count(), all_of(100)) << "captured builds take nothing away";
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  EXPECT_EQ(p.count(), all_of(100));
  EXPECT_EQ(p.count_by_id(), all_of(100));
}

TEST_P(GraphStructures, a_hash_grid_may_be_built_for_the_first_time_in_a_capture) {
  Points p(device());
  p.grid.reserve(100);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] {
    p.grid.build(p.few, 0.5f);
    launch(count_points, 1, p.grid, found);
  });
  expect_contains(error_of([&] { p.count(); }), "a hash grid of 20 points " + kNotThere);
  EXPECT_EQ(p.count_by_id(), Counts({0, 0})) << "nothing has run";
  const Graph asks = capture(device(), [&] { launch(count_points, 1, p.grid, found); });
  expect_contains(error_of([&] { asks.launch(); }), "of which the device holds nothing that may be asked");
  for (const Graph* g : {&graph, &asks}) {
    found.fill(-1);
    g->launch();
    EXPECT_EQ(found.to_vector(), all_of(20));
    EXPECT_EQ(p.count(), all_of(20));
    EXPECT_EQ(p.count_by_id(), all_of(20));
  }
  p.grid.build(p.many, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 20 points, and the device holds");
  EXPECT_EQ(p.count(), all_of(100));
  p.grid.build(p.few, 0.5f);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(20));
}

TEST_P(GraphStructures, a_first_build_that_fails_or_never_runs_leaves_a_grid_that_may_be_built) {
  Points p(device());
  EXPECT_THROW((void)capture(device(),
                             [&] {
                               p.grid.build(p.few, 0.5f);
                               throw std::runtime_error("no more");
                             }),
               std::runtime_error);
  expect_contains(error_of([&] { p.count(); }), kNotThere);
  capture(device(), [&] { p.grid.build(p.many, 0.5f); });
  expect_contains(error_of([&] { p.count(); }), kNotThere);
  p.grid.build(p.many, 0.25f);
  EXPECT_EQ(p.count(), all_of(100));
}

TEST_P(GraphStructures, graphs_that_build_one_hash_grid_may_be_launched_by_several_threads) {
  Points p(device());
  const Array<std::uint64_t> id(device(), {p.grid.id()});
  const auto build = [&] { p.grid.build(p.many, 0.5f); };
  const Graph one = capture(device(), build), two = capture(device(), build);
  for (int round = 0; round < (on_reference() ? 100 : 30); ++round) {
    std::thread other([&] { one.launch(); });
    two.launch();
    other.join();
    EXPECT_EQ(p.count_by_id(), all_of(100));
    EXPECT_EQ(p.count(), all_of(100));
  }
}

TEST_P(GraphStructures, conditions_may_build_and_ask) {
  Points p(device());
  const Array<vec3> boxes = zeros<vec3>(device(), 90);
  Bvh bvh(device(), boxes, boxes);
  p.grid.build(p.many, 0.5f);
  HashGrid fresh(device(), 4, 4, 4);
  Array<int> flag = full<int>(device(), 1, 1), points = zeros<int>(device(), 2), found = zeros<int>(device(), 2);
  const auto stop = kernel("stop", [](Arr<int> flag) { flag[0] = 0; });
  expect_contains(
      error_of([&] { (void)capture(device(), [&] { graph_if(flag, [&] { fresh.build(p.few, 0.5f); }); }); }),
      "a hash grid of 20 points is built for the first time in a condition of a graph");
  const Graph graph = capture(device(), [&] {
    graph_while(flag, 3, [&] {
      p.grid.build(p.many, 0.5f);
      launch(count_points, 1, p.grid, points);
      bvh.refit();
      launch(count_boxes, 1, bvh, found);
      launch(stop, 1, flag);
    });
  });
  for (int k = 0; k < 2; ++k) {
    flag.fill(1);
    points.fill(-1);
    found.fill(-1);
    graph.launch();
    EXPECT_EQ(points.to_vector(), all_of(100));
    EXPECT_EQ(found.to_vector(), all_of(90));
    launch(count_boxes, 1, bvh, found);
    EXPECT_EQ(found.to_vector(), all_of(90));
  }
  p.grid.build(p.few, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a graph works on a hash grid of 100 points");
  fresh.build(p.few, 0.5f);
}

TEST_P(GraphStructures, a_captured_way_back_needs_the_structures_of_its_launches) {
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

TEST_P(GraphStructures, a_graph_refuses_a_hash_grid_that_was_built_otherwise_since) {
  Points p(device());
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] { launch(count_points, 1, p.grid, found); });
  const auto expect_refusal = [&] {
    const std::string error = error_of([&] { graph.launch(); });
    expect_contains(error, "a graph works on a hash grid of 100 points, and the device holds another one");
    expect_contains(error, "\"count points\"");
    expect_contains(error, "graph_structure_test.cpp:");
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
  expect_refusal();  // the grid has other memory by now
}

TEST_P(GraphStructures, a_graph_refuses_a_hierarchy_that_was_built_otherwise_since) {
  const Array<vec3> many = zeros<vec3>(device(), 90), few = zeros<vec3>(device(), 30);
  Bvh bvh(device(), many, many);
  Array<int> found = zeros<int>(device(), 2);
  const Graph asks = capture(device(), [&] { launch(count_boxes, 1, bvh, found); });
  const Graph refits = capture(device(), [&] { bvh.refit(); });
  for (const Graph* graph : {&asks, &refits}) graph->launch();
  const Array<vec3> there = full<vec3>(device(), 90, vec3(50, 50, 50));
  bvh.refit(there, there);
  for (const Graph* graph : {&asks, &refits})
    expect_contains(error_of([&] { graph->launch(); }), "a graph works on a hierarchy of 90 boxes");
  bvh.refit(many, many);
  for (const Graph* graph : {&asks, &refits}) graph->launch();
  EXPECT_EQ(found.to_vector(), all_of(90));
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

TEST_P(GraphStructures, a_hierarchy_of_views_is_found_as_a_graph_left_it_by_an_id_of_later) {
  Array<vec3> both = full<vec3>(device(), 180, vec3(50, 50, 50));
  Bvh bvh(device(), both.slice(0, 180, 2), both.slice(1, 180, 2), {.leaf_size = 8});
  const Graph refits = capture(device(), [&] { bvh.refit(); });
  const Array<std::uint64_t> id(device(), {bvh.id()});
  Array<int> found = zeros<int>(device(), 2);
  launch(count_boxes_by_id, 1, id, found);
  EXPECT_EQ(found.to_vector(), all_of(0));
  both.zero();
  refits.launch();
  launch(count_boxes_by_id, 1, id, found);
  EXPECT_EQ(found.to_vector(), all_of(90));
}

TEST_P(GraphStructures, a_hierarchy_of_nothing_stays_what_it_is) {
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

TEST_P(GraphStructures, arguments_are_set_with_structures_as_the_graph_builds_them) {
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
  expect_contains(error, "set with a hash grid of 20 points, which the graph builds as a hash grid of 100 points");
  expect_contains(error, "\"count points\"");
  p.grid.build(p.many, 0.5f);
  for (const HashGrid* grid : {&other, &p.grid}) {
    graph.set(node, count_points, *grid, found);
    found.fill(-1);
    graph.launch();
    EXPECT_EQ(found.to_vector(), all_of(100));
  }
}

TEST_P(GraphStructures, set_gives_a_launch_the_structure_as_it_is) {
  Points p(device());
  HashGrid other(device(), 4, 4, 4);
  const Bvh boxes(device(), p.few, p.few);
  other.build(p.many, 0.5f);
  p.grid.build(p.many, 0.5f);
  Array<int> found = zeros<int>(device(), 2);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(count_points, 1, p.grid, found);
    node = captured_launch();
  });
  p.grid.build(p.few, 0.5f);
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 100 points");
  graph.set(node, count_points, p.grid, found);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(20));
  graph.set(node, count_points, other, found);
  p.grid.build(p.many, 0.5f);
  graph.launch();
  EXPECT_EQ(found.to_vector(), all_of(100));
  // A structure that is set for one graph is not used by another that is captured meanwhile.
  const Graph meanwhile = capture(device(), [&] {
    graph.set(node, count_points, other, found);
    launch(count_boxes, 1, boxes, found);
  });
  other.build(p.few, 0.5f);
  meanwhile.launch();
}

TEST_P(GraphStructures, launches_that_are_refused_or_over_no_threads_use_no_structure) {
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

TEST_P(GraphStructures, a_graph_refuses_a_structure_that_was_built_otherwise_before_it_went) {
  Points p(device());
  Array<int> found = zeros<int>(device(), 2);
  std::optional<HashGrid> grid(std::in_place, device(), 4, 4, 4);
  grid->build(p.few, 0.5f);
  const Graph graph = capture(device(), [&] { launch(count_points, 1, *grid, found); });
  grid->build(p.many, 0.5f);
  grid.reset();
  expect_contains(error_of([&] { graph.launch(); }), "a hash grid of 20 points");
}

TEST_P(GraphStructures, a_graph_goes_on_with_a_structure_that_is_gone) {
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
