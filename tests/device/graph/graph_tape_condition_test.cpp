// Tapes and conditions in one capture: the way back is right whether the condition's work runs or not, or refused.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphTapeConditions);

constexpr int n = 8;

const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto sum = kernel("sum", [](Arr<const float> y, Arr<float> loss) { atomic_add(loss[0], y[tid()]); });
const auto scale = kernel("scale", [](Arr<float> x, Float by) { x[tid()] *= by; });

struct World {
  explicit World(const Device& device)
      : x(full<float>(device, n, 1).requires_grad()),
        y(zeros<float>(device, n)),
        loss(zeros<float>(device, 1)),
        flag(zeros<int>(device, 1)) {}
  void record(Tape& tape) {
    tape.record([&] {
      loss.fill(0);
      launch(square, n, x, y);
      launch(sum, n, y, loss);
    });
  }
  Array<float> x, y, loss;
  Array<int> flag;
};

// The tape's copy of what it needs would be made only if the work runs, and again in each round.
TEST_P(GraphTapeConditions, refuse_to_change_what_a_tape_from_before_them_needs) {
  World w(device());
  const auto refused = [&](const std::function<void(const std::function<void()>&)>& condition) {
    expect_contains(error_of([&] {
                      capture(device(), [&] {
                        Tape tape;
                        w.record(tape);
                        condition([&] { launch(scale, n, w.x, 5.f); });
                        tape.backward(w.loss);
                      });
                    }),
                    "work in a condition of a graph changes an array that a tape from outside of the condition still "
                    "needs");
  };
  refused([&](const auto& work) { graph_if(w.flag, work); });
  refused([&](const auto& work) { graph_while(w.flag, 3, work); });
  refused([&](const auto& work) { graph_if(w.flag, [&] { graph_while(w.flag, 2, work); }); });
  refused([&](const auto& work) {
    graph_if(w.flag, [&] {
      Tape inside;  // another one
      w.record(inside);
      work();
    });
  });
}

TEST_P(GraphTapeConditions, leave_a_tape_alone_that_needs_nothing_of_what_they_change) {
  World w(device());
  Array<float> other = full<float>(device(), n, 1);
  const Graph graph = capture(device(), [&] {
    w.x.zero_grad();
    {
      Tape tape;
      w.record(tape);
      graph_if(w.flag, [&] { launch(scale, n, other, 3.f); });
      tape.backward(w.loss);
    }
    graph_if(w.flag, [&] { launch(scale, n, w.x, 5.f); });
  });
  for (const int flag : {0, 1, 0}) {
    const float x = w.x.at(0), before = other.at(0);
    w.flag.fill(flag);
    graph.launch();
    EXPECT_EQ(w.x.grad().at(0), 2 * x);
    EXPECT_EQ(w.x.at(0), flag ? 5 * x : x);
    EXPECT_EQ(other.at(0), flag ? 3 * before : before);
  }
}

TEST_P(GraphTapeConditions, may_hold_tapes_as_a_whole) {
  World w(device());
  const Graph graph = capture(device(), [&] {
    w.x.zero_grad();
    graph_while(w.flag, 3, [&] {
      Tape tape;
      w.record(tape);
      launch(scale, n, w.x, 2.f);
      tape.backward(w.loss);
    });
  });
  graph.launch();
  EXPECT_EQ(w.x.grad().at(0), 0);
  w.flag.fill(1);
  graph.launch();
  EXPECT_EQ(w.x.grad().at(0), 2 + 4 + 8);
  EXPECT_EQ(w.x.at(0), 8);
}

TEST_P(GraphTapeConditions, are_refused_while_a_tape_records) {
  World w(device());
  const auto in_record = [&](const std::function<void()>& f) {
    return error_of([&] {
      capture(device(), [&] {
        Tape tape;
        tape.record([&] {
          launch(square, n, w.x, w.y);
          f();
          launch(sum, n, w.y, w.loss);
        });
      });
    });
  };
  const auto work = [&] { launch(scale, n, w.y, 5.f); };
  expect_contains(in_record([&] { graph_if(w.flag, work); }), "graph_if() is called while a tape records");
  expect_contains(in_record([&] { graph_while(w.flag, 2, work); }), "graph_while() is called while a tape records");
}

// The host does not know whether the work runs, so gradients neither end there nor pass.
TEST_P(GraphTapeConditions, make_what_they_replace_unknown_to_a_tape) {
  World w(device());
  const std::string error = error_of([&] {
    capture(device(), [&] {
      Tape tape;
      tape.record([&] { launch(square, n, w.x, w.y); });
      graph_if(w.flag, [&] { w.y.fill(0); });
      tape.record([&] { launch(sum, n, w.y, w.loss); });
      tape.backward(w.loss);
    });
  });
  expect_contains(error, "in kernel \"sum\"");
  expect_contains(error, "fill()");
}

}  // namespace
