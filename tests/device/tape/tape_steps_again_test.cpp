// Steps that are run again: what must be the same then, what is refused because it is not, and what may differ.
#include <atomic>
#include <thread>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeStepsAgain);

using Floats = std::vector<float>;

const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto scale = kernel("scale", [](Arr<float> x, Float by) { x[tid()] *= by; });
const auto multiply = kernel("multiply", [](Arr<float> x, Arr<const float> by) { x[tid()] *= by[tid()]; });

/// Gradients of x after `steps` steps that are run again; with 0 slots, on a tape of all steps.
struct Loop {
  Array<float> x;
  Tape tape;
  explicit Loop(const Device& d) : x(Array<float>(d, {0.5f, 0.9f, 1.1f}).requires_grad()) {}
  void record(int steps, int slots, const std::function<void(int)>& step) {
    tape.record([&] {
      if (slots) return tape.checkpointed(steps, slots, step);
      for (int k = 0; k < steps; ++k) step(k);
    });
  }
  Floats gradient() { return gradient_from(x); }
  Floats gradient_from(const Array<float>& y) {
    tape.backward({{y, ones<float>(y.device(), 3)}});
    return x.grad().to_vector();
  }
};

TEST_P(TapeStepsAgain, handles_swapped_by_the_number_of_the_step_are_the_same_again) {
  const auto run = [&](int slots) {
    Loop loop(device());
    Array<float> pair[] = {loop.x, zeros<float>(device(), 3)};
    loop.record(7, slots, [&](int k) { launch(square, 3, pair[k % 2], pair[(k + 1) % 2]); });
    return loop.gradient_from(pair[1]);
  };
  const Floats expected = run(0);
  EXPECT_NE(expected[1], 0);
  for (int slots : {1, 2, 3, 20}) EXPECT_EQ(run(slots), expected) << slots << " slots";
}

TEST_P(TapeStepsAgain, handles_swapped_on_the_host_are_refused) {
  for (int slots : {1, 3, 20}) {
    Loop loop(device());
    Array<float> now = loop.x, next = zeros<float>(device(), 3);
    loop.record(7, slots, [&](int) {
      launch(square, 3, now, next);
      std::swap(now, next);
    });
    const std::string message = error_of([&] { loop.gradient_from(now); });
    expect_contains(message, "step ");
    expect_contains(message, "of checkpointed() does something else when it is run again: operation 1");
    expect_contains(message, "square");
    expect_contains(message, "swap contents, not handles");
  }
}

TEST_P(TapeStepsAgain, a_value_that_the_host_counts_is_refused) {
  Loop loop(device());
  float by = 1;
  loop.record(3, 5, [&](int) {
    launch(scale, 3, loop.x, 2.f);
    launch(scale, 3, loop.x, by += 1);
  });
  const std::string message = error_of([&] { loop.gradient(); });
  expect_contains(message, "step 2 of checkpointed()");
  expect_contains(message, "operation 2 is not what it was the first time");
  expect_contains(message, "scale");
  EXPECT_EQ(loop.x.to_vector(), (Floats{0.5f * 8 * 24, 0.9f * 8 * 24, 1.1f * 8 * 24})) << "final values";
}

TEST_P(TapeStepsAgain, what_the_host_fills_in_is_compared) {
  Array<float> by = zeros<float>(device(), 3);
  float count = 1;
  const auto refused = [&](const std::function<void()>& fill) {
    Loop loop(device());
    loop.record(3, 3, [&](int) {
      fill();
      launch(multiply, 3, loop.x, by);
    });
    expect_contains(error_of([&] { loop.gradient(); }), "a fill or an assignment of these values to this array");
  };
  refused([&] { by.fill(count += 1); });
  refused([&] { by.assign(Floats{1, 2, count += 1}); });
  refused([&] { by.slice(0, 3, 2).assign(Floats{1, count += 1}); });
  Array<float> other = by.clone();
  refused([&] { (std::swap(by, other), by).fill(2); });
}

TEST_P(TapeStepsAgain, more_or_fewer_operations_are_refused) {
  int runs = 0;
  const auto run = [&](const std::function<bool()>& second) {
    Loop loop(device());
    runs = 0;
    loop.record(1, 1, [&](int) {
      ++runs;
      launch(scale, 3, loop.x, 2.f);
      if (second()) launch(scale, 3, loop.x, 3.f);
    });
    return error_of([&] { loop.gradient(); });
  };
  expect_contains(run([&] { return runs == 1; }), "it makes 1 operations, and made 2 the first time");
  expect_contains(run([&] { return runs == 2; }), "beside the 1 operations that it made the first time");
}

