// Captures that fail, which leave nothing behind, and captures with tapes.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <optional>

#include "../../../runtime/work/capture.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphCaptures);

const auto twice = kernel("twice", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * 2; });
const auto sum_squares = kernel("sum of squares", [](Arr<const float> x, Arr<float> loss) {
  Int i = tid();
  atomic_add(loss[0], x[i] * x[i]);
});

struct Failure {};

/// Captures `work` and fails at the end.
template <class F>
void capture_and_fail(const Device& device, F work) {
  EXPECT_THROW(capture(device,
                       [&] {
                         work();
                         throw Failure();
                       }),
               Failure);
}

/// Fills memory, so that new arrays are unlikely to be zero.
void leave_dirt(const Device& device, std::int64_t words) {
  std::vector<Array<int>> dirt;
  for (int k = 0; k < 40; ++k) dirt.push_back(full<int>(device, words, 0x01234567));
  device.synchronize();
}

TEST_P(GraphCaptures, are_not_made_or_launched_while_a_tape_records) {
  Array<float> x = full<float>(device(), 4, 3).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  const Graph graph = capture(device(), [&] { launch(twice, 4, x, y); });
  Tape tape;
  tape.record([&] {
    expect_contains(error_of([&] { graph.launch(); }), "a graph is launched while a tape records");
    expect_contains(error_of([&] { capture(device(), [&] { launch(twice, 4, x, y); }); }),
                    "a graph is captured while a tape records");
    launch(twice, 4, x, y);
    // Work that has nothing to do with the tape may run.
    Array<float> from = full<float>(device(), 4, 1), to = zeros<float>(device(), 4);
    Tape::unrecorded([&] { capture(device(), [&] { launch(twice, 4, from, to); }).launch(); });
    EXPECT_EQ(to.at(3), 2);
  });
  tape.backward({{y, full<float>(device(), 4, 1)}});
  EXPECT_EQ(x.grad().at(1), 2);
}

TEST_P(GraphCaptures, steps_that_are_run_again_launch_no_graphs) {
  Array<float> x = full<float>(device(), 4, 3).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  const Graph graph = capture(device(), [&] { launch(twice, 4, x, y); });
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { tape.checkpointed(4, 2, [&](int) { graph.launch(); }); }); }),
                  "a graph is launched while a tape records");
}

TEST_P(GraphCaptures, gradients_that_a_capture_gives_an_array_begin_at_zero) {
  leave_dirt(device(), 10);
  Array<float> failed = full<float>(device(), 10, 3), x = full<float>(device(), 10, 3);
  capture_and_fail(device(), [&] { failed.requires_grad(); });
  for (const float g : failed.requires_grad().grad().to_vector()) EXPECT_EQ(g, 0);

  Array<float> loss = zeros<float>(device(), 1).requires_grad();
  const Graph step = capture(device(), [&] {
    x.requires_grad();
    loss.zero();
    Tape tape;
    tape.record([&] { launch(sum_squares, 10, x, loss); });
    tape.backward(loss);
  });
  EXPECT_EQ(x.grad().at(9), 0);
  for (const float expected : {6.f, 12.f}) {  // as with a gradient that existed before the capture
    step.launch();
    EXPECT_EQ(x.grad().at(9), expected);
  }
}

TEST_P(GraphCaptures, a_launch_over_no_threads_is_no_node) {
  Array<float> x = full<float>(device(), 8, 1), y = full<float>(device(), 8, 1);
  GraphNode nothing, last;
  const Graph graph = capture(device(), [&] {
    launch(twice, 8, x, y);
    launch(twice, 0, y, x);
    nothing = captured_launch();
    launch(twice, 8, y, x);
    last = captured_launch();
  });
  expect_contains(error_of([&] { graph.set(nothing, twice, y, x); }), "a launch over no threads");
  graph.launch();
  EXPECT_EQ(x.at(7), 4);
  Array<float> z = zeros<float>(device(), 8);
  graph.set(last, twice, y, z);
  graph.launch();
  EXPECT_EQ(z.at(7), 16);
}

// ---- Structures, whose sizes the host knows and whose data work writes on the device

const auto most = kernel("largest number in reach", [](Var<HashGridArrays> grid, Arr<int> answer) {
  Int found = 0, count = 0;
  for (auto i : hash_grid_query(grid, Vec3(0, 0, 0), 2.f)) {
    found = max(found, i);
    count += 1;
  }
  answer[0] = found;
  answer[1] = count;
});

