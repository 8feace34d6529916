// Arrays of a tape that change outside of the recording, between recorded operations.
#include <weft/algorithms.h>
#include <weft/runtime/graph.h>

#include <cmath>
#include <thread>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeOutside);

using Floats = std::vector<float>;

const auto add_squares =
    kernel("add squares", [](Arr<const float> x, Arr<float> sum) { atomic_add(sum[0], x[tid()] * x[tid()]); });
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto scale = kernel("scale", [](Arr<float> data, Float by) { data[tid()] *= by; });
const auto move = kernel("move", [](Arr<float> x, Arr<const float> v) { x[tid()] += v[tid()]; });

/// Records y = x^2; then something changes y; then y is added up.
struct Twice {
  Array<float> x, y, loss;
  Tape tape;
  explicit Twice(const Device& device)
      : x(Array<float>(device, {1, 2, 3, 4}).requires_grad()),
        y(zeros<float>(device, 4)),
        loss(zeros<float>(device, 1)) {
    tape.record([&] { launch(square, 4, x, y); });
  }
  void add_up() {
    tape.record([&] { launch(add_squares, 4, y, loss); });
  }
  Floats gradient() {
    add_up();
    tape.backward(loss);
    return x.grad().to_vector();
  }
};

TEST_P(TapeOutside, a_loss_that_is_set_to_zero_between_two_records_counts_the_second) {
  auto x = full<float>(device(), 3, 1.f).requires_grad();
  auto loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(add_squares, 3, x, loss); });
  loss.fill(0);
  tape.record([&] { launch(add_squares, 3, x, loss); });
  tape.backward(loss);
  EXPECT_EQ(loss.at(0), 3);
  EXPECT_EQ(x.grad().to_vector(), (Floats{2, 2, 2}));
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_vector(), (Floats{4, 4, 4})) << "calls add up";
}

TEST_P(TapeOutside, a_record_that_an_exception_left_counts_until_the_loss_is_set_to_zero) {
  for (const bool zero : {false, true}) {
    auto x = full<float>(device(), 3, 1.f).requires_grad();
    auto loss = zeros<float>(device(), 1);
    Tape tape;
    EXPECT_THROW(tape.record([&] {
      launch(add_squares, 3, x, loss);
      throw 5;
    }),
                 int);
    if (zero) loss.fill(0);
    tape.record([&] { launch(add_squares, 3, x, loss); });
    tape.backward(loss);
    EXPECT_EQ(loss.at(0), zero ? 3 : 6);
    EXPECT_EQ(x.grad().at(0), zero ? 2 : 4);
  }
}

// To find the thread that stored the largest, the adjoint changes the array itself, and takes the changes back.
TEST_P(TapeOutside, what_an_adjoint_takes_back_is_no_change) {
  const auto largest =
      kernel("largest", [](Arr<const float> x, Float by, Arr<float> most) { atomic_max(most[0], x[tid()] * by); });
  Array<float> x = Array<float>(device(), {1, 2, 3, 4}).requires_grad(), most = zeros<float>(device(), 1);
  Tape tape;
  for (const float by : {1.f, 2.f}) {
    tape.record([&] { launch(largest, 4, x, by, most); });
    tape.backward(most);
  }
  EXPECT_EQ(most.at(0), 8);
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0, 1 + 2}));
}

TEST_P(TapeOutside, elements_that_the_host_or_a_copy_replaces_end_gradients) {
  const Array<float> other = ones<float>(device(), 2);
  const Array<int> list(device(), {1, 2});
  const std::vector<std::function<void(Array<float>&)>> replace = {
      [](auto& y) { y.slice(1, 3).fill(7); },
      [](auto& y) {
        y.slice(1, 3).assign(Floats{7, 8});
      },
      [&](auto& y) { y.slice(1, 3).copy_from(other); },
      [](auto& y) { y.slice(1, 2).fill(7), y.slice(2, 3).fill(8); },
      [&](auto& y) { y.slice(1, 3).copy_from(indexed(y, list).clone()); },
      [](auto& y) { y.slice(1, 3).zero(), launch(scale, 2, y.slice(1, 3), 2.f); },
      [](auto& y) { launch(scale, 2, y.slice(1, 3), 2.f), y.slice(1, 3).zero(); },
      [](auto& y) { std::thread([&] { y.slice(1, 3).fill(7); }).join(); },
      [](auto& y) { Tape().record([&] { y.slice(1, 3).fill(7); }); },
      [](auto& y) { inclusive_scan(y.slice(1, 3), y.slice(1, 3)); },
  };
  for (std::size_t k = 0; k < replace.size(); ++k) {
    Twice t(device());
    replace[k](t.y);
    EXPECT_EQ(t.gradient(), (Floats{4, 0, 0, 256})) << k;
  }
}