TEST_P(TapeStepsAgain, a_difference_that_the_step_catches_is_still_one) {
  Loop loop(device());
  float by = 1;
  loop.record(2, 2, [&](int) {
    try {
      launch(scale, 3, loop.x, by += 1);
    } catch (const Error&) {
    }
  });
  expect_contains(error_of([&] { loop.gradient(); }), "does something else when it is run again");
}

TEST_P(TapeStepsAgain, what_is_not_recorded_is_compared_too) {
  Array<float> by = ones<float>(device(), 3);
  for (const bool same : {true, false}) {
    Loop loop(device());
    float count = 1;
    loop.record(3, 2, [&](int) {
      Tape::unrecorded([&] { launch(scale, 3, by, same ? 2.f : count += 1); });
      launch(multiply, 3, loop.x, by);
    });
    if (same)
      EXPECT_EQ(loop.gradient(), Floats(3, 64));
    else
      expect_contains(error_of([&] { loop.gradient(); }), "scale");
    by.fill(1);
  }
}

/// A struct with seven bytes of padding between the fields.
struct Padded {
  std::uint8_t small;
  double large;
  static Padded with_garbage(int garbage, std::uint8_t small, double large) {
    Padded p;
    std::memset(static_cast<void*>(&p), garbage, sizeof p);
    std::memcpy(&p.small, &small, 1);
    std::memcpy(&p.large, &large, 8);
    return p;
  }
};
WEFT_STRUCT(Padded, small, large);

TEST_P(TapeStepsAgain, padding_of_structs_may_differ) {
  const auto both = kernel("both", [](Arr<float> x, Var<Padded> p, Arr<const Padded> q) {
    x[tid()] *= Float(p.large) * Float(q[0].large) + Float(p.small);
  });
  Loop loop(device());
  Array<Padded> q = zeros<Padded>(device(), 2), r = q.clone();
  const Padded* given = nullptr;
  std::vector<Padded> values(2);
  int garbage = 0;
  double large = 2;
  const auto step = [&](int) {
    std::memset(static_cast<void*>(values.data()), ++garbage, 2 * sizeof(Padded));
    values[0].small = 1, values[1].small = 2, values[0].large = large, values[1].large = 3;
    const Padded p = Padded::with_garbage(garbage, 3, 0.5);
    given = &p;
    q.assign(values);
    r.fill(values[1]);
    launch(both, 3, loop.x, *given, q);
  };
  loop.record(3, 1, step);
  EXPECT_EQ(loop.gradient(), Floats(3, 64));
  large = 4;
  expect_contains(error_of([&] { loop.gradient(); }), "an assignment of these values");
}

TEST_P(TapeStepsAgain, arrays_that_a_step_makes_may_lie_elsewhere) {
  std::vector<Array<float>> kept;  // so that memory is not reused
  const auto run = [&](int slots) {
    Loop loop(device());
    loop.record(6, slots, [&](int k) {
      Array<float> a = loop.x.clone(), b = full<float>(device(), 3, 1.f + float(k) / 8);
      kept.push_back(full<float>(device(), 100 * k + 1, 1));
      launch(multiply, 3, a, b);
      launch(square, 3, a, loop.x);
      loop.x.slice(1, 3).copy_from(a.slice(0, 2));
    });
    return loop.gradient();
  };
  const Floats expected = run(0);
  EXPECT_NE(expected[0], 0);
  for (int slots : {1, 2, 20}) EXPECT_EQ(run(slots), expected) << slots << " slots";
}

struct Factors {
  Array<float> first, second;
  std::uint8_t small = 1;
  std::uint64_t large = 2;
};
WEFT_STRUCT(Factors, first, second, small, large);

