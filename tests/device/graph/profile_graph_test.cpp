// Profiles of graphs: each operation by its own name, with the arguments that it has, and only operations that run.
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/weft.h>

#include <map>

#include "../device_test.h"
#include "../printed.h"

using namespace weft;

namespace {

DEVICE_TEST(GraphProfiles);

constexpr int n = 100;

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto scale = kernel("scale", [](Arr<float> x, Float by) { x[tid()] *= by; });
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });

std::map<std::string, std::int64_t> counts(const Profile& p) {
  std::map<std::string, std::int64_t> all;
  for (const Profile::Kernel& k : p.kernels) all[k.name] += k.count;
  return all;
}
using Counts = std::map<std::string, std::int64_t>;

TEST_P(GraphProfiles, tell_kernels_copies_and_fills_apart) {
  Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
  const Graph graph = capture(device(), [&] {
    launch(add_one, n, x);
    launch(scale, n, x, 2.f);
    launch(add_one, n, x);
    y.copy_from(x);
    y.slice(0, 4).fill(7);
  });
  graph.launch();  // x = 3
  Profiler profiler(device());
  for (int k = 0; k < 4; ++k) {
    const Timer timer("step");
    graph.launch();
  }
  launch(add_one, n, x);
  const Profile p = profiler.stop();
  EXPECT_EQ(counts(p), (Counts{{"add one", 9}, {"scale", 4}, {"copy", 4}, {"fill", 4}}));
  EXPECT_EQ(x.at(0), 94);  // 9, 21, 45, 93
  EXPECT_EQ(y.at(3), 7);
  EXPECT_EQ(y.at(4), 93);
  ASSERT_EQ(p.operations.size(), 21u);
  const char* const order[] = {"add one", "scale", "add one", "copy", "fill"};
  double inside = 0, end = 0;
  for (std::size_t k = 0; k < 21; ++k) {
    const Profile::Operation& o = p.operations[k];
    EXPECT_EQ(o.name, order[k % 5]);
    EXPECT_EQ(o.scope, k < 20 ? int(k / 5) : -1);
    EXPECT_LT(o.begin, o.end);
    EXPECT_GE(o.begin, end - 1e-9) << "they run one after the other";
    end = o.end;
    if (o.scope >= 0) inside += o.end - o.begin;
  }
  ASSERT_EQ(p.scopes.size(), 1u);
  EXPECT_NEAR(p.scopes[0].device, inside, 1e-9);
  graph.launch();
  EXPECT_EQ(x.at(0), 191);
}

TEST_P(GraphProfiles, show_a_step_with_its_way_back_and_the_arguments_that_were_set) {
  Array<float> x = full<float>(device(), n, 1).requires_grad(), y = zeros<float>(device(), n);
  const Array<float> seed = full<float>(device(), n, 1);
  const auto descend =
      kernel("descend", [](Arr<float> x, Arr<const float> g, Float rate) { x[tid()] -= rate * g[tid()]; });
  GraphNode step;
  const Graph graph = capture(device(), [&] {
    x.zero_grad();
    Tape tape;
    tape.record([&] { launch(square, n, x, y); });
    tape.backward({{y, seed}});
    launch(descend, n, x, x.grad(), 0.f);
    step = captured_launch();
  });
  float expected = 1;
  const auto go = [&](float rate) {
    graph.set(step, descend, x, x.grad(), rate);
    graph.launch();
    expected *= 1 - 2 * rate;
  };
  go(0.25f);
  Profiler profiler(device());
  for (const float rate : {0.125f, -0.5f}) go(rate);
  const Profile p = profiler.stop();
  const Counts found = counts(p);
  EXPECT_EQ(found.at("square"), 2);
  EXPECT_EQ(found.at("square (adjoint)"), 2);
  EXPECT_EQ(found.at("descend"), 2);
  EXPECT_GE(found.at("copy"), 2) << "what the step overwrites";
  EXPECT_EQ(x.at(n - 1), expected);
  go(0.0625f);
  EXPECT_EQ(x.at(n - 1), expected) << "as a whole again";
}

