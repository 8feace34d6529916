// Rows of small launches in a graph: one after the other, whatever the device makes of them.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <random>

#include "../../../backends/backend.h"
#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(GraphChains);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
// Each thread reads the element that another one has written in the launch before.
const auto turn = kernel("turn", [](Arr<const int> from, Arr<int> to) {
  Int i = tid();
  to[i] = from[(i + 1) % from.shape(0)] + 1;
});

/// The number of shaders that a device makes of the launches in a capture.
std::uint64_t chains_of(const Device& device, const std::function<void()>& work, Graph& graph) {
  const std::uint64_t before = device.native().stats().chains;
  graph = capture(device, work);
  return device.native().stats().chains - before;
}
TEST_P(GraphChains, see_what_the_launch_before_has_written) {
  for (const int n : {1, 7, 32, 100, 256}) {
    Array<int> a = zeros<int>(device(), n), b = zeros<int>(device(), n);
    std::vector<int> first(std::size_t(n), 0);
    for (int i = 0; i < n; ++i) first[std::size_t(i)] = i;
    a.assign(first);
    Graph graph;
    const std::uint64_t made = chains_of(
        device(),
        [&] {
          for (int k = 0; k < 50; ++k) {
            launch(turn, n, a, b);
            launch(turn, n, b, a);
          }
        },
        graph);
    if (!on_host()) {
      EXPECT_EQ(made, 1u);
    }
    EXPECT_EQ(graph.size(), 100);
    graph.launch();
    graph.launch();
    const std::vector<int> after = a.to_vector();
    for (int i = 0; i < n; ++i) ASSERT_EQ(after[std::size_t(i)], (i + 200) % n + 200) << n;
  }
}

struct Box {
  vec3 low, high;
};
WEFT_STRUCT(Box, low, high);

/// Kernels of every kind that may be a step, on the same arrays.
struct Steps {
  explicit Steps(const Device& device)
      : x(device, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}),
        rows(zeros<float, 2>(device, {8, 3})),
        count(zeros<int>(device, 4)),
        boxes(zeros<Box>(device, 8)) {}

  void launch_one(int which) {
    static const auto smooth = func("smooth", [](Float a, Float b) { return 0.5f * a + 0.25f * b; });
    static const auto call = kernel("call", [](Arr<float> x) {
      Int i = tid();
      x[i] = smooth(x[i], x[i]) + smooth(1.f, x[i]);
    });
    static const auto leave = kernel("leave", [](Arr<float> x, Int limit) {
      Int i = tid();
      If (i >= limit) {
        Return();
      }
      for (auto k : range(3)) {
        If (x[i] > 100.f) {
          Break();
        }
        x[i] = x[i] * 1.5f + Float(k);
      }
    });
    static const auto tally =
        kernel("tally", [](Arr<const float> x, Arr<int> count) { atomic_add(count[Int(x[tid()]) & 3], 1); });
    static const auto by_rows = kernel("by rows", [](Arr<float, 2> rows, Arr<const float> x, Arr<const int> count) {
      auto [i, j] = tid<2>();
      rows(i, j) = rows(i, j) + x[i] * Float(j) + Float(count[j]);
    });
    static const auto column = kernel("column", [](Arr<const float, 2> from, Arr<float> x) {
      Int i = tid();
      x[i] = select(from(i, 0) > 50.f, from(i, 0) * 0.01f, from(i, 0) * 0.5f);
    });
    static const auto own = kernel("own", [](Arr<float> x) {
      Int i = tid();
      auto last = private_array<float>(4);
      for (auto k : range(4)) last[k] = x[i] + Float(k);
      x[i] = last[i & 3] * 0.9f;
    });
    static const auto many = kernel("many arguments", [](Arr<float> x, Var<Box> a, Var<Box> b, Var<Box> c, Var<Box> d,
                                                         Var<Box> e, Var<Box> f, Arr<Box> boxes) {
      Int i = tid();
      x[i] += a.low[0] + b.low[1] + c.low[2] + d.high[0] + e.high[1] + f.high[2];
      boxes[i].high = boxes[i].high + a.high * x[i];
    });
    const Box box{{1, 2, 3}, {4, 5, 6}};
    switch (which) {
      case 0: return launch(call, 8, x);
      case 1: return launch(leave, 8, x, 5);
      case 2: return launch(tally, 8, x, count);
      case 3: return launch(by_rows, {8, 3}, rows, x, count);
      case 4: return launch(column, 8, rows.slice(2, 3, 1, 1), x);
      case 5: return launch(own, 8, x);
      default: return launch(many, 8, x, box, box, box, box, box, box, boxes);
    }
  }
  void expect_same(const Steps& other) const {
    EXPECT_EQ(x.to_vector(), other.x.to_vector());
    EXPECT_EQ(rows.to_vector(), other.rows.to_vector());
    EXPECT_EQ(count.to_vector(), other.count.to_vector());
    const std::vector<Box> ours = boxes.to_vector(), theirs = other.boxes.to_vector();
    for (std::size_t k = 0; k < 8; ++k) EXPECT_EQ(ours[k].high, theirs[k].high);
  }

  Array<float> x;
  Array<float, 2> rows;
  Array<int> count;
  Array<Box> boxes;
};