TEST_P(TapeOutside, elements_of_a_strided_view_end_gradients) {
  Twice t(device());
  t.y.slice(0, 4, 2).fill(7);
  EXPECT_EQ(t.gradient(), (Floats{0, 32, 0, 256}));
}

TEST_P(TapeOutside, work_on_what_a_kernel_changed_is_refused) {
  const auto with_launch = [&](const std::function<void(Array<float>&)>& change) {
    Twice t(device());
    change(t.y);
    return error_of([&] { t.add_up(); });
  };
  const std::string message = with_launch([](auto& y) { launch(scale, 2, y.slice(2, 4), 2.f); });
  expect_contains(message, "add squares");
  expect_contains(message, "tape_outside_test.cpp:");
  expect_contains(message, "argument 1 holds what recorded work computed");
  expect_contains(message, "kernel \"scale\" (through argument 1) changed it outside of record()");
  expect_contains(message, "reset()");
  expect_contains(with_launch([](auto& y) { launch(scale, 2, y.slice(0, 4, 2), 2.f); }), "kernel \"scale\"");
  expect_contains(with_launch([](auto& y) { launch(scale, 4, y, 2.f), y.slice(0, 3).fill(1); }), "kernel \"scale\"");
  expect_contains(with_launch([](auto& y) { Tape().record([&] { launch(scale, 4, y, 2.f); }); }), "kernel \"scale\"");
  expect_contains(with_launch([](auto& y) { capture(y.device(), [&] { launch(scale, 4, y, 2.f); }).launch(); }),
                  "graph");
  expect_contains(
      with_launch([&](auto& y) { indexed(y, Array<int>(device(), {2})).copy_from(ones<float>(device(), 1)); }),
      "a copy to an indexed array");
  if (device().wraps_host()) {
    auto x = full<float>(device(), 1, 3.f).requires_grad();
    Array<float> y = wrap(device(), Floats{1}), z = zeros<float>(device(), 1);
    Tape tape;
    tape.record([&] { y.copy_from(x); });
    y.host_span()[0] = 5;
    expect_contains(error_of([&] { tape.record([&] { z.copy_from(y); }); }), "host_span() changed it");
  }
}

TEST_P(TapeOutside, every_recorded_operation_on_what_a_kernel_changed_is_refused) {
  Twice t(device());
  Array<float> z = zeros<float>(device(), 4), one = zeros<float>(device(), 1);
  launch(scale, 4, t.y, 2.f);
  t.tape.record([&] {
    expect_contains(error_of([&] { z.copy_from(t.y); }), "the source of a copy");
    expect_contains(error_of([&] { reduce_sum(t.y, one); }), "kernel \"scale\"");
    expect_contains(error_of([&] { launch(square, 4, t.x, t.y); }), "kernel \"scale\"");
    expect_contains(error_of([&] { t.tape.checkpointed(1, 1, [&](int) { launch(square, 4, t.y, z); }); }),
                    "kernel \"scale\"");
  });
  EXPECT_EQ(t.tape.size(), 1u) << "what is refused is not recorded";
  t.tape.reset();
  t.tape.record([&] { launch(square, 4, t.x, t.y); });
  EXPECT_EQ(t.gradient(), (Floats{4, 32, 108, 256}));
}

TEST_P(TapeOutside, recorded_work_that_replaces_what_a_kernel_changed_goes_on) {
  Twice t(device());
  launch(scale, 4, t.y, 2.f);
  t.tape.record([&] { t.y.copy_from(t.x); });
  EXPECT_EQ(t.gradient(), (Floats{2, 4, 6, 8}));
}

TEST_P(TapeOutside, other_parts_of_an_array_may_change) {
  Twice t(device());
  Array<float> all = zeros<float>(device(), 8), y = all.slice(0, 4), mine = all.slice(4, 8);
  t.tape.record([&] { y.copy_from(t.y); });
  launch(scale, 4, mine, 2.f);
  mine.fill(3);
  t.tape.record([&] { launch(add_squares, 8, all, t.loss); });
  t.tape.backward(t.loss);
  EXPECT_EQ(t.x.grad().to_vector(), (Floats{4, 32, 108, 256}));
}

