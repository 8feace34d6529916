// Many steps on a tape that keeps only some states: the gradients are the same in every bit for every number of states.
#include <cmath>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeSteps);

using Floats = std::vector<float>;

const auto force =
    kernel("force", [](Arr<const float> x, Arr<const float> w, Arr<float> f) { f[tid()] = -w[0] * sin(x[tid()]); });
const auto move = kernel("move", [](Arr<float> x, Arr<float> v, Arr<const float> f, Float dt) {
  Int i = tid();
  v[i] += f[i] * dt;
  x[i] += v[i] * dt;
});
const auto sum = kernel("sum", [](Arr<const float> a, Arr<float> total) {
  Float all = 0.f;
  for (auto i : range(a.shape(0))) all += a[i];
  total[0] = all;
});

/// Pendulums, and the values on which their final sum depends.
struct Pendulums {
  Array<float> x, v, w, f, loss;
  int calls = 0;
  explicit Pendulums(const Device& d)
      : x(Array<float>(d, {0.5f, 1.f, 2.f}).requires_grad()),
        v(Array<float>(d, {0.f, 0.1f, 0.2f}).requires_grad()),
        w(Array<float>(d, {1.5f}).requires_grad()),
        f(zeros<float>(d, 3)),
        loss(zeros<float>(d, 1)) {}
  void step() {
    ++calls;
    launch(force, 3, x, w, f);
    launch(move, 3, x, v, f, 0.05f);
  }
  std::vector<Floats> gradients() const { return {x.grad().to_vector(), v.grad().to_vector(), w.grad().to_vector()}; }
};

TEST_P(TapeSteps, gradients_are_those_of_a_tape_of_all_steps_for_every_number_of_slots) {
  const int steps = on_reference() ? 40 : 100;
  Pendulums all(device());
  Tape whole;
  whole.record([&] {
    for (int k = 0; k < steps; ++k) all.step();
    launch(sum, 1, all.x, all.loss);
  });
  whole.backward(all.loss);
  const auto expected = all.gradients();
  const Floats final_x = all.x.to_vector();
  EXPECT_GT(std::abs(expected[0][0]), 0.01f);
  for (int slots : {1, 2, 3, 5, 64, 1000}) {
    Pendulums p(device());
    Tape tape;
    tape.record([&] {
      tape.checkpointed(steps, slots, [&](int) { p.step(); });
      launch(sum, 1, p.x, p.loss);
    });
    EXPECT_EQ(tape.size(), 2u);
    EXPECT_EQ(p.calls, steps);
    for (int repeat = 0; repeat < 2; ++repeat) {
      tape.zero();
      tape.backward(p.loss);
      EXPECT_EQ(p.gradients(), expected) << slots << " slots, call " << repeat;
      EXPECT_EQ(p.x.to_vector(), final_x) << "final values";
    }
  }
}

TEST_P(TapeSteps, ten_thousand_steps_run_a_few_times_each) {
  // x becomes x / 1.0001 in each step: the state is small, so the time depends on the number of runs.
  if (on_reference()) GTEST_SKIP() << "the same on every device, and slow on this one";
  auto x = Array<double>(device(), {1.0}).requires_grad();
  const auto shrink = kernel("shrink", [](Arr<double> x) { x[tid()] = x[tid()] / 1.0001; });
  int calls = 0;
  Tape tape;
  tape.record([&] {
    tape.checkpointed(10000, 32, [&](int) {
      ++calls;
      launch(shrink, 1, x);
    });
  });
  EXPECT_EQ(calls, 10000);
  tape.backward(x);
  EXPECT_NEAR(x.grad().at(0), std::pow(1.0001, -10000), 1e-12);
  EXPECT_LT(calls, 46000);
}

TEST_P(TapeSteps, what_is_changed_after_the_steps_is_as_it_was_when_they_run_again) {
  Pendulums p(device()), q(device());
  Tape a, b;
  a.record([&] {
    a.checkpointed(20, 3, [&](int) { p.step(); });
    launch(sum, 1, p.x, p.loss);
  });
  b.record([&] {
    b.checkpointed(20, 3, [&](int) { q.step(); });
    launch(sum, 1, q.x, q.loss);
    q.f.fill(3);
  });
  q.x.fill(7);
  q.v.slice(1, 2).fill(8);
  q.w.assign(Floats{9});
  a.backward(p.loss);
  b.backward(q.loss);
  EXPECT_EQ(q.gradients(), p.gradients());
  EXPECT_EQ(q.x.to_vector(), Floats(3, 7));
  EXPECT_EQ(q.w.to_vector(), Floats{9});
  EXPECT_EQ(q.f.to_vector(), Floats(3, 3));
}