TEST_P(GraphChains, hold_kernels_in_any_order) {
  std::mt19937 random(7);
  for (int round = 0; round < 4; ++round) {
    std::vector<int> order(std::size_t(40 + 11 * round));
    for (int& which : order) which = int(random() % 7);
    Steps one_by_one(device()), captured(device());
    Graph graph;
    const std::uint64_t made = chains_of(
        device(),
        [&] {
          for (int which : order) captured.launch_one(which);
        },
        graph);
    if (!on_host() && round == 0) {
      EXPECT_GE(made, 1u);
    }
    for (int k = 0; k < 2; ++k) {
      for (int which : order) one_by_one.launch_one(which);
      graph.launch();
    }
    captured.expect_same(one_by_one);
  }
}

TEST_P(GraphChains, hold_rounds_of_kernels_and_what_is_left_of_the_last) {
  const std::vector<int> period = {0, 3, 4, 1, 6};
  Steps one_by_one(device()), captured(device());
  const auto work = [&](Steps& steps) {
    for (std::size_t k = 0; k < 33; ++k) steps.launch_one(period[k % period.size()]);
  };
  const Graph graph = capture(device(), [&] { work(captured); });
  graph.launch();
  work(one_by_one);
  captured.expect_same(one_by_one);
}

TEST_P(GraphChains, stand_between_larger_launches_and_copies) {
  Array<float> x = zeros<float>(device(), 32), large = zeros<float>(device(), 5000), y = zeros<float>(device(), 32);
  const auto spread = kernel("spread", [](Arr<const float> x, Arr<float> large) { large[tid()] += x[tid() & 31]; });
  const auto gather = kernel("gather", [](Arr<const float> large, Arr<float> x) { x[tid()] += large[tid() * 100]; });
  const auto work = [&] {
    for (int k = 0; k < 20; ++k) launch(add_one, 32, x);
    launch(spread, 5000, x, large);
    for (int k = 0; k < 20; ++k) launch(add_one, 32, x);
    launch(gather, 32, large, x);
    y.copy_from(x);
    for (int k = 0; k < 20; ++k) launch(add_one, 32, y);
  };
  const Graph graph = capture(device(), work);
  for (int k = 0; k < 3; ++k) graph.launch();
  const float after_graph = y.at(31), x_after = x.at(31);
  x.fill(0);
  y.fill(0);
  large.fill(0);
  for (int k = 0; k < 3; ++k) work();
  EXPECT_EQ(after_graph, y.at(31));
  EXPECT_EQ(x_after, x.at(31));
}

TEST_P(GraphChains, take_other_arguments_for_a_step) {
  const auto add = kernel("add", [](Arr<float> x, Float by) { x[tid()] += by; });
  Array<float> x = zeros<float>(device(), 8), other = zeros<float>(device(), 8);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < 40; ++k) {
      launch(add, 8, x, 1.f);
      if (k == 19) node = captured_launch();
    }
  });
  graph.launch();
  EXPECT_EQ(x.at(3), 40);
  graph.set(node, add, x, 100.f);
  graph.launch();
  EXPECT_EQ(x.at(3), 40 + 139);
  graph.set(node, add, other, 5.f);
  graph.launch();
  EXPECT_EQ(x.at(3), 40 + 139 + 39);
  EXPECT_EQ(other.at(3), 5);
}

TEST_P(GraphChains, leave_alone_what_need_not_wait) {
  std::vector<Array<float>> arrays;
  for (int k = 0; k < 64; ++k) arrays.push_back(zeros<float>(device(), 32));
  Graph graph;
  EXPECT_EQ(chains_of(
                device(),
                [&] {
                  for (const auto& x : arrays) launch(add_one, 32, x);
                },
                graph),
            0u);
  graph.launch();
  for (const auto& x : arrays) EXPECT_EQ(x.at(5), 1);
}

TEST_P(GraphChains, leave_alone_launches_of_several_workgroups) {
  Array<float> x = zeros<float>(device(), 3000);
  Graph graph;
  EXPECT_EQ(chains_of(
                device(),
                [&] {
                  for (int k = 0; k < 50; ++k) launch(add_one, 3000, x);
                },
                graph),
            0u);
  graph.launch();
  EXPECT_EQ(x.at(2999), 50);
}

TEST_P(GraphChains, may_be_longer_than_one_dispatch_is_let_run) {
  Array<float> x = zeros<float>(device(), 32);
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < 10000; ++k) launch(add_one, 32, x);
  });
  for (int k = 0; k < 3; ++k) graph.launch();
  EXPECT_EQ(x.at(31), 30000);
}

TEST_P(GraphChains, pass_gradients_of_a_tape_inside) {
  const auto step = kernel("step", [](Arr<const float> from, Arr<float> to) {
    Int i = tid();
    to[i] = from[i] + 0.1f * sin(from[(i + 1) % 4]);
  });
  std::vector<float> expected;
  Array<float> first(device(), {0.1f, 0.5f, 1.f, 2.f});
  first.requires_grad();
  std::vector<Array<float>> states = {first};
  for (int k = 0; k < 30; ++k) {
    states.push_back(zeros<float>(device(), 4));
    states.back().requires_grad();
  }
  const auto work = [&] {
    Tape tape;
    tape.record([&] {
      for (std::size_t k = 0; k < 30; ++k) launch(step, 4, states[k], states[k + 1]);
    });
    tape.backward({{states.back(), ones<float>(device(), 4)}});
  };
  work();
  expected = first.grad().to_vector();
  const auto clear = [&] {
    for (const Array<float>& state : states) state.grad().fill(0);
  };
  clear();
  const Graph graph = capture(device(), [&] {
    clear();
    work();
  });
  graph.launch();
  graph.launch();
  EXPECT_EQ(first.grad().to_vector(), expected);
}

}  // namespace
