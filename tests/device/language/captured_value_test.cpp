// Host values that a kernel's function reads are constant from the first launch on, in every form of the kernel.
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(CapturedValues);

constexpr const char* kRefused = "does something else than when it was first launched or exported";

TEST_P(CapturedValues, are_constants_from_the_first_launch_on) {
  float factor = 2;
  const auto scale = kernel("scale", [&](Arr<const float> x, Arr<float> y) { y[0] = factor * x[0]; });
  const Array<float> x = ones<float>(device(), 1), y = zeros<float>(device(), 1);
  launch(scale, 1, x, y);
  factor = 100;
  launch(scale, 1, x, y);
  EXPECT_EQ(y.at(0), 2);
}

TEST_P(CapturedValues, that_have_changed_are_refused_by_gradients) {
  float factor = 2;
  const auto scale = kernel("scale", [&](Arr<const float> x, Arr<float> y) { y[0] = factor * x[0]; });
  Array<float> x = ones<float>(device(), 1);
  x.requires_grad();
  const Array<float> y = zeros<float>(device(), 1);
  launch(scale, 1, x, y);
  factor = 100;
  const std::string said = error_of([&] {
    Tape tape;
    tape.record([&] { launch(scale, 1, x, y); });
    tape.backward(y);
  });
  expect_contains(said, kRefused);
  expect_contains(said, "captured_value_test.cpp");
  expect_contains(said, "\"scale\"");
  factor = 2;
  Tape tape;
  tape.record([&] { launch(scale, 1, x, y); });
  tape.backward(y);
  EXPECT_EQ(x.grad().at(0), 2);
}

TEST_P(CapturedValues, that_have_changed_are_refused_by_every_other_form_of_the_kernel) {
  int shift = 1;
  const auto add = kernel("add", [&](Arr<int> x) { x[tid()] += shift; });
  Array<int, 2> x = zeros<int, 2>(device(), {4, 4});
  launch(add, 4, x[0]);
  shift = 5;
  // These forms are traced anew: an array with strides, debug mode, another device.
  const Array<int> column = x.transpose()[0];
  expect_contains(error_of([&] { launch(add, 4, column); }), kRefused);
  set_debug(true);
  const std::string checked = error_of([&] { launch(add, 4, x[0]); });
  set_debug(false);
  expect_contains(checked, kRefused);
  const Device other = Device::open(on_reference() ? "cpu" : "reference");
  expect_contains(error_of([&] { launch(add, 4, zeros<int>(other, 4)); }), kRefused);
  launch(add, 4, x[0]);
  EXPECT_EQ(x.at(0, 0), 2);
  EXPECT_EQ(column.at(1), 0);
}

TEST_P(CapturedValues, that_have_changed_are_refused_by_exports) {
  float factor = 2;
  int traces = 0;
  const auto scale = kernel("scale", [&](Arr<const float> x, Arr<float> y) {
    if (++traces == 2) factor = 3;  // between the two traces of one export
    y[0] = factor * x[0];
  });
  expect_contains(error_of([&] { scale.spirv({.adjoint = true}); }), kRefused);
  const auto launched = kernel("launched", [&](Arr<const float> x, Arr<float> y) { y[0] = factor * x[0]; });
  launch(launched, 1, ones<float>(device(), 1), zeros<float>(device(), 1));
  factor = 4;
  expect_contains(error_of([&] { launched.spirv(); }), kRefused);
  factor = 3;
  EXPECT_FALSE(launched.spirv().words.empty());
}

TEST_P(CapturedValues, may_change_after_an_export_that_failed) {
  int shown = 1;
  const auto prints = kernel("prints", [&](Arr<int> x) {
    if (shown) print("x", x[0]);
    x[0] = 7 + shown;
  });
  expect_contains(error_of([&] { prints.spirv(); }), "cannot be exported");
  shown = 0;
  const Array<int> x = zeros<int>(device(), 1);
  launch(prints, 1, x);
  EXPECT_EQ(x.at(0), 7);
}

TEST_P(CapturedValues, exports_within_a_kernel_are_refused) {
  std::function<void()> inside;
  const auto itself = kernel("itself", [&](Arr<int> x) {
    inside();
    x[0] = 1;
  });
  inside = [&] { itself.spirv(); };
  expect_contains(error_of([&] { launch(itself, 1, zeros<int>(device(), 1)); }),
                  "it is exported while a kernel is traced");
}

/// Nests loops, each of one round.
void loops(const Arr<int>& x, int depth) {
  if (depth == 0) {
    x[0] += 1;
    return;
  }
  for ([[maybe_unused]] auto round : range(x.shape(0))) loops(x, depth - 1);
}

TEST_P(CapturedValues, may_change_after_a_launch_that_could_not_be_compiled) {
  // No Vulkan device takes as many nested loops; devices on the host do.
  int depth = 100;
  const auto deep = kernel("deep", [&](Arr<int> x) { loops(x, depth); });
  const Array<int> x = zeros<int>(device(), 1);
  if (!on_host()) {
    expect_contains(error_of([&] { launch(deep, 1, x); }), "loops are nested 100 deep");
    depth = 3;
  }
  launch(deep, 1, x);
  EXPECT_EQ(x.at(0), 1);
}

TEST_P(CapturedValues, that_stay_as_they_are_disturb_no_form) {
  const float factor = 3;
  const auto scale = kernel("scale", [&](Arr<float> x, Arr<float> y) { atomic_add(y[0], factor * x[tid()]); });
  Array<float, 2> x = ones<float, 2>(device(), {4, 4});
  x.requires_grad();
  const Array<float> y = zeros<float>(device(), 1);
  for (const bool debug : {false, true}) {
    set_debug(debug);
    for (const Array<float>& part : {x[1], x.transpose()[1]}) {
      Tape tape;
      tape.record([&] { launch(scale, 4, part, y); });
      tape.backward(y);
    }
  }
  set_debug(false);
  EXPECT_EQ(x.grad().at(1, 1), 12);
  EXPECT_EQ(x.grad().at(1, 2), 6);
  EXPECT_EQ(x.grad().at(2, 2), 0);
}

TEST_P(CapturedValues, that_the_trace_itself_changes_are_refused) {
  int traces = 0;
  const auto count = kernel("count", [&](Arr<int> x) { x[tid()] = ++traces; });
  Array<int, 2> x = zeros<int, 2>(device(), {2, 2});
  launch(count, 2, x[0]);
  EXPECT_EQ(x.at(0, 1), 1);
  expect_contains(error_of([&] { launch(count, 2, x.transpose()[0]); }), kRefused);
}

}  // namespace
