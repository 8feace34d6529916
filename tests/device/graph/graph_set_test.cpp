// Other arguments for launches among tapes of the same capture: set, or refused if the way back would not know of them.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphSets);

constexpr int n = 8;

const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto sum = kernel("sum", [](Arr<const float> y, Arr<float> loss) { atomic_add(loss[0], y[tid()]); });
const auto descend =
    kernel("descend", [](Arr<float> x, Arr<const float> g, Float rate) { x[tid()] -= rate * g[tid()]; });
const auto scale = kernel("scale", [](Arr<float> x, Float by) { x[tid()] *= by; });
const auto scaled = kernel("scaled", [](Arr<const float> x, Arr<float> y, Float by) { y[tid()] = by * x[tid()]; });

/// A fit whose loss is the sum of squares: a step of rate r takes x to x (1 - 2 r).
struct Fit {
  explicit Fit(const Device& device)
      : x(full<float>(device, n, 1).requires_grad()), y(zeros<float>(device, n)), loss(zeros<float>(device, 1)) {}
  void record(Tape& tape) {
    tape.record([&] {
      loss.fill(0);
      launch(square, n, x, y);
      launch(sum, n, y, loss);
    });
  }
  Array<float> x, y, loss;
};

TEST_P(GraphSets, give_a_step_after_a_living_tape_another_rate_in_each_launch) {
  Fit fit(device());
  GraphNode step;
  const Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    fit.record(tape);
    tape.backward(fit.loss);
    launch(descend, n, fit.x, fit.x.grad(), 0.f);
    step = captured_launch();
  });
  float expected = 1;
  for (const float rate : {0.25f, 0.125f, -0.5f, 0.f, 0.0625f}) {
    graph.set(step, descend, fit.x, fit.x.grad(), rate);
    graph.launch();
    expected *= 1 - 2 * rate;
    EXPECT_EQ(fit.x.at(n - 1), expected) << rate;
  }
}

TEST_P(GraphSets, leave_the_way_back_what_a_step_before_it_has_overwritten) {
  Fit fit(device());
  GraphNode step;
  const Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    fit.record(tape);
    launch(scale, n, fit.x, 1.f);
    step = captured_launch();
    tape.backward(fit.loss);
  });
  float before = 1;
  for (const float by : {2.f, 0.5f, 8.f}) {
    graph.set(step, scale, fit.x, by);
    graph.launch();
    EXPECT_EQ(fit.x.grad().at(0), 2 * before) << "by what x was when it was squared";
    before *= by;
    EXPECT_EQ(fit.x.at(0), before);
  }
  // Another array is scaled instead: the copy holds the elements of x.
  const Array<float> other = full<float>(device(), n, 3);
  graph.set(step, scale, other, 2.f);
  graph.launch();
  EXPECT_EQ(fit.x.grad().at(0), 2 * before);
  EXPECT_EQ(fit.x.at(0), before);
  EXPECT_EQ(other.at(0), 6);
}

TEST_P(GraphSets, give_each_of_several_steps_its_own) {
  // The arrays are parts of one, and those that no step has changed yet stay where they are.
  Array<float> all = full<float>(device(), 2 * n, 1).requires_grad(), y = zeros<float>(device(), 2 * n);
  Array<float> loss = zeros<float>(device(), 1);
  const Array<float> parts[] = {all.slice(0, n), all.slice(n, 2 * n)};
  const Array<float> slopes[] = {all.grad().slice(0, n), all.grad().slice(n, 2 * n)};
  GraphNode steps[2];
  const Graph graph = capture(device(), [&] {
    all.zero_grad();
    Tape tape;
    tape.record([&] {
      loss.fill(0);
      for (int k = 0; k < 2; ++k) {
        launch(square, n, parts[k], y.slice(k * n, (k + 1) * n));
        launch(sum, n, y.slice(k * n, (k + 1) * n), loss);
      }
    });
    tape.backward(loss);
    for (int k = 0; k < 2; ++k) {
      launch(descend, n, parts[k], slopes[k], 0.f);
      steps[k] = captured_launch();
    }
  });
  graph.set(steps[0], descend, parts[0], slopes[0], 0.25f);
  graph.set(steps[1], descend, parts[1], slopes[1], 0.375f);
  graph.launch();
  EXPECT_EQ(parts[0].at(0), 0.5f);
  EXPECT_EQ(parts[1].at(0), 0.25f);
  // The tape reads the second part in place, because the first step has not changed it.
  expect_contains(error_of([&] { graph.set(steps[0], descend, parts[1], slopes[1], 0.25f); }),
                  "argument 1 is changed by the kernel, and a tape that was recorded in the graph still needs what it "
                  "holds");
  graph.set(steps[1], descend, parts[0], slopes[0], 0.25f);
  graph.launch();
  EXPECT_EQ(parts[0].at(0), 0.5f * 0.5f - 0.25f * 1);
  EXPECT_EQ(parts[1].at(0), 0.25f);
}