TEST_P(GraphCaptures, a_hash_grid_is_what_it_was_after_a_failed_build) {
  leave_dirt(device(), 6000);
  const MeshData data = shapes::icosphere(1, 2);
  const Array<vec3> points(device(), data.points);
  const int n = int(points.size());
  HashGrid grid(device(), 8, 8, 8);
  grid.build(points, 0.5f);
  Array<int> answer = zeros<int>(device(), 2);
  capture_and_fail(device(), [&] { grid.build(points, 0.5f); });
  EXPECT_EQ(grid.size(), n);
  launch(most, 1, grid, answer);
  EXPECT_EQ(answer.to_vector(), (std::vector<int>{n - 1, n}));

  // The grid's handle is asked for in the capture.
  std::uint64_t id = 0;
  capture_and_fail(device(), [&] {
    grid.build(points, 0.5f);
    id = grid.id();
  });
  const auto by_handle = kernel("number of points in reach", [](Arr<const std::uint64_t> id, Arr<int> answer) {
    Int count = 0;
    for ([[maybe_unused]] auto i : hash_grid_query(id[0], Vec3(0, 0, 0), 2.f)) count += 1;
    answer[0] = count;
  });
  launch(by_handle, 1, Array<std::uint64_t>(device(), {id}), answer);
  EXPECT_EQ(answer.at(0), n);
}

TEST_P(GraphCaptures, a_hash_grid_names_no_points_that_there_are_not_before_its_graph_runs) {
  leave_dirt(device(), 6000);
  const Array<vec3> points = zeros<vec3>(device(), 5000);
  HashGrid grid(device(), 8, 8, 8);
  const Graph graph = capture(device(), [&] { grid.build(points, 0.5f); });
  Array<int> answer = zeros<int>(device(), 2);
  expect_contains(error_of([&] { launch(most, 1, grid, answer); }), "the graph that builds it has not run");
  graph.launch();
  launch(most, 1, grid, answer);
  EXPECT_EQ(answer.to_vector(), (std::vector<int>{4999, 5000}));
}

const auto count_boxes = kernel("boxes in reach", [](Var<BvhData> bvh, Arr<int> answer) {
  Int count = 0;
  for ([[maybe_unused]] auto i : bvh_query_aabb(bvh, Vec3(-9, -9, -9), Vec3(9, 9, 9))) count += 1;
  answer[0] = count;
});

TEST_P(GraphCaptures, a_hierarchy_is_what_it_was_after_a_failed_build) {
  leave_dirt(device(), 4096);
  const Array<vec3> lower = zeros<vec3>(device(), 40), upper = full<vec3>(device(), 40, vec3(1, 1, 1));
  Bvh bvh(device(), lower, upper);
  Array<int> answer = zeros<int>(device(), 1);
  capture_and_fail(device(), [&] { bvh.rebuild(); });
  capture_and_fail(device(), [&] { bvh.refit(); });
  EXPECT_EQ(bvh.size(), 40);
  launch(count_boxes, 1, bvh, answer);
  EXPECT_EQ(answer.at(0), 40);
  bvh.refit();
  launch(count_boxes, 1, bvh, answer);
  EXPECT_EQ(answer.at(0), 40) << "of the boxes from before";
}

TEST_P(GraphCaptures, groups_of_a_hierarchy_are_those_of_its_graphs_last_launch) {
  const Array<vec3> lower = zeros<vec3>(device(), 70), upper = full<vec3>(device(), 70, vec3(1, 1, 1));
  Array<int> groups = full<int>(device(), 70, 5);
  Bvh bvh(device(), lower, upper, {.groups = groups});
  leave_dirt(device(), 70);
  const Graph graph = capture(device(), [&] { bvh.rebuild(); });
  groups.fill(0x01234567);
  EXPECT_EQ(bvh.ignored(), 0);
  const auto count_of_group = kernel("boxes of a group", [](Var<BvhData> bvh, Arr<int> answer, Int group) {
    Int count = 0;
    const BvhRoot root(bvh_group_root(bvh, group));
    for ([[maybe_unused]] auto i : bvh_query_aabb(bvh, Vec3(-9, -9, -9), Vec3(9, 9, 9), root)) count += 1;
    answer[0] = count;
  });
  Array<int> answer = zeros<int>(device(), 1);
  const Array<std::uint64_t> id(device(), {bvh.id()});
  const auto count_by_id =
      kernel("boxes of a group by id", [](Arr<const std::uint64_t> id, Arr<int> answer, Int group) {
        Int count = 0;
        const BvhRoot root(bvh_group_root(id[0], group));
        for ([[maybe_unused]] auto i : bvh_query_aabb(id[0], Vec3(-9, -9, -9), Vec3(9, 9, 9), root)) count += 1;
        answer[0] = count;
      });
  launch(count_by_id, 1, id, answer, 0x01234567);
  EXPECT_EQ(answer.at(0), 0);
  launch(count_of_group, 1, bvh, answer, 5);
  EXPECT_EQ(answer.at(0), 70);
  graph.launch();
  launch(count_of_group, 1, bvh, answer, 0x01234567);
  EXPECT_EQ(answer.at(0), 70);
  launch(count_by_id, 1, id, answer, 0x01234567);
  EXPECT_EQ(answer.at(0), 70);
}