TEST_P(TapeOutside, what_is_not_used_any_more_may_change) {
  Twice t(device());
  t.add_up();
  launch(scale, 4, t.y, 2.f);
  t.y.fill(77);
  t.tape.record([&] { launch(add_squares, 4, t.x, t.loss); });
  t.tape.backward(t.loss);
  EXPECT_EQ(t.x.grad().to_vector(), (Floats{6, 36, 114, 264}));
}

TEST_P(TapeOutside, the_way_back_begins_with_what_recorded_work_left) {
  Twice t(device());
  t.add_up();
  t.loss.fill(0);
  launch(scale, 1, t.loss, 2.f);
  t.y.fill(5);
  t.tape.backward(t.loss);
  EXPECT_EQ(t.x.grad().to_vector(), (Floats{4, 32, 108, 256}));
}

TEST_P(TapeOutside, arrays_that_are_read_only_do_not_change) {
  Twice t(device());
  Array<float> z = zeros<float>(device(), 4);
  launch(move, 4, z, t.y);
  EXPECT_EQ(t.y.to_vector(), (Floats{1, 4, 9, 16}));
  EXPECT_EQ(t.gradient(), (Floats{4, 32, 108, 256}));
}

TEST_P(TapeOutside, a_leaf_gathers_the_gradients_by_all_its_values) {
  auto x = full<float>(device(), 1, 3.f).requires_grad();
  auto loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(add_squares, 1, x, loss); });
  x.fill(5);
  tape.record([&] { launch(add_squares, 1, x, loss); });
  launch(scale, 1, x, 2.f);
  tape.record([&] { launch(add_squares, 1, x, loss); });
  tape.backward(loss);
  EXPECT_EQ(loss.at(0), 9 + 25 + 100);
  EXPECT_EQ(x.grad().at(0), 6 + 10 + 20);
}

// Recorded work changes this array, too, and a part of it is given new elements.
TEST_P(TapeOutside, an_array_with_gradient_storage_gathers_those_by_all_values_that_it_was_given) {
  auto x = Array<vec2>(device(), std::vector<vec2>{{1, 2}, {3, 4}}).requires_grad();
  const auto scale_pairs = kernel("scale pairs", [](Arr<vec2> p, Float by) { p[tid()] *= by; });
  const auto add_lengths =
      kernel("add lengths", [](Arr<const vec2> p, Arr<float> sum) { atomic_add(sum[0], dot(p[tid()], p[tid()])); });
  auto loss = zeros<float>(device(), 1);
  Tape tape;
  const auto step = [&] {
    tape.record([&] {
      launch(scale_pairs, 2, x, 2.f);
      launch(add_lengths, 2, x, loss);
    });
  };
  step();  // 4 x^2
  x.slice(1, 2).fill(vec2{5, 6});
  step();  // 16 x^2 for the first element, 4 x^2 for the other
  for (const float times : {1.f, 2.f}) {
    tape.backward(loss);
    EXPECT_EQ(x.grad().at(0), (vec2{(8 + 32) * times, (16 + 64) * times}));
    EXPECT_EQ(x.grad().at(1), (vec2{(24 + 40) * times, (32 + 48) * times}));
  }
}

TEST_P(TapeOutside, a_way_back_after_each_step_of_an_optimisation_needs_no_reset) {
  auto x = full<float>(device(), 1, 1.f).requires_grad();
  auto y = zeros<float>(device(), 1), loss = zeros<float>(device(), 1);
  Tape tape;
  for (int k = 0; k < 3; ++k) {
    loss.fill(0);
    tape.record([&] {
      launch(square, 1, x, y);
      launch(add_squares, 1, y, loss);
    });
    x.zero_grad();
    tape.backward(loss);
    const float now = x.at(0);
    EXPECT_FLOAT_EQ(x.grad().at(0), 4 * now * now * now);
    launch(move, 1, x, full<float>(device(), 1, 0.5f));
    y.fill(float(k));
  }
}