TEST_P(TapeSteps, steps_may_fill_a_trajectory_and_make_arrays_of_their_own) {
  const int steps = 12;
  const auto advance =
      kernel("advance", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()] * 0.9f; });
  const auto run = [&](int slots) {
    Array<float, 2> path = zeros<float, 2>(device(), {steps + 1, 2}).requires_grad();
    path[0].assign(Floats{1.05f, 0.95f});
    Tape tape;
    const auto step = [&](int k) {
      Array<float> scratch = path[k].clone();
      scratch.copy_from(path[k]);
      launch(advance, 2, scratch, path[k + 1]);
    };
    tape.record([&] {
      if (slots == 0)
        for (int k = 0; k < steps; ++k) step(k);
      else
        tape.checkpointed(steps, slots, step);
    });
    tape.backward({{path[steps], ones<float>(device(), 2)}, {path[5], ones<float>(device(), 2)}});
    return std::pair(path.to_vector(), path.grad().to_vector());
  };
  const auto expected = run(0);
  EXPECT_NE(expected.second[0], 0);
  for (int slots : {1, 2, 4, 20}) EXPECT_EQ(run(slots), expected) << slots << " slots";
}

TEST_P(TapeSteps, between_other_operations_and_inside_each_other) {
  const auto square = kernel("square", [](Arr<float> x) { x[tid()] = x[tid()] * x[tid()]; });
  const auto run = [&](bool kept) {
    auto x = Array<float>(device(), {1.01f}).requires_grad();
    Array<float> early = zeros<float>(device(), 1), y = zeros<float>(device(), 1);
    Tape tape;
    const auto many = [&](int n, const std::function<void(int)>& f) {
      if (kept) return tape.checkpointed(n, 2, f);
      for (int k = 0; k < n; ++k) f(k);
    };
    tape.record([&] {
      launch(square, 1, x);
      early.copy_from(x);
      many(3, [&](int k) {
        many(2, [&](int) { launch(square, 1, x); });
        tape.record([&] { y.copy_from(x); });
        if (k == 1) x.copy_from(early);
        launch(square, 1, y);
      });
      launch(square, 1, x);
      launch(square, 1, y);
    });
    tape.backward({{x, ones<float>(device(), 1)}, {y, ones<float>(device(), 1)}, {early, ones<float>(device(), 1)}});
    return std::pair(x.grad().to_vector(), y.to_vector());
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(TapeSteps, mistakes_are_named) {
  Pendulums p(device());
  Tape tape;
  expect_contains(error_of([&] { tape.checkpointed(3, 2, [](int) {}); }), "outside record()");
  tape.record([&] {
    expect_contains(error_of([&] { tape.checkpointed(3, 0, [](int) {}); }), "0 slots");
    expect_contains(error_of([&] { tape.checkpointed(-3, 2, [](int) {}); }), "-3 steps");
    tape.checkpointed(0, 2, [](int) {});
    expect_contains(error_of([&] {
                      tape.checkpointed(3, 2, [&](int k) {
                        p.step();
                        if (k == 1) throw Error(ErrorKind::invalid_argument, "mine");
                      });
                    }),
                    "mine");
  });
  expect_contains(error_of([&] {
                    tape.backward({{p.x, ones<float>(device(), 3)}});
                  }),
                  "a step of checkpointed() ended with an error");
  tape.reset();
  bool fail = false;
  tape.record([&] {
    tape.checkpointed(5, 2, [&](int k) {
      if (fail && k == 1) throw Error(ErrorKind::invalid_argument, "later");
      p.step();
    });
  });
  const Floats values = p.x.to_vector();
  fail = true;
  expect_contains(error_of([&] { tape.backward({{p.x, ones<float>(device(), 3)}}); }), "later");
  EXPECT_EQ(p.x.to_vector(), values) << "arrays hold their final values after an error too";
}

}  // namespace