TEST_P(GraphCaptures, nothing_is_found_by_the_handle_of_what_ended_in_one) {
  const MeshData data = shapes::icosphere(1, 1);
  const auto found = kernel("found by handles", [](Arr<const std::uint64_t> ids, Arr<int> answer) {
    Int count = 0;
    for ([[maybe_unused]] auto i : bvh_query_aabb(ids[0], Vec3(-9, -9, -9), Vec3(9, 9, 9))) count += 1;
    for ([[maybe_unused]] auto i : hash_grid_query(ids[1], Vec3(0, 0, 0), 2.f)) count += 1;
    answer[0] = count + select(mesh_query_point(ids[2], Vec3(9, 0, 0)).hit, 1, 0);
  });
  Array<int> answer = zeros<int>(device(), 1);
  for (const bool fails : {true, false}) {
    Array<vec3> points(device(), data.points);
    std::optional<Bvh> bvh(std::in_place, device(), points, points);
    std::optional<HashGrid> grid(std::in_place, device(), 8, 8, 8);
    grid->build(points, 0.5f);
    std::optional<Mesh> mesh(std::in_place, points, Array<int>(device(), data.indices));
    const Array<std::uint64_t> ids(device(), {bvh->id(), grid->id(), mesh->id()});
    launch(found, 1, ids, answer);
    EXPECT_EQ(answer.at(0), 2 * int(data.points.size()) + 1);
    const auto end = [&] { bvh.reset(), grid.reset(), mesh.reset(); };
    if (fails)
      capture_and_fail(device(), end);
    else
      capture(device(), end);  // and never launched
    points = {};
    leave_dirt(device(), 500);
    launch(found, 1, ids, answer);
    EXPECT_EQ(answer.at(0), 0);
  }
}

TEST_P(GraphCaptures, handles_that_a_failed_capture_has_asked_for_are_good) {
  leave_dirt(device(), 200);
  const MeshData data = shapes::icosphere(1, 1);
  const Mesh mesh(device(), data);
  std::uint64_t id = 0;
  capture_and_fail(device(), [&] { id = mesh.id(); });
  const auto far = kernel("distance by handle", [](Arr<const std::uint64_t> id, Arr<float> distance) {
    distance[0] = mesh_query_point(id[0], Vec3(101, 0, 0)).distance;
  });
  Array<float> distance = zeros<float>(device(), 1);
  launch(far, 1, Array<std::uint64_t>(device(), {id}), distance);
  EXPECT_NEAR(distance.at(0), 100, 0.2);
}

// Barriers and chains follow from these ranges, and software devices give right results without any.
TEST_P(GraphCaptures, launches_name_the_memory_of_their_arguments) {
  Array<float> x = full<float>(device(), 64, 3), y = zeros<float>(device(), 64);
  (void)capture(device(), [&] {
    launch(twice, 64, x, y);
    const std::vector<backend::MemoryRange>& ranges = detail::Capture::current()->operations().list.back().ranges;
    ASSERT_EQ(ranges.size(), 2u);
    EXPECT_EQ(ranges[0].address, x.address());
    EXPECT_EQ(ranges[0].bytes, x.extent_bytes());
    EXPECT_FALSE(any(ranges[0].access, ir::kChanges));
    EXPECT_EQ(ranges[1].address, y.address());
    EXPECT_EQ(ranges[1].bytes, y.extent_bytes());
    EXPECT_TRUE(any(ranges[1].access, ir::kChanges));
  });
}

}  // namespace
