// Graphs of kernels that print, assert and check themselves: nothing is lost, and the order is that of the launches.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include "../device_test.h"
#include "../printed.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::Lines;
using weft::test::Printed;

namespace {

DEVICE_TEST(GraphReports);

const auto tell = kernel("tell", [](Arr<const int> x, Int name) { print(name, tid(), x[tid()]); });
const auto add_one = kernel("add one", [](Arr<int> x) { x[tid()] += 1; });

TEST_P(GraphReports, lines_of_all_launches_come_in_order) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 2);
  const Graph graph = capture(device(), [&] {
    launch(tell, 2, x, 1);
    launch(add_one, 2, x);
    launch(tell, 2, x, 2);
  });
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{}) << "nothing has run";
  graph.launch();
  graph.launch();
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0", "1 1 0", "2 0 1", "2 1 1", "1 0 1", "1 1 1", "2 0 2", "2 1 2"}));
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{}) << "lines are shown once";
}

TEST_P(GraphReports, lines_of_other_launches_stay_between_them) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1);
  const Graph graph = capture(device(), [&] { launch(tell, 1, x, 7); });
  const Graph other = capture(device(), [&] { launch(tell, 1, x, 8); });
  launch(tell, 1, x, 1);
  graph.launch();
  launch(tell, 1, x, 2);
  other.launch();
  graph.launch();
  launch(tell, 1, x, 3);
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0", "7 0 0", "2 0 0", "8 0 0", "7 0 0", "3 0 0"}));
}

TEST_P(GraphReports, lines_stay_in_order_where_graph_and_launches_take_turns) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1);
  const Graph graph = capture(device(), [&] { launch(tell, 1, x, 7); });
  for (int round = 0; round < 3; ++round) {
    Lines expected;
    for (int k = 0; k < 4; ++k) {
      launch(tell, 1, x, k);
      graph.launch();
      expected.insert(expected.end(), {std::to_string(k) + " 0 0", "7 0 0"});
    }
    device().synchronize();
    EXPECT_EQ(printed.lines(), expected) << round;
  }
}

TEST_P(GraphReports, rounds_of_a_loop_tell_their_lines_one_after_the_other) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 2), left(device(), {3});
  const auto count = kernel("count", [](Arr<int> left) { left[0] -= 1; });
  const Graph graph = capture(device(), [&] {
    launch(tell, 1, x, 0);
    graph_while(left, 5, [&] {
      launch(tell, 2, x, 1);
      launch(add_one, 2, x);
      launch(tell, 1, x, 2);
      launch(count, 1, left);
    });
    launch(tell, 1, x, 9);
  });
  graph.launch();
  device().synchronize();
  EXPECT_EQ(printed.lines(),
            (Lines{"0 0 0", "1 0 0", "1 1 0", "2 0 1", "1 0 1", "1 1 1", "2 0 2", "1 0 2", "1 1 2", "2 0 3", "9 0 3"}));
}

TEST_P(GraphReports, what_a_condition_leaves_out_tells_nothing) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1), flag(device(), {0});
  const Graph graph = capture(device(), [&] { graph_if(flag, [&] { launch(tell, 1, x, 1); }); });
  graph.launch();
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{});
  flag.fill(1);
  graph.launch();
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0"}));
}

TEST_P(GraphReports, failures_are_thrown_by_the_next_wait) {
  Array<int> x = zeros<int>(device(), 4);
  const auto careful = kernel("careful", [](Arr<const int> x) { assert_(x[tid()] < 2, "too many:", x[tid()]); });
  const Graph graph = capture(device(), [&] {
    launch(add_one, 4, x);
    launch(careful, 4, x);
  });
  graph.launch();
  device().synchronize();
  graph.launch();
  const std::string message = error_of([&] { device().synchronize(); });
  expect_contains(message, "careful");
  expect_contains(message, "thread 0: an assertion failed: too many: 2");
  expect_contains(message, "3 more");
  device().synchronize();
  EXPECT_EQ(x.to_vector(), (std::vector<int>{2, 2, 2, 2}));
}

TEST_P(GraphReports, debug_mode_checks_what_a_graph_launches) {
  Array<int> x = zeros<int>(device(), 4), to = zeros<int>(device(), 2);
  const auto copy = kernel("copy beyond", [](Arr<const int> x, Arr<int> to) { to[tid()] = x[tid()]; }, {.debug = true});
  const Graph graph = capture(device(), [&] { launch(copy, 4, x, to); });
  graph.launch();
  const std::string message = error_of([&] { (void)to.at(0); });
  expect_contains(message, "copy beyond");
  expect_contains(message, "index 2 is outside dimension 0");
}

TEST_P(GraphReports, follow_the_stream_of_each_launch_and_outlive_the_graph) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1);
  Stream other = device().create_stream();
  {
    Graph graph = capture(device(), [&] {
      launch(tell, 1, x, 5);
      launch(add_one, 1, x);
    });
    graph.launch();
    graph.launch(other);
    graph.launch();
  }
  device().synchronize();
  EXPECT_EQ(printed.lines().size(), 3u);
}

TEST_P(GraphReports, other_arguments_are_told_of) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1), y(device(), {40});
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(tell, 1, x, 1);
    launch(tell, 1, x, 2);
    node = captured_launch();
    launch(tell, 1, x, 3);
  });
  graph.launch();
  graph.set(node, tell, y, 20);
  graph.launch();
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 0 0", "2 0 0", "3 0 0", "1 0 0", "20 0 40", "3 0 0"}));
}

TEST_P(GraphReports, lines_beyond_the_buffer_are_counted_at_each_launch) {
  Printed printed;
  set_report_bytes(4096);
  Array<int> x = zeros<int>(device(), 1000);
  const Graph graph = capture(device(), [&] { launch(tell, 1000, x, 1); });
  set_report_bytes(1 << 20);
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    device().synchronize();
    const Lines lines = printed.lines();
    ASSERT_GT(lines.size(), 100u);
    EXPECT_LT(lines.size(), 1000u);
    expect_contains(lines.back(), "of print() in kernel \"tell\" were lost");
  }
}

TEST_P(GraphReports, an_abandoned_capture_leaves_nothing_behind) {
  Printed printed;
  Array<int> x = zeros<int>(device(), 1);
  EXPECT_THROW((void)capture(device(),
                             [&] {
                               launch(tell, 1, x, 1);
                               throw std::runtime_error("enough");
                             }),
               std::runtime_error);
  launch(tell, 1, x, 2);
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"2 0 0"}));
}

}  // namespace