TEST_P(TapeStepsAgain, structs_hold_arrays_that_the_step_makes) {
  const auto by_first =
      kernel("by_first", [](Arr<float> x, Arr<const Factors> f) { x[tid()] *= detach(f[0].first[tid()]); });
  Array<float> two = full<float>(device(), 3, 2), three = full<float>(device(), 3, 3);
  Array<Factors> held = zeros<Factors>(device(), 1);
  std::vector<Array<float>> kept;
  for (const bool swaps : {false, true}) {
    Loop loop(device());
    loop.record(3, 1, [&](int k) {
      kept.push_back(full<float>(device(), 100 * k + 1, 1));
      Factors made{full<float>(device(), 3, 2), zeros<float>(device(), 4)};
      held.fill(made);
      launch(by_first, 3, loop.x, held);
      if (swaps) std::swap(two, three);
      held.assign(std::vector<Factors>{{two, three}});
      launch(by_first, 3, loop.x, held);
    });
    if (swaps)
      expect_contains(error_of([&] { loop.gradient(); }), "operation 6 is not what it was");
    else
      EXPECT_EQ(loop.gradient(), Floats(3, 64));
  }
}

TEST_P(TapeStepsAgain, kernels_made_in_a_step_are_the_same_when_they_do_the_same) {
  for (const bool same : {true, false}) {
    Loop loop(device());
    float count = 1;
    loop.record(3, 2, [&](int) {
      const float by = same ? 2.f : count += 1;
      launch(kernel("made", [by](Arr<float> x) { x[tid()] *= by; }), 3, loop.x);
    });
    if (same)
      EXPECT_EQ(loop.gradient(), Floats(3, 8));
    else
      expect_contains(error_of([&] { loop.gradient(); }), "made");
  }
}

TEST_P(TapeStepsAgain, debug_mode_may_be_switched_on_for_the_way_back) {
  const Debug before = debug_mode();
  struct Restore {
    Debug mode;
    ~Restore() { set_debug(mode); }
  } const restore{before};
  const auto k = kernel("checked", [](Arr<float> x) { x[tid()] *= 2.f; });
  for (const Debug way_back : {Debug::all(), Debug()}) {
    Loop loop(device());
    set_debug(way_back == Debug() ? Debug::all() : Debug());
    const auto made = kernel("made", [](Arr<float> x) { x[tid()] *= 3.f; });
    loop.record(3, 1, [&](int) { launch(k, 3, loop.x), launch(made, 3, loop.x); });
    set_debug(way_back);
    EXPECT_EQ(loop.gradient(), Floats(3, 216));
  }
}

TEST_P(TapeStepsAgain, what_a_step_reads_is_as_it_was) {
  Array<float> factor(device(), {2, 5}), table(device(), {2, 4, 8});
  Array<int> list(device(), {2, 0, 1});
  Loop loop(device());
  loop.record(3, 1, [&](int) {
    launch(scale, 3, loop.x, factor.at(0));
    launch(scale, 3, loop.x, factor.slice(1, 2).to_vector()[0]);
    Array<float> by = indexed(table, list).clone();
    launch(multiply, 3, loop.x, by);
  });
  factor.fill(7);
  list.fill(0);
  EXPECT_EQ(loop.gradient(), (Floats{1000 * 512, 1000 * 8, 1000 * 64}));
  EXPECT_EQ(factor.to_vector(), Floats(2, 7));
}

TEST_P(TapeStepsAgain, scratch_memory_made_when_it_is_first_needed) {
  for (int slots : {1, 2, 20}) {
    Loop loop(device());
    Array<float> scratch;
    loop.record(6, slots, [&](int) {
      if (scratch.is_null()) scratch = Array<float>::empty(device(), 3);
      launch(square, 3, loop.x, scratch);
      loop.x.copy_from(scratch);
    });
    Loop all(device());
    Array<float> y = zeros<float>(device(), 3);
    all.record(6, 0, [&](int) {
      launch(square, 3, all.x, y);
      all.x.copy_from(y);
    });
    const Floats expected = all.gradient();
    EXPECT_EQ(loop.gradient(), expected) << slots << " slots";
    loop.tape.zero();
    EXPECT_EQ(loop.gradient(), expected) << slots << " slots, again";
  }
  // The array's first content is not made again, because a step could depend on it.
  Loop loop(device());
  Array<float> sum;
  loop.record(3, 1, [&](int) {
    if (sum.is_null()) sum = ones<float>(device(), 3);
    launch(multiply, 3, sum, loop.x);
    loop.x.copy_from(sum);
  });
  expect_contains(error_of([&] { loop.gradient(); }), "step 0 of checkpointed() does something else");
}

