// Mistakes with tapes and gradients: refused by name.
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeErrors);

using Floats = std::vector<float>;

struct Held {
  Array<float> values;
  int level;
};
WEFT_STRUCT(Held, values, level);

// y = x on a tape.
struct Recorded {
  Array<float> x, y;
  Tape tape;
  explicit Recorded(const Device& device)
      : x(Array<float>(device, {1, 2}).requires_grad()), y(zeros<float>(device, 2)) {
    tape.record([&] { y.copy_from(x); });
  }
};

TEST_P(TapeErrors, an_array_without_a_gradient_says_how_it_gets_one) {
  Array<float> x = zeros<float>(device(), 2), null;
  expect_contains(error_of([&] { x.grad(); }), "requires_grad()");
  expect_contains(error_of([&] { null.grad(); }), "null array");
  expect_contains(error_of([&] { null.requires_grad(); }), "null array");
  Tape tape;
  expect_contains(error_of([&] { tape.gradient(x); }), "carries none");
  expect_contains(error_of([&] { tape.gradient(null); }), "null array");
}

TEST_P(TapeErrors, a_loss_is_one_number) {
  Recorded r(device());
  expect_contains(error_of([&] { r.tape.backward(r.y); }), "backward() of an array of 2 elements");
  expect_contains(error_of([&] { r.tape.backward(Array<float>()); }), "null array");
}

TEST_P(TapeErrors, a_loss_that_nothing_recorded_computes_is_refused) {
  Recorded r(device());
  Array<float> loss = zeros<float>(device(), 1);
  expect_contains(error_of([&] { r.tape.backward(loss); }), "nothing on the tape computes");
  expect_contains(error_of([&] { r.tape.backward({{r.x, r.x}}); }), "nothing on the tape computes");
  Tape empty;
  expect_contains(error_of([&] { empty.backward(loss); }), "a tape that recorded nothing");
}

TEST_P(TapeErrors, seeds_are_of_the_same_shape_and_device) {
  Recorded r(device());
  expect_contains(error_of([&] {
                    r.tape.backward({{r.y, zeros<float>(device(), 3)}});
                  }),
                  "dimension 0 has 3 elements, that of the array 2");
  expect_contains(error_of([&] { r.tape.backward({{r.y, Array<float>()}}); }), "null array");
  if (on_reference()) return;
  const Device other("reference");
  expect_contains(error_of([&] {
                    r.tape.backward({{r.y, zeros<float>(other, 2)}});
                  }),
                  "a seed on device reference for an array on " + device().name());
}

TEST_P(TapeErrors, the_way_back_is_outside_of_the_recording) {
  Recorded r(device());
  Tape other;
  other.record([&] {
    expect_contains(error_of([&] { r.tape.backward({{r.y, r.x}}); }), "while a tape records");
    expect_contains(error_of([&] { other.reset(); }), "reset() of a tape that records");
    expect_contains(error_of([&] { r.tape.record_func([] {}, r.y); }), "outside record()");
    expect_contains(error_of([&] { other.record_func([] {}, Array<float>()); }), "null array");
  });
}

TEST_P(TapeErrors, operations_that_a_tape_cannot_follow_are_refused) {
  Recorded r(device());
  const Array<int> list(device(), {1, 0});
  Array<float> plain = zeros<float>(device(), 2);
  r.tape.record([&] {
    expect_contains(error_of([&] { indexed(r.x, list).clone(); }), "a copy of an indexed array");
    expect_contains(error_of([&] { indexed(r.x, list).copy_from(plain); }), "a copy to an indexed array");
    indexed(plain, list).clone();
    expect_contains(error_of([&] { plain.view_as<int>().copy_from(r.x.view_as<int>()); }),
                    "as elements of another type");
    if (device().wraps_host()) {
      Array<float> wrapped = wrap(device(), Floats{1, 2}).requires_grad();
      expect_contains(error_of([&] { wrapped.host_span(); }), "host_span() of an array that carries gradients");
    }
  });
  EXPECT_EQ(r.tape.size(), 1u) << "what is refused is not recorded";
}

