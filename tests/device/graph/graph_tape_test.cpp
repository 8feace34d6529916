// Tapes in graphs: each launch of a graph does what the same steps do when they are called.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <functional>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphTapes);

constexpr int n = 8;

const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto add_squares =
    kernel("add squares", [](Arr<const float> x, Arr<float> y) { y[tid()] += x[tid()] * x[tid()]; });
const auto sum = kernel("sum", [](Arr<const float> y, Arr<float> loss) { atomic_add(loss[0], y[tid()]); });
const auto swing = kernel("swing", [](Arr<float> x, Arr<float> v, Float dt) {
  Int i = tid();
  v[i] -= sin(x[i]) * dt;
  x[i] += v[i] * dt;
});
const auto descend = kernel("descend", [](Arr<float> x, Arr<const float> g) { x[tid()] -= 0.05f * g[tid()]; });

/// The arrays of an optimisation. Only `x` has gradient storage of its own.
struct World {
  explicit World(const Device& device)
      : device(device),
        x(device, {0.3f, 0.6f, 0.9f, 1.2f, -0.3f, -0.6f, -0.9f, 2.f}),
        y(zeros<float>(device, n)),
        v(zeros<float>(device, n)),
        loss(zeros<float>(device, 1)) {
    x.requires_grad();
  }
  Device device;
  Array<float> x, y, v, loss;
  Tape tape;  ///< a tape from outside of the steps
};

using Steps = std::function<void(World&)>;

// Returns the gradients after each of three rounds; between rounds x goes down.
std::vector<std::vector<float>> rounds(World& world, const std::function<void()>& step) {
  std::vector<std::vector<float>> found;
  for (int k = 0; k < 3; ++k) {
    step();
    found.push_back(world.x.grad().to_vector());
    launch(descend, n, world.x, world.x.grad());
  }
  return found;
}

/// Compares steps that are called each time with a graph of them. `before` is done once, before both.
void compare(
    const Device& device, const Steps& step, const Steps& before = [](World&) {}) {
  World called(device), captured(device);
  before(called);
  before(captured);
  const auto expected = rounds(called, [&] { step(called); });
  const Graph graph = capture(device, [&] { step(captured); });
  const auto found = rounds(captured, [&] { graph.launch(); });
  for (std::size_t k = 0; k < expected.size(); ++k)
    for (std::size_t i = 0; i < std::size_t(n); ++i) {
      EXPECT_NEAR(found[k][i], expected[k][i], 1e-5f * (1 + std::abs(expected[k][i]))) << "launch " << k << ", " << i;
      EXPECT_NE(expected[k][i], 0) << "a gradient that shows nothing";
    }
}

TEST_P(GraphTapes, begin_with_zeros_in_each_launch) {
  compare(device(), [](World& w) {
    w.loss.fill(0);
    w.x.zero_grad();
    Tape tape;
    tape.record([&] {
      launch(square, n, w.x, w.y);
      launch(sum, n, w.y, w.loss);
    });
    tape.backward(w.loss);
  });
}

TEST_P(GraphTapes, add_up_where_nobody_asks_for_zeros) {
  compare(device(), [](World& w) {
    Tape tape;
    tape.record([&] {
      w.loss.fill(0);
      launch(square, n, w.x, w.y);
      launch(sum, n, w.y, w.loss);
    });
    tape.backward(w.loss);
  });
}

TEST_P(GraphTapes, go_back_through_arrays_that_are_reset) {
  compare(device(), [](World& w) {
    w.x.zero_grad();
    w.y.fill(1);
    w.loss.fill(0);
    Tape tape;
    tape.record([&] {
      launch(add_squares, n, w.x, w.y);
      w.v.fill(0);
      for (int k = 0; k < 5; ++k) launch(swing, n, w.y, w.v, 0.1f);
      launch(sum, n, w.y, w.loss);
    });
    tape.backward(w.loss);
  });
}

TEST_P(GraphTapes, run_checkpointed_steps) {
  compare(device(), [](World& w) {
    w.x.zero_grad();
    w.loss.fill(0);
    Tape tape;
    tape.record([&] {
      w.y.copy_from(w.x);
      w.v.fill(0);
      tape.checkpointed(20, 3, [&](int) { launch(swing, n, w.y, w.v, 0.1f); });
      launch(sum, n, w.y, w.loss);
    });
    tape.backward(w.loss);
  });
}

TEST_P(GraphTapes, take_seeds_and_zeros) {
  compare(device(), [](World& w) {
    w.x.zero_grad();
    Tape tape;
    tape.record([&] { launch(square, n, w.x, w.y); });
    tape.zero();
    tape.backward({{w.y, full<float>(w.device, n, 0.5f)}});
    tape.backward({{w.y, full<float>(w.device, n, 0.25f)}});
  });
}