TEST_P(TapeStepsAgain, an_array_handed_to_the_next_step_is_refused) {
  for (int slots : {1, 2, 20}) {
    Loop loop(device());
    Array<float> before = loop.x;
    loop.record(5, slots, [&](int) {
      Array<float> after = Array<float>::empty(device(), 3);
      launch(square, 3, before, after);
      before = after;
    });
    expect_contains(error_of([&] { loop.gradient_from(before); }), "of checkpointed()");
    // The handle now names an array that a second run made.
    expect_contains(error_of([&] { loop.gradient_from(before); }), "of checkpointed()");
  }
}

TEST_P(TapeStepsAgain, an_array_of_each_step_that_the_next_one_uses_is_refused_for_every_number_of_slots) {
  for (int slots : {1, 2, 20}) {
    Loop loop(device());
    std::vector<Array<float>> path(6);
    path[0] = loop.x;
    loop.record(5, slots, [&](int k) {
      path[std::size_t(k) + 1] = Array<float>::empty(device(), 3);
      launch(square, 3, path[std::size_t(k)], path[std::size_t(k) + 1]);
    });
    expect_contains(error_of([&] { loop.gradient_from(path[5]); }), "of checkpointed()");
  }
}

TEST_P(TapeStepsAgain, an_array_that_a_step_made_and_the_loss_needs_is_refused) {
  Loop loop(device());
  Array<float> y, z = zeros<float>(device(), 3);
  loop.record(4, 2, [&](int) {
    launch(scale, 3, loop.x, 2.f);
    y = loop.x.clone();
  });
  loop.tape.record([&] { launch(square, 3, y, z); });
  std::string message = error_of([&] { loop.gradient_from(z); });
  expect_contains(message, "step 3 of checkpointed() makes an array that is used after the steps");
  expect_contains(message, "before checkpointed()");
  // y is another array now.
  message = error_of([&] { loop.tape.record([&] { launch(square, 3, y, z); }); });
  expect_contains(message, "of checkpointed() made when it was run again");
  expect_contains(error_of([&] { loop.gradient_from(y); }), "of checkpointed() made when it was run again");
}

TEST_P(TapeStepsAgain, gradients_of_arrays_made_in_a_step_are_refused) {
  Loop loop(device());
  Array<float> by;
  loop.record(2, 2, [&](int) {
    by = Array<float>(device(), {1, 2, 3}).requires_grad();
    launch(multiply, 3, loop.x, by);
  });
  expect_contains(error_of([&] { loop.gradient(); }), "step 1 of checkpointed() makes an array with requires_grad()");
  // There is an array for each step, and the first is still there when the steps run again.
  Loop each(device());
  std::vector<Array<float>> list;
  each.record(2, 2, [&](int) {
    list.push_back(Array<float>(device(), {1, 2, 3}).requires_grad());
    launch(multiply, 3, each.x, list.back());
  });
  expect_contains(error_of([&] { each.gradient(); }),
                  "step 1 of checkpointed() makes an array that has requires_grad()");
  // The gradient of an array that is gone cannot be asked for.
  Loop local(device());
  local.record(2, 2, [&](int) { launch(multiply, 3, local.x, full<float>(device(), 3, 2).requires_grad()); });
  EXPECT_EQ(local.gradient(), Floats(3, 4));

  // States that are only looked at may be kept.
  Loop looked(device());
  std::vector<Array<float>> states;
  looked.record(3, 2, [&](int) {
    launch(scale, 3, looked.x, 2.f);
    states.push_back(looked.x.clone());
  });
  EXPECT_EQ(looked.gradient(), Floats(3, 8));
  EXPECT_EQ(states[1].to_vector(), (Floats{2, 3.6f, 4.4f}));
  for (std::size_t k : {1u, 2u, 3u})
    expect_contains(error_of([&] { looked.tape.gradient(states[k]); }), "of checkpointed() made");
}

TEST_P(TapeStepsAgain, steps_inside_a_step_are_compared) {
  for (const bool same : {true, false}) {
    Loop loop(device());
    float count = 1;
    Array<float> seen = ones<float>(device(), 3);
    loop.record(3, 2, [&](int) {
      loop.tape.checkpointed(4, 2, [&](int) {
        Tape::unrecorded([&] { launch(scale, 3, seen, 1.5f); });
        launch(scale, 3, loop.x, same ? 2.f : count += 1);
      });
      launch(scale, 3, loop.x, 0.5f);
    });
    if (same)
      EXPECT_EQ(loop.gradient(), Floats(3, 512));
    else
      expect_contains(error_of([&] { loop.gradient(); }), "scale");
  }
}