TEST_P(GraphSets, refuse_an_array_that_a_tape_of_the_graph_still_needs) {
  Fit fit(device());
  const Array<float> free = zeros<float>(device(), n);
  GraphNode early, late;
  const Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    {
      Tape tape;
      fit.record(tape);
      launch(scale, n, free, 2.f);
      early = captured_launch();
      tape.backward(fit.loss);
    }
    launch(scale, n, free, 2.f);
    late = captured_launch();
  });
  const std::string error = error_of([&] { graph.set(early, scale, fit.x, 2.f); });
  expect_contains(error, "in kernel \"scale\": argument 1 is changed by the kernel");
  expect_contains(error, "let the tape end before the launch");
  // The graph runs as captured: the gradient is that of x.
  graph.launch();
  EXPECT_EQ(fit.x.grad().at(0), 2);
  graph.set(late, scale, fit.x, 4.f);
  graph.launch();
  EXPECT_EQ(fit.x.grad().at(0), 2);
  EXPECT_EQ(fit.x.at(0), 4);
}

// The capture itself refuses such a change between two parts of a recording, too.
TEST_P(GraphSets, refuse_an_array_that_recorded_work_has_left_for_more) {
  Fit fit(device());
  const Array<float> free = zeros<float>(device(), n);
  GraphNode between;
  const Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    tape.record([&] {
      fit.loss.fill(0);
      launch(square, n, fit.x, fit.y);
    });
    launch(scale, n, free, 2.f);
    between = captured_launch();
    tape.record([&] { launch(sum, n, fit.y, fit.loss); });
    tape.backward(fit.loss);
  });
  expect_contains(error_of([&] { graph.set(between, scale, fit.y, 2.f); }),
                  "argument 1 is changed by the kernel, and a tape that was recorded in the graph still needs what it "
                  "holds");
  graph.set(between, scale, full<float>(device(), n, 1), 2.f);
  graph.launch();
  EXPECT_EQ(fit.x.grad().at(0), 2);
}

TEST_P(GraphSets, refuse_launches_that_a_tape_goes_back_through) {
  Fit fit(device());
  Array<float> noise = zeros<float>(device(), n);
  GraphNode recorded, apart;
  Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    tape.record([&] {
      launch(scale, n, noise, 1.f);  // no gradient passes through it
      apart = captured_launch();
      launch(scaled, n, fit.x, fit.y, 2.f);
      recorded = captured_launch();
    });
    tape.backward({{fit.y, full<float>(device(), n, 1)}});
  });
  const std::string error = error_of([&] { graph.set(recorded, scaled, fit.x, fit.y, 3.f); });
  expect_contains(error, "in kernel \"scaled\": arguments are set for a launch that a tape recorded");
  graph.set(apart, scale, noise, 3.f);
  noise.fill(1);
  graph.launch();
  EXPECT_EQ(noise.at(0), 3);
  EXPECT_EQ(fit.x.grad().at(0), 2);
  // Steps are run again on the way back, so none of their launches may differ the first time.
  GraphNode in_a_step;
  graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    tape.record([&] {
      fit.y.copy_from(fit.x);
      tape.checkpointed(4, 2, [&](int k) {
        launch(scale, n, fit.y, 2.f);
        launch(scale, n, noise, 2.f);
        if (k == 0) in_a_step = captured_launch();
      });
    });
    tape.backward({{fit.y, full<float>(device(), n, 1)}});
  });
  expect_contains(error_of([&] { graph.set(in_a_step, scale, noise, 3.f); }), "a launch that a tape recorded");
  graph.launch();
  EXPECT_EQ(fit.x.grad().at(0), 16);
}

// In debug mode, or if it prints lines, a launch has operations of its own beside its dispatch.
TEST_P(GraphSets, give_launches_that_report_other_arguments) {
  const auto tell = kernel("tell", [](Arr<float> x, Float by) {
    assert_(by < 10, "by is", by);
    x[tid()] *= by;
  });
  Fit fit(device());
  GraphNode step;
  const Graph graph = capture(device(), [&] {
    fit.x.zero_grad();
    Tape tape;
    fit.record(tape);
    tape.backward(fit.loss);
    launch(tell, n, fit.x, 1.f);
    step = captured_launch();
  });
  graph.set(step, tell, fit.x, 2.f);
  graph.launch();
  EXPECT_EQ(fit.x.at(0), 2);
  graph.set(step, tell, fit.x, 11.f);
  graph.launch();
  expect_contains(error_of([&] { device().synchronize(); }), "by is 11");
}

}  // namespace