// The host's tape recorded outside: only its way back is in the graph, with the values of the recording.
TEST_P(GraphTapes, go_back_more_than_once) {
  const auto record = [](World& w) {
    w.tape.record([&] {
      launch(square, n, w.x, w.y);
      launch(sum, n, w.y, w.loss);
    });
  };
  for (const bool went_back_before : {false, true}) {
    World w(device());
    record(w);
    if (went_back_before) w.tape.backward(w.loss);
    w.x.zero_grad();
    const Graph graph = capture(device(), [&] { w.tape.backward(w.loss); });
    EXPECT_EQ(w.tape.gradient(w.loss).at(0), went_back_before ? 1 : 0) << "nothing has run";
    for (int k = 1; k <= 3; ++k) {
      graph.launch();
      EXPECT_FLOAT_EQ(w.x.grad().at(0), 0.6f * float(k));
      EXPECT_EQ(w.tape.gradient(w.loss).at(0), 1);
    }
    // The way back can be called again after the graph's launches.
    w.tape.backward(w.loss);
    EXPECT_FLOAT_EQ(w.x.grad().at(0), 0.6f * 4);
    const Graph zeros = capture(device(), [&] { w.tape.zero(); });
    w.tape.backward(w.loss);
    EXPECT_FLOAT_EQ(w.x.grad().at(0), 0.6f * 5);
    zeros.launch();
    EXPECT_EQ(w.tape.gradient(w.loss).at(0), 0);
    EXPECT_EQ(w.x.grad().at(0), 0);
  }
}

// The way back needs more memory than the tape lets be in flight elsewhere.
TEST_P(GraphTapes, do_not_wait_for_memory) {
  const int many = on_reference() ? 1000 : 1 << 20, times = on_reference() ? 3 : 50;
  Array<float> x = full<float>(device(), many, 0.5f).requires_grad(), y = zeros<float>(device(), many);
  const auto step =
      kernel("halve", [](Arr<const float> x, Arr<float> y) { y[tid()] = 0.5f * y[tid()] * x[tid()] + x[tid()]; });
  const Graph graph = capture(device(), [&] {
    x.zero_grad();
    Tape tape;
    tape.record([&] {
      y.fill(0);
      for (int k = 0; k < times; ++k) launch(step, many, x, y);
    });
    tape.backward({{y, full<float>(device(), many, 1)}});
  });
  double value = 0, slope = 0;
  for (int k = 0; k < times; ++k) {
    slope = 0.5 * (slope * 0.5 + value) + 1;
    value = 0.5 * value * 0.5 + 0.5;
  }
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    EXPECT_NEAR(x.grad().at(many - 1), slope, 1e-5);
  }
}

// The elements at a launch of the graph may make kernels branch differently from those at the capture.
TEST_P(GraphTapes, provide_for_other_elements_than_those_of_today) {
  const auto rarely = kernel("rarely", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    If (x[i] > 1) {
      for ([[maybe_unused]] auto k : range(300)) y[i] = 0.5f * y[i] * x[i] + 1.f;
    }
    Else {
      for ([[maybe_unused]] auto k : range(2)) y[i] = 0.5f * y[i] * x[i] + 1.f;
    }
  });
  Array<float> x = full<float>(device(), n, 0.5f).requires_grad(), y = zeros<float>(device(), n);
  const Array<float> seed = full<float>(device(), n, 1);
  for (const bool went_back_before : {false, true}) {
    x.fill(0.5f);
    y.fill(0);
    Tape tape;
    tape.record([&] { launch(rarely, n, x, y); });
    if (went_back_before) tape.backward({{y, seed}});
    const Graph graph = capture(device(), [&] {
      x.zero_grad();
      tape.backward({{y, seed}});
    });
    graph.launch();
    EXPECT_FLOAT_EQ(x.grad().at(n - 1), 0.5f);
    x.fill(2);
    graph.launch();
    EXPECT_FLOAT_EQ(x.grad().at(n - 1), 0.5f * 300 * 299 / 2) << "y is k after k rounds";
  }
}

TEST_P(GraphTapes, are_refused_where_the_host_would_have_to_count) {
  const auto grow = kernel("grow", [](Arr<const float> x, Arr<float> y, Arr<const int> times) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(times[0])) y[i] = y[i] * x[i] + 1.f;
  });
  const int line = __LINE__ - 4;
  World w(device());
  const Array<int> times = full<int>(device(), 1, 3);
  Tape tape;
  tape.record([&] { launch(grow, n, w.x, w.y, times); });
  tape.backward({{w.y, full<float>(w.device, n, 1)}});  // this count tells nothing about a graph
  const std::string error = error_of([&] {
    capture(device(), [&] { tape.backward({{w.y, full<float>(w.device, n, 1)}}); });
  });
  expect_contains(error, "kernel \"grow\"");
  expect_contains(error, "graph_tape_test.cpp:" + std::to_string(line));
  expect_contains(error, "how often its loops change elements");
  // A kernel whose loops are known beforehand is not refused.
  const auto grow_thrice = kernel("grow thrice", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(3)) y[i] = y[i] * x[i] + 1.f;
  });
  // A kernel whose threads may need much, and do not, is not refused either.
  const auto grow_rarely = kernel("grow rarely", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    If (x[i] > 100) {
      for ([[maybe_unused]] auto k : range(1000)) y[i] = y[i] * x[i] + 1.f;
    }
    y[i] = y[i] * x[i] + 1.f;
  });
  for (const auto& kernel : {grow_thrice, grow_rarely})
    compare(device(), [&](World& w) {
      w.x.zero_grad();
      Tape tape;
      tape.record([&] {
        w.y.fill(0.5f);
        launch(kernel, n, w.x, w.y);
      });
      tape.backward({{w.y, full<float>(w.device, n, 1)}});
    });
}

}  // namespace