TEST_P(TapeOutside, record_func_stands_for_changes_of_its_arrays) {
  Twice t(device());
  Array<float> z = zeros<float>(device(), 4);
  t.tape.record([&] {
    z.copy_from(t.y);
    Tape::unrecorded([&] { launch(scale, 4, z, 2.f); });
    Tape::unrecorded([&] { t.y.slice(1, 3).assign(Floats{8, 18}); });  // twice the values before
    expect_contains(error_of([&] { t.tape.record_func([] {}, z.slice(0, 4, 2)); }), "kernel \"scale\"");
    t.tape.record_func([&] { launch(scale, 2, t.tape.gradient(t.y).slice(1, 3), 2.f); }, t.y);
  });
  EXPECT_EQ(t.gradient(), (Floats{4, 128, 432, 256}));
}

// Changes that steps make beside the recording are made again with the steps.
TEST_P(TapeOutside, steps_are_gone_back_through_as_what_they_do) {
  const auto gradient = [&](int slots, bool replaced_first) {
    auto x = Array<float>(device(), {1, 2}).requires_grad();
    auto y = zeros<float>(device(), 2), sum = zeros<float>(device(), 1);
    Tape tape;
    const auto step = [&](int k) {
      if (replaced_first) Tape::unrecorded([&] { y.slice(0, 1).fill(float(k)); });
      launch(move, 2, y, x);
      launch(add_squares, 2, y, sum);
      if (!replaced_first) Tape::unrecorded([&] { y.slice(0, 1).fill(float(k)); });
    };
    tape.record([&] { launch(square, 2, x, y); });
    y.slice(1, 2).fill(5);
    tape.record([&] {
      if (slots == 0)
        for (int k = 0; k < 6; ++k) step(k);
      else
        tape.checkpointed(6, slots, step);
    });
    tape.backward({{sum, ones<float>(device(), 1)}, {y, Array<float>(device(), {0, 1000})}});
    return x.grad().to_vector();
  };
  for (const bool first : {false, true})
    for (const int slots : {1, 2, 6}) EXPECT_EQ(gradient(slots, first), gradient(0, first)) << slots << first;

  Twice t(device());
  t.tape.record([&] {
    expect_contains(error_of([&] {
                      t.tape.checkpointed(3, 2, [&](int) {
                        launch(move, 4, t.y, t.x);
                        Tape::unrecorded([&] { launch(scale, 4, t.y, 2.f); });
                      });
                    }),
                    "kernel \"scale\" (through argument 1) changed it outside of record()");
  });
}

TEST_P(TapeOutside, a_way_back_leaves_what_is_known) {
  Twice t(device());
  Array<float> z = zeros<float>(device(), 4);
  t.tape.record([&] {
    t.tape.checkpointed(5, 2, [&](int) { launch(move, 4, z, t.x); });
    launch(add_squares, 4, z, t.loss);
  });
  launch(scale, 4, t.y, 2.f);
  t.tape.backward(t.loss);
  expect_contains(error_of([&] { t.add_up(); }), "kernel \"scale\"");
  t.tape.record([&] { launch(move, 4, z, t.x); });  // backward() has only set z to earlier states meanwhile
}

TEST_P(TapeOutside, many_parts_are_told_apart_or_refused) {
  const int n = 2000;
  auto x = full<float>(device(), n, 1.f).requires_grad();
  auto y = zeros<float>(device(), n), loss = zeros<float>(device(), 1);
  for (const int every : {1, 16, 2}) {
    Tape tape;
    x.zero_grad();
    tape.record([&] { y.copy_from(x); });
    for (int i = 0; i < n; i += every) y.slice(i, i + 1).fill(2);
    const auto add_up = [&] { tape.record([&] { launch(add_squares, n, y, loss); }); };
    if (every == 2) {
      expect_contains(error_of(add_up), "fill() and others");
      continue;
    }
    add_up();
    tape.backward(loss);
    const Floats g = x.grad().to_vector();
    for (int i = 0; i < n; ++i) ASSERT_EQ(g[std::size_t(i)], i % every == 0 ? 0 : 2) << i;
  }
}

TEST_P(TapeOutside, a_capture_of_it_all_does_the_same) {
  auto x = full<float>(device(), 3, 1.f).requires_grad();
  auto loss = zeros<float>(device(), 1);
  const Graph graph = capture(device(), [&] {
    Tape tape;
    x.zero_grad();
    tape.record([&] { launch(add_squares, 3, x, loss); });
    loss.fill(0);
    tape.record([&] { launch(add_squares, 3, x, loss); });
    tape.backward(loss);
  });
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    EXPECT_EQ(x.grad().to_vector(), (Floats{2, 2, 2}));
  }
}

}  // namespace
