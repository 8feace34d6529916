// Recording by a scope, and adjoints that are launched by themselves.
#include <optional>

#include "../../../runtime/tape/adjoint_launch.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeScopes);

using Floats = std::vector<float>;

const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) {
  auto i = tid();
  y[i] = x[i] * x[i];
});
const auto add_scaled = kernel("add scaled", [](Arr<const float> x, Arr<float> y, Float a) {
  auto i = tid();
  y[i] += a * x[i];
});

Array<float> ones_like_of(const Array<float>& a) { return ones<float>(a.device(), a.size()); }

TEST_P(TapeScopes, record_from_their_beginning_to_their_end) {
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> y = zeros<float>(device(), 3), z = zeros<float>(device(), 3);
  Tape tape;
  launch(square, 3, x, z);
  {
    const TapeScope recording(tape);
    launch(square, 3, x, y);
  }
  launch(add_scaled, 3, x, z, 5.f);
  EXPECT_EQ(tape.size(), 1u);
  tape.backward({{y, ones_like_of(y)}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{2, 4, 6}));
}

TEST_P(TapeScopes, the_innermost_one_records) {
  auto x = Array<float>(device(), {3}).requires_grad();
  Array<float> y = zeros<float>(device(), 1), z = zeros<float>(device(), 1);
  Tape outer, inner;
  {
    const TapeScope first(outer);
    {
      const TapeScope second(inner);
      launch(square, 1, x, z);
    }
    launch(add_scaled, 1, x, y, 7.f);
  }
  EXPECT_EQ(outer.size(), 1u);
  EXPECT_EQ(inner.size(), 1u);
  inner.backward(z);
  EXPECT_EQ(x.grad().at(0), 6);
  outer.backward(y);
  EXPECT_EQ(x.grad().at(0), 13);
}

TEST_P(TapeScopes, a_tape_may_end_before_its_scope) {
  auto x = Array<float>(device(), {3}).requires_grad();
  Array<float> y = zeros<float>(device(), 1);
  std::optional<Tape> tape(std::in_place);
  {
    const TapeScope recording(*tape);
    tape.reset();
    launch(square, 1, x, y);
  }
  EXPECT_EQ(y.at(0), 9);
  launch(square, 1, x, y);
}

TEST_P(TapeScopes, refuse_what_record_refuses) {
  Tape gone;
  const Tape kept = std::move(gone);
  const std::string e = error_of([&] { const TapeScope recording(gone); });
  expect_contains(e, "moved from");
  expect_contains(e, "tape_scope_test.cpp");
}

/// Launches the adjoint of a kernel of arrays of floats.
void go_back(detail::KernelCore& kernel, std::int64_t threads, std::vector<Array<float>> arrays,
             std::vector<std::optional<Array<float>>> gradients, const float* value = nullptr) {
  std::vector<detail::HostArg> args;
  std::vector<detail::GivenGradient> given;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    args.emplace_back().array = &arrays[k];
    args.back().argument = int(k) + 1;
    given.push_back({gradients[k] ? &*gradients[k] : nullptr, detail::Layout<float>::leaves});
  }
  if (value) {
    args.emplace_back().value = value;
    args.back().leaves = detail::Layout<float>::leaves;
    given.emplace_back();
  }
  detail::launch_adjoint(kernel, nullptr, threads, args, given);
}

TEST_P(TapeScopes, an_adjoint_adds_to_the_gradients_that_the_caller_gives) {
  const Array<float> x(device(), {1, 2, 3}), y(device(), {7, 7, 7});
  const Array<float> by_x(device(), {100, 100, 100}), by_y(device(), {1, 10, 100});
  go_back(square.core(), 3, {x, y}, {by_x, by_y});
  EXPECT_EQ(by_x.to_vector(), (Floats{102, 140, 700}));
  EXPECT_EQ(by_y.to_vector(), (Floats{1, 10, 100}));
  EXPECT_EQ(y.to_vector(), (Floats{7, 7, 7})) << "arrays stay as they are";
  EXPECT_FALSE(x.has_grad());
}

TEST_P(TapeScopes, an_adjoint_takes_gradient_storage_where_none_is_given) {
  const auto x = Array<float>(device(), {1, 2, 3}).requires_grad(), y = zeros<float>(device(), 3).requires_grad();
  y.grad().assign(Floats{1, 2, 3});
  const float scale = 5;
  go_back(add_scaled.core(), 3, {x, y}, {std::nullopt, std::nullopt}, &scale);
  EXPECT_EQ(x.grad().to_vector(), (Floats{5, 10, 15}));
  EXPECT_EQ(y.to_vector(), Floats(3));
}

TEST_P(TapeScopes, an_adjoint_needs_a_gradient_to_begin_with) {
  const Array<float> x(device(), {1, 2}), y(device(), {0, 0}), by_x(device(), {0, 0}), short_one(device(), {0});
  expect_contains(error_of([&] {
                    go_back(square.core(), 2, {x, y}, {by_x, std::nullopt});
                  }),
                  "no array that the kernel writes has a gradient");
  expect_contains(error_of([&] { go_back(square.core(), 2, {x, y}, {by_x, short_one}); }), "another shape");
}

}  // namespace