TEST_P(TapeErrors, an_error_in_a_function_of_the_caller_leaves_the_arrays_as_they_were) {
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  Tape tape;
  tape.record([&] {
    tape.record_func([&] { throw Error(ErrorKind::invalid_argument, "mine"); }, x);
    x.fill(5);
    x.slice(0, 1).copy_from(x.slice(1));
  });
  tape.record([&] { tape.record_func([] {}, x); });
  expect_contains(error_of([&] { tape.backward({{x, ones<float>(device(), 2)}}); }), "mine");
  EXPECT_EQ(x.to_vector(), (Floats{5, 5}));
}

TEST_P(TapeErrors, gradients_do_not_pass_arrays_inside_of_elements) {
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  Array<float> y = zeros<float>(device(), 2), plain = zeros<float>(device(), 2);
  const Array<Held> carrying(device(), {Held{x, 1}}), other(device(), {Held{plain, 2}});
  const auto read = kernel("read", [](Arr<const Held> h, Arr<float> y) {
    Var<Held> held = h[0];
    y[tid()] = held.values[tid()];
  });
  const auto write = kernel("write", [](Arr<const float> x, Arr<const Held> h) {
    Var<Held> held = h[0];
    held.values[tid()] = x[tid()];
  });
  const auto level = kernel(
      "level", [](Arr<const Held> h, Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * Float(h[0].level); });
  Tape tape;
  tape.record([&] {
    const std::string message = error_of([&] { launch(read, 2, carrying, y); });
    expect_contains(message, "tape_errors_test.cpp:");
    expect_contains(message, "an element of another array holds");
    expect_contains(error_of([&] { launch(write, 2, x, other); }), "an element of another array holds");
    launch(read, 2, other, y);
    EXPECT_EQ(tape.size(), 0u);
    launch(level, 2, carrying, x, y);
  });
  tape.backward({{y, Array<float>(device(), {1, 10})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{1, 10}));
}

TEST_P(TapeErrors, a_function_on_the_way_back_does_not_use_its_tape) {
  auto x = ones<float>(device(), 1).requires_grad();
  for (int what = 0; what < 3; ++what) {
    Tape tape;
    tape.record([&] {
      tape.record_func(
          [&] {
            if (what == 0) tape.backward({{x, ones_like(x)}});
            if (what == 1) tape.reset();
            if (what == 2) tape.record([] {});
          },
          x);
    });
    expect_contains(error_of([&] { tape.backward({{x, ones_like(x)}}); }), "on its way back");
  }
}

TEST_P(TapeErrors, tapes_and_functions_that_are_not_there_are_refused) {
  auto x = ones<float>(device(), 1).requires_grad();
  Tape tape;
  const std::function<void()> nothing;
  expect_contains(error_of([&] { tape.record(nothing); }), "Tape::record() is given an empty function");
  expect_contains(error_of([&] { Tape::unrecorded(nothing); }), "Tape::unrecorded() is given an empty function");
  tape.record([&] {
    expect_contains(error_of([&] { tape.record_func(nothing, x); }), "Tape::record_func() is given an empty function");
    expect_contains(error_of([&] { tape.checkpointed(2, 1, nullptr); }), "Tape::checkpointed() is given an empty");
  });
  const Tape taken = std::move(tape);
  for (const auto& use :
       {std::function<void()>([&] { tape.record([] {}); }), std::function<void()>([&] { tape.zero(); }),
        std::function<void()>([&] { tape.reset(); }), std::function<void()>([&] { (void)tape.size(); }),
        std::function<void()>([&] { (void)tape.gradient(x); }), std::function<void()>([&] {
          tape.backward({{x, ones_like(x)}});
        })})
    expect_contains(error_of(use), "a tape that was moved from");
  EXPECT_EQ(taken.size(), 0u);
}

}  // namespace