TEST_P(TapeStepsAgain, another_tape_inside_a_step_is_refused) {
  Loop loop(device()), other(device());
  expect_contains(error_of([&] { loop.record(3, 2, [&](int) { other.record(1, 0, [](int) {}); }); }),
                  "record() of another tape inside a step of checkpointed()");
}

// A thread that changes arrays that a tape has read, at any moment.
class Writer {
 public:
  explicit Writer(std::function<void()> write)
      : thread_([this, write = std::move(write)] {
          while (!stop_) write(), ++writes_;
        }) {}
  ~Writer() {
    stop_ = true;
    thread_.join();
  }
  void wait_for(int writes) const {
    while (writes_ < writes) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> writes_ = 0;
  std::thread thread_;
};

TEST_P(TapeStepsAgain, another_thread_may_change_what_was_read) {
  for (int repeat = 0; repeat < (on_reference() ? 20 : 40); ++repeat) {
    Loop loop(device());
    std::vector<Array<float>> by;
    for (int k = 0; k < 60; ++k) {
      by.push_back(full<float>(device(), 3, k % 2 ? 2.f : 0.5f));
      loop.record(1, 0, [&](int) { launch(multiply, 3, loop.x, by.back()); });
    }
    // The way back begins with the last arrays, and the writer with the first: they meet.
    const Writer writer([&] {
      for (Array<float> a : by) a.fill(7);
    });
    EXPECT_EQ(loop.gradient(), Floats(3, 1));
  }
}

TEST_P(TapeStepsAgain, a_tape_may_end_while_another_thread_changes_what_its_steps_touched) {
  Array<float> by = ones<float>(device(), 6);
  int count = 0;
  const Writer writer([&] { by.slice(3, 6).fill(float(++count % 100)); });
  for (int repeat = 0; repeat < (on_reference() ? 20 : 60); ++repeat) {
    Loop loop(device());
    loop.record(4, 3, [&](int) {
      launch(multiply, 3, loop.x, by.slice(0, 3));
      Tape::unrecorded([&] { launch(scale, 1, by.slice(3, 6), 0.5f); });
    });
    writer.wait_for(1);
    if (repeat % 2 == 0) continue;
    EXPECT_EQ(loop.gradient(), Floats(3, 1));
  }
}

TEST_P(TapeStepsAgain, a_look_at_a_gradient_changes_nothing) {
  const auto run = [&](int slots) {
    Loop loop(device());
    const auto by = Array<float>(device(), {2, 3, 4}).requires_grad();
    loop.record(3, slots, [&](int) {
      launch(multiply, 3, loop.x, by);
      by.grad().at(0);
      by.grad().to_vector();
    });
    loop.gradient();
    return by.grad().to_vector();
  };
  const Floats expected = run(0);
  EXPECT_NE(expected[0], 0);
  for (int slots : {1, 2, 5}) EXPECT_EQ(run(slots), expected) << slots << " slots";
}

TEST_P(TapeStepsAgain, steps_that_work_on_gradients_are_refused) {
  Array<float> g = zeros<float>(device(), 3);
  const auto refused = [&](const std::function<void(Loop&)>& step) {
    Loop loop(device());
    expect_contains(error_of([&] { loop.record(3, 2, [&](int) { step(loop); }); }),
                    "works on the gradient of an array");
  };
  refused([&](Loop& l) { launch(multiply, 3, l.x, l.x.grad()); });
  refused([&](Loop& l) { g.copy_from(l.x.grad()); });
  refused([&](Loop& l) { l.x.zero_grad(); });
}

TEST_P(TapeStepsAgain, handles_of_what_the_step_made_are_not_swapped) {
  const auto cube = kernel("cube", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()] * x[tid()]; });
  for (int slots : {1, 2, 5}) {
    Loop loop(device());
    Array<float> a, b;
    loop.record(1, slots, [&](int) {
      if (a.is_null()) a = zeros<float>(device(), 3), b = zeros<float>(device(), 3);
      launch(square, 3, loop.x, a);
      launch(cube, 3, loop.x, b);
      std::swap(a, b);
    });
    expect_contains(error_of([&] { loop.gradient_from(b); }), "step 0 of checkpointed()");
  }
}

}  // namespace