TEST_P(GraphProfiles, hear_of_work_in_conditions_where_it_runs) {
  Array<float> x = zeros<float>(device(), n);
  Array<int> left = zeros<int>(device(), 1);
  const auto count_down = kernel("count down", [](Arr<int> left) { left[0] -= 1; });
  const Graph graph = capture(device(), [&] {
    graph_while(left, 8, [&] {
      launch(add_one, n, x);
      launch(count_down, 1, left);
    });
  });
  float expected = 0;
  for (const int rounds : {3, 0, 8}) {
    left.fill(rounds);
    device().synchronize();
    Profiler profiler(device());
    graph.launch();
    const Profile p = profiler.stop();
    Counts found = counts(p);
    EXPECT_EQ(found["add one"], rounds);
    EXPECT_EQ(found["count down"], rounds);
    EXPECT_EQ(found["gate"], 8);
    EXPECT_EQ(x.at(n - 1), expected += float(rounds));
  }
}

// Without a profiler these steps are one dispatch.
TEST_P(GraphProfiles, tell_the_steps_of_a_chain_apart) {
  Array<float> x = zeros<float>(device(), n);
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < 20; ++k) launch(add_one, n, x), launch(scale, n, x, 1.f);
  });
  Profiler profiler(device());
  for (int k = 0; k < 3; ++k) graph.launch();
  EXPECT_EQ(counts(profiler.stop()), (Counts{{"add one", 60}, {"scale", 60}}));
  EXPECT_EQ(x.at(n - 1), 60);
}

TEST_P(GraphProfiles, hold_graphs_of_many_operations_that_run_on_several_streams) {
  Array<float> x = zeros<float>(device(), 4);
  const int launches = on_reference() ? 200 : 2000;
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < launches; ++k) launch(add_one, 4, x);
  });
  const Stream other = device().create_stream();
  Profiler profiler(device());
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    graph.launch(other);
  }
  EXPECT_EQ(counts(profiler.stop())["add one"], 4 * launches);
  EXPECT_EQ(x.at(0), float(4 * launches));
}

struct Table {
  float values[60] = {};
};
WEFT_STRUCT(Table, values);

// The arguments are larger than push constants.
TEST_P(GraphProfiles, give_kernels_large_arguments_and_let_them_report) {
  const auto add_from = kernel("add from", [](Arr<float> x, Var<Table> table, Int k) {
    If (tid() == 0) print("k", k);
    x[tid()] += table.values[k];
  });
  Table table;
  for (int k = 0; k < 60; ++k) table.values[k] = float(k);
  Array<float> x = zeros<float>(device(), n);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(add_from, n, x, table, 0);
    node = captured_launch();
    launch(add_one, n, x);
  });
  test::Printed printed;
  Profiler profiler(device());
  for (const int k : {7, 59}) {
    graph.set(node, add_from, x, table, k);
    graph.launch();
  }
  EXPECT_EQ(counts(profiler.stop()), (Counts{{"add from", 2}, {"add one", 2}}));
  EXPECT_EQ(x.at(n - 1), 7 + 59 + 2);
  device().synchronize();
  EXPECT_EQ(printed.lines(), (test::Lines{"k 7", "k 59"}));
}

TEST_P(GraphProfiles, compare_with_the_graph_as_a_whole) {
  Array<float> x = zeros<float>(device(), n);
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < 3; ++k) launch(add_one, n, x);
  });
  const Graph empty = capture(device(), [] {});
  for (const bool whole : {false, true}) {
    Profiler profiler({device()}, {.whole_graphs = whole});
    graph.launch();
    empty.launch();
    EXPECT_EQ(counts(profiler.stop()), whole ? (Counts{{"graph of 3 operations", 1}}) : (Counts{{"add one", 3}}));
  }
  EXPECT_EQ(x.at(0), 6);
}

}  // namespace
