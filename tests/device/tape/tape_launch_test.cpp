// Gradients through launches on a tape against closed forms: elements that later launches overwrite or several share.
#include <cmath>
#include <numeric>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

/// Arrays that elements hold.
struct Factors {
  Array<float> by;
  Array<int> count;
};
WEFT_STRUCT(Factors, by, count);

DEVICE_TEST(TapeLaunch);

using Floats = std::vector<float>;

void expect_near(const Floats& found, const Floats& expected, float tolerance = 1e-5f) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_NEAR(found[k], expected[k], tolerance * std::max(1.f, std::abs(expected[k]))) << "element " << k;
}

const auto square = kernel("square", [](Arr<const float> a, Arr<float> b) { b[tid()] = a[tid()] * a[tid()]; });
const auto scale = kernel("scale", [](Arr<const float> a, Arr<float> b, Float s) { b[tid()] = s * a[tid()]; });
const auto sum = kernel("sum", [](Arr<const float> a, Arr<float> total) { atomic_add(total[0], a[tid()]); });
const auto set = kernel("set", [](Arr<float> a, Float value) { a[tid()] = value; });

TEST_P(TapeLaunch, a_loss_through_several_launches) {
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> y = zeros<float>(device(), 3), z = zeros<float>(device(), 3), loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(square, 3, x, y);
    launch(scale, 3, y, z, 0.5f);
    launch(sum, 3, z, loss);
  });
  EXPECT_EQ(tape.size(), 3u);
  tape.backward(loss);
  expect_near(x.grad().to_vector(), {1, 2, 3});
  EXPECT_EQ(loss.at(0), 7);
  EXPECT_FALSE(y.has_grad());
  tape.backward(loss);
  expect_near(x.grad().to_vector(), {2, 4, 6});
  tape.zero();
  expect_near(x.grad().to_vector(), {0, 0, 0});
}

TEST_P(TapeLaunch, an_overwritten_output_passes_only_the_last_value) {
  auto x = Array<float>(device(), {5}).requires_grad();
  Array<float> b = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(square, 1, x, b);
    launch(scale, 1, x, b, 3.f);
  });
  tape.backward(b);
  expect_near(x.grad().to_vector(), {3});
}

TEST_P(TapeLaunch, a_launch_that_only_overwrites_stops_the_gradient) {
  auto x = Array<float>(device(), {5, 6}).requires_grad();
  Array<float> b = zeros<float>(device(), 2), loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    launch(square, 2, x, b);
    launch(set, 1, b, 7.f);
    launch(sum, 2, b, loss);
  });
  tape.backward(loss);
  expect_near(x.grad().to_vector(), {0, 12});
}

TEST_P(TapeLaunch, an_input_that_a_later_launch_overwrites_is_kept) {
  auto a = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> c(device(), {-1, -2, -3}), b = zeros<float>(device(), 3), loss = zeros<float>(device(), 1);
  const auto assign = kernel("assign", [](Arr<const float> from, Arr<float> to) { to[tid()] = from[tid()]; });
  Tape tape;
  tape.record([&] {
    launch(square, 3, a, b);
    launch(assign, 3, c, a);
    launch(sum, 3, b, loss);
  });
  tape.backward(loss);
  expect_near(a.grad().to_vector(), {2, 4, 6});
  EXPECT_EQ(a.to_vector(), (Floats{-1, -2, -3})) << "arrays keep their final values";
  // The gradients are the same if code changes the arrays while the tape does not record.
  tape.zero();
  a.fill(100);
  b.fill(200);
  tape.backward(loss);
  expect_near(a.grad().to_vector(), {2, 4, 6});
}

TEST_P(TapeLaunch, a_buffer_that_is_used_again_and_a_state_in_place) {
  auto p = Array<float>(device(), {0.6f}).requires_grad();
  Array<float> f = zeros<float>(device(), 1);
  const auto force = kernel("force", [](Arr<const float> p, Arr<float> f) { f[tid()] = sin(p[tid()]); });
  const auto move = kernel("move", [](Arr<float> p, Arr<const float> f) { p[tid()] += f[tid()] * p[tid()]; });
  Tape tape;
  tape.record([&] {
    for (int step = 0; step < 2; ++step) {
      launch(force, 1, p, f);
      launch(move, 1, p, f);
    }
  });
  for (int k = 1; k <= 2; ++k) {
    tape.backward(p);
    expect_near(p.grad().to_vector(), {4.86421f * float(k)});
  }
}

TEST_P(TapeLaunch, many_threads_share_a_parameter) {
  auto w = Array<float>(device(), {3}).requires_grad();
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  Array<float> o = zeros<float>(device(), 1);
  const auto k = kernel(
      "shared", [](Arr<const float> w, Arr<const float> x, Arr<float> o) { atomic_add(o[0], w[0] * w[0] * x[tid()]); });
  Tape tape;
  tape.record([&] { launch(k, 4, w, x, o); });
  tape.backward(o);
  expect_near(w.grad().to_vector(), {60});
  expect_near(x.grad().to_vector(), {9, 9, 9, 9});
}

TEST_P(TapeLaunch, one_array_given_twice) {
  auto x = Array<float>(device(), {2, 3}).requires_grad();
  const auto k = kernel("twice", [](Arr<const float> a, Arr<float> b) { b[tid()] = a[tid()] * a[tid()]; });
  Tape tape;
  tape.record([&] {
    launch(k, 2, x, x);
    launch(k, 2, x, x);
  });
  EXPECT_EQ(x.to_vector(), (Floats{16, 81}));
  tape.backward({{x, ones<float>(device(), 2)}});
  expect_near(x.grad().to_vector(), {32, 108});
}

// Arguments that are known to be one array tell nothing about the other arguments.
TEST_P(TapeLaunch, one_array_given_twice_beside_a_sum_by_atomic_additions) {
  auto x = Array<float>(device(), {2, 3}).requires_grad();
  auto w = Array<float>(device(), {5}).requires_grad();
  Array<float> total = zeros<float>(device(), 1), most(device(), {-100});
  const auto k = kernel("square and add", [](Arr<const float> a, Arr<float> b, Arr<const float> w, Arr<float> total,
                                             Arr<float> again, Arr<float> most) {
    Int i = tid();
    b[i] = a[i] * a[i];
    atomic_add(total[0], a[i] * w[0]);
    atomic_add(again[0], Float(b[i]));
    atomic_max(most[0], Float(b[i]));
  });
  Tape tape;
  tape.record([&] { launch(k, 2, x, x, w, total, total, most); });
  EXPECT_EQ(total.at(0), (4 + 9) * 5 + 4 + 9);
  tape.backward({{total, ones_like(total)}, {most, Array<float>(device(), {10})}});
  expect_near(x.grad().to_vector(), {4 * 6, 6 * 6 + 10 * 6});
  expect_near(w.grad().to_vector(), {13});
}

// A run of the stores counts them, including those through the other name.
TEST_P(TapeLaunch, one_array_given_twice_keeps_its_elements_where_stores_are_counted) {
  const auto k = kernel("count stores", [](Arr<const float> a, Arr<float> b, Arr<float> p, Arr<const int> n) {
    Int i = tid();
    for (auto j : range(n[i])) p[i] = p[i] * (a[i] + Float(j));
    b[i] -= 0.5f;
  });
  auto x = Array<float>(device(), {2, 3}).requires_grad();
  auto p = ones<float>(device(), 2).requires_grad();
  const Array<int> n(device(), {2, 1});
  Tape tape;
  tape.record([&] { launch(k, 2, x, x, p, n); });
  tape.backward({{p, ones_like(p)}, {x, Array<float>(device(), {10, 20})}});
  EXPECT_EQ(x.to_vector(), (Floats{1.5f, 2.5f}));
  EXPECT_EQ(p.to_vector(), (Floats{6, 3}));
  expect_near(x.grad().to_vector(), {10 + 5, 20 + 1});
  expect_near(p.grad().to_vector(), {6, 3});
}

// The condition of the stores reads one name, and the kernel changes the array through the other.
TEST_P(TapeLaunch, one_array_given_twice_decides_how_many_stores_there_are) {
  const auto k = kernel("conditional stores", [](Arr<const float> a, Arr<float> b, Arr<float> p, Arr<const int> n) {
    Int i = tid();
    for ([[maybe_unused]] auto j : range(n[i])) {
      If (a[i] > 2.5f) {
        p[i] = p[i] * a[i];
      }
      b[i] += 1.0f;
    }
  });
  auto x = Array<float>(device(), {2, 3}).requires_grad();
  auto p = ones<float>(device(), 2).requires_grad();
  const Array<int> n(device(), {4, 2});
  Tape tape;
  tape.record([&] { launch(k, 2, x, x, p, n); });
  tape.backward({{p, ones_like(p)}, {x, Array<float>(device(), {10, 20})}});
  EXPECT_EQ(x.to_vector(), (Floats{6, 5}));
  EXPECT_EQ(p.to_vector(), (Floats{60, 12}));
  expect_near(x.grad().to_vector(), {10 + 4 * 5 + 3 * 5 + 3 * 4, 20 + 3 + 4});
  expect_near(p.grad().to_vector(), {60, 12});
}

TEST_P(TapeLaunch, views_of_one_array_that_do_not_overlap) {
  auto x = zeros<float, 2>(device(), {4, 3}).requires_grad();
  x[0].assign(Floats{1, 2, 3});
  Tape tape;
  tape.record([&] {
    for (int row = 0; row < 3; ++row) launch(square, 3, x[row], x[row + 1]);
  });
  tape.backward({{x[3], ones<float>(device(), 3)}});
  expect_near(x[0].grad().to_vector(), {8, 1024, 17496});
  Array<float, 2> columns = x.transpose();
  Tape second;
  auto y = zeros<float, 2>(device(), {3, 4}).requires_grad();
  y.slice(0, 1, 1, 1).fill(2);
  second.record([&] {
    for (int k = 0; k < 3; ++k) launch(square, 3, y.transpose()[k], y.transpose()[k + 1]);
  });
  second.backward({{y.transpose()[3], ones<float>(device(), 3)}});
  EXPECT_EQ(y.grad().at(0, 0), 8 * 128.f);
}

TEST_P(TapeLaunch, loops_that_carry_and_store_in_an_array) {
  // v becomes v^(2^n) in place, by a loop whose stores the adjoint must undo: more threads than one dispatch takes.
  const auto k = kernel("powers", [](Arr<float> v, Arr<const int> n) {
    Int i = tid();
    for (auto j : range(n[i])) {
      (void)j;
      v[i] = v[i] * v[i];
    }
  });
  const int count = 100;
  Floats values, expected;
  std::vector<int> steps;
  for (int i = 0; i < count; ++i) {
    values.push_back(0.9f + 0.002f * float(i));
    steps.push_back(i % 5);
    const double power = std::pow(2.0, i % 5);
    expected.push_back(float(power * std::pow(values.back(), power - 1)));
  }
  auto v = Array<float>(device(), values).requires_grad();
  Array<int> n(device(), steps);
  TapeOptions options;
  options.scratch_bytes = 8192;
  Tape tape(options);
  tape.record([&] { launch(k, count, v, n); });
  n.fill(0);
  const Floats after = v.to_vector();
  for (int repeat = 0; repeat < 2; ++repeat) {
    tape.zero();
    tape.backward({{v, ones<float>(device(), count)}});
    expect_near(v.grad().to_vector(), expected, 1e-4f);
    EXPECT_EQ(v.to_vector(), after);
  }
}

TEST_P(TapeLaunch, over_several_dimensions_and_with_structs) {
  auto x = zeros<vec3, 2>(device(), {3, 4}).requires_grad();
  x.fill(vec3{1, 2, 3});
  Array<float> loss = zeros<float>(device(), 1);
  const auto k = kernel("lengths", [](Arr<const vec3, 2> x, Arr<float> loss) {
    auto [i, j] = tid<2>();
    atomic_add(loss[0], dot(x(i, j), x(i, j)) * Float(i + 10 * j));
  });
  Tape tape;
  tape.record([&] { launch(k, {3, 4}, x, loss); });
  tape.backward(loss);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) EXPECT_EQ(x.grad().at(i, j), (vec3{2, 4, 6} * float(i + 10 * j))) << i << " " << j;
}

TEST_P(TapeLaunch, an_output_by_atomic_additions_of_several_launches) {
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  auto loss = zeros<float>(device(), 1).requires_grad();
  Tape tape;
  tape.record([&] {
    launch(sum, 2, x, loss);
    launch(sum, 2, x, loss);
  });
  tape.backward(loss);
  expect_near(x.grad().to_vector(), {2, 2});
  expect_near(loss.grad().to_vector(), {1}, 0);
}

TEST_P(TapeLaunch, gradients_do_not_leave_what_they_belong_to) {
  // There are two independent results on one tape: a call for one leaves the other alone.
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  auto u = Array<float>(device(), {3, 4}).requires_grad();
  Array<float> y = zeros<float>(device(), 2), v = zeros<float>(device(), 2);
  Tape tape;
  tape.record([&] {
    launch(square, 2, x, y);
    launch(square, 2, u, v);
  });
  tape.backward({{y, ones<float>(device(), 2)}});
  expect_near(x.grad().to_vector(), {2, 4});
  expect_near(u.grad().to_vector(), {0, 0});
  tape.backward({{v, ones<float>(device(), 2)}});
  expect_near(x.grad().to_vector(), {2, 4});
  expect_near(u.grad().to_vector(), {6, 8});
}

TEST_P(TapeLaunch, a_kernel_without_derivative_is_refused_with_its_line) {
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  Array<float> y = zeros<float>(device(), 2);
  const auto bad = kernel(
      "bad", [](Arr<const float> x, Arr<float> y) { y[tid()] = atomic_exchange(y[tid()], x[tid()]) + x[tid()]; });
  Tape tape;
  tape.record([&] {
    const std::string message = error_of([&] { launch(bad, 2, x, y); });
    expect_contains(message, "bad");
    expect_contains(message, "tape_launch_test.cpp:");
  });
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_EQ(y.to_vector(), Floats(2)) << "a refused launch is not made";
}

TEST_P(TapeLaunch, arguments_that_overlap_in_part_are_refused) {
  auto x = zeros<float>(device(), 4).requires_grad();
  Tape tape;
  tape.record([&] {
    const std::string message = error_of([&] { launch(square, 3, x.slice(0, 3), x.slice(1, 4)); });
    expect_contains(message, "square");
    expect_contains(message, "argument 1 and argument 2 share a part of their elements");
  });
  launch(square, 3, x.slice(0, 3), x.slice(1, 4));
  EXPECT_EQ(tape.size(), 0u);
}

TEST_P(TapeLaunch, scratch_beyond_its_budget_is_refused) {
  auto v = Array<float>(device(), {1, 2}).requires_grad();
  const auto k = kernel("long", [](Arr<float> v, Int n) {
    for (auto j : range(n)) {
      (void)j;
      v[tid()] = sin(v[tid()]);
    }
  });
  TapeOptions options;
  options.scratch_bytes = 4096;
  Tape tape(options);
  tape.record([&] { launch(k, 2, v, 1000); });
  const std::string message = error_of([&] { tape.backward({{v, ones<float>(device(), 2)}}); });
  expect_contains(message, "long");
  expect_contains(message, "TapeOptions::scratch_bytes is 4096");
  expect_contains(message, "1000 elements");
}

TEST_P(TapeLaunch, an_element_that_two_threads_store_is_found) {
  auto x = Array<float>(device(), {1, 2}).requires_grad();
  Array<float> y = zeros<float>(device(), 1);
  const auto k = kernel("race", [](Arr<const float> x, Arr<float> y) { y[0] = x[tid()]; });
  const int line = __LINE__ - 1;
  Tape tape;
  tape.record([&] { launch(k, 2, x, y); });
  tape.backward(y);
  try {
    x.grad().to_vector();
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::not_differentiable);
    EXPECT_EQ(e.kernel(), "race");
    EXPECT_EQ(e.loc().line, line);
    expect_contains(e.what(), "tape_launch_test.cpp:");
    expect_contains(e.message(), "argument 2 gets an element from several threads");
    expect_contains(e.message(), "atomic_add()");
    EXPECT_EQ(e.message().find("assertion"), std::string::npos) << e.message();
  }
}

TEST_P(TapeLaunch, an_element_that_threads_of_two_dispatches_store_is_found) {
  struct LowLimit {
    detail::DeviceState& state;
    const std::int64_t before;
    ~LowLimit() { state.max_threads = before; }
  } limit{*device().state(), device().state()->max_threads};
  limit.state.max_threads = 24;
  // Thread i of each dispatch has the same number in it.
  const auto k = kernel("wide_race", [](Arr<const float> x, Arr<float> y, Int n) {
    Int64 i = tid64();
    y[(Int64(n) - i + Int64(48)) % Int64(n)] = x[i];
  });
  const auto gradient = [&](int threads, int n) {
    auto many = full<float>(device(), threads, 2).requires_grad();
    Array<float> y = zeros<float>(device(), n);
    Tape tape;
    tape.record([&] { launch(k, threads, many, y, n); });
    tape.backward({{y, ones<float>(device(), n)}});
    return many.grad().to_vector();
  };
  EXPECT_EQ(gradient(48, 48), Floats(48, 1));
  EXPECT_EQ(gradient(70, 96), Floats(70, 1));
  for (int n : {24, 30}) expect_contains(error_of([&] { gradient(48, n); }), "several threads");
}

TEST_P(TapeLaunch, a_gradient_that_the_launch_reads_is_as_it_was) {
  auto x = Array<float>(device(), {10, 20, 30, 40}).requires_grad();
  Array<float> y = zeros<float>(device(), 4);
  x.grad().assign(Floats{1, 2, 3, 4});
  const auto k = kernel(
      "by_gradient", [](Arr<const float> x, Arr<const float> g, Arr<float> y) { y[tid()] = x[tid()] * g[3 - tid()]; });
  Tape tape;
  tape.record([&] { launch(k, 4, x, x.grad(), y); });
  tape.backward({{y, ones<float>(device(), 4)}});
  EXPECT_EQ(x.grad().to_vector(), Floats(4, 5));
}

TEST_P(TapeLaunch, an_array_seen_through_indices) {
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  const Array<int> list(device(), {3, 1, 3});
  Array<float> y = zeros<float>(device(), 3);
  const auto k = kernel("gathered", [](IndexedArr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  Tape tape;
  tape.record([&] { launch(k, 3, indexed(x, list), y); });
  tape.backward({{y, Array<float>(device(), {1, 10, 100})}});
  expect_near(x.grad().to_vector(), {0, 40, 0, 808});
}

TEST_P(TapeLaunch, of_more_threads_than_one_dispatch_has) {
  struct LowLimit {
    detail::DeviceState& state;
    const std::int64_t before;
    ~LowLimit() { state.max_threads = before; }
  } limit{*device().state(), device().state()->max_threads};
  limit.state.max_threads = 24;
  const auto k = kernel("wide", [](Arr<float, 2> v, Arr<const float> w) {
    auto [i, j] = tid<2>();
    for (auto n : range(3)) {
      (void)n;
      v(i, j) = v(i, j) * w[0];
    }
  });
  Floats values(70);
  std::iota(values.begin(), values.end(), 1.f);
  auto v = Array<float, 2>(device(), {10, 7}, values).requires_grad();
  auto w = Array<float>(device(), {2}).requires_grad();
  TapeOptions options;
  options.scratch_bytes = 2048;
  Tape tape(options);
  tape.record([&] { launch(k, {10, 7}, v, w); });
  tape.backward({{v, ones<float, 2>(device(), {10, 7})}});
  expect_near(v.grad().to_vector(), Floats(70, 8));
  expect_near(w.grad().to_vector(), {12 * 70 * 71 / 2.f});
}

TEST_P(TapeLaunch, on_several_streams) {
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> y = zeros<float>(device(), 3), z = zeros<float>(device(), 3);
  Stream a = device().create_stream(), b = device().create_stream();
  Tape tape;
  tape.record([&] {
    launch(a, square, 3, x, y);
    launch(b, square, 3, y, z);
    launch(a, scale, 3, z, y, 2.f);
  });
  launch(b, set, 3, x, 0.f);
  tape.backward({{y, ones<float>(device(), 3)}});
  expect_near(x.grad().to_vector(), {8, 64, 216});
}

TEST_P(TapeLaunch, ten_thousand_launches_that_fill_a_trajectory) {
  if (on_reference()) GTEST_SKIP() << "the same on every device, and slow on this one";
  constexpr int kSteps = 10000;
  auto path = zeros<float, 2>(device(), {kSteps + 1, 4}).requires_grad();
  path[0].fill(1);
  // 1 is a fixed point, with the slope 1.
  const auto step = kernel("step", [](Arr<const float> x, Arr<float> y) {
    Float v = x[tid()];
    y[tid()] = 0.5f * (v * v + 1.f);
  });
  Tape tape;
  tape.record([&] {
    for (int k = 0; k < kSteps; ++k) launch(step, 4, path[k], path[k + 1]);
    path.slice(0, kSteps / 2).fill(3);
  });
  tape.backward({{path[kSteps], ones<float>(device(), 4)}});
  EXPECT_EQ(path[0].grad().to_vector(), Floats(4, 1)) << "filled later on the tape, after it was read";
}

// Neighbouring float16 elements lie in one word.
TEST_P(TapeLaunch, threads_that_store_neighbouring_halves_are_not_taken_for_one) {
  const int n = 64;
  const auto k = kernel("reverse", [](Arr<const half> x, Arr<half> y) {
    Int i = tid();
    y[x.shape(0) - 1 - i] = x[i] * Half(2);
  });
  auto x = ones<half>(device(), n).requires_grad();
  auto y = zeros<half>(device(), n);
  Tape tape;
  tape.record([&] { launch(k, n, x, y); });
  tape.backward({{y, ones_like(y)}});
  for (half g : x.grad().to_vector()) EXPECT_EQ(float(g), 2);
}

TEST_P(TapeLaunch, a_part_of_a_wide_store_that_another_thread_stores_is_found) {
  const auto k = kernel("part", [](Arr<const float> x, Arr<vec4> y) {
    Int i = tid();
    If (i == 0) {
      y[1 - i] = Vec4(x[i], x[i], x[i], x[i]);
    }
    Else { y[i][1] = x[i]; }
  });
  auto x = ones<float>(device(), 2).requires_grad();
  auto y = zeros<vec4>(device(), 2);
  Tape tape;
  tape.record([&] { launch(k, 2, x, y); });
  expect_contains(error_of([&] {
                    tape.backward({{y, ones_like(y)}});
                    device().synchronize();
                  }),
                  "argument 2");
}

TEST_P(TapeLaunch, a_gradient_of_the_tape_may_be_the_seed) {
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  auto x = full<float>(device(), 1, 3).requires_grad();
  auto y = zeros<float>(device(), 1).requires_grad();
  auto z = zeros<float>(device(), 1);
  Tape one, two;
  one.record([&] { launch(square, 1, x, y); });
  two.record([&] { launch(square, 1, y, z); });
  two.backward(z);
  one.backward({{y, y.grad()}});
  EXPECT_EQ(x.grad().at(0), 2 * 9 * 2 * 3);
}

TEST_P(TapeLaunch, arrays_may_go_before_the_way_back) {
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  auto x = full<float>(device(), 4, 3).requires_grad();
  auto z = zeros<float>(device(), 4);
  Tape tape;
  {
    auto y = zeros<float>(device(), 4);
    tape.record([&] {
      launch(square, 4, x, y);
      launch(square, 4, y, z);
    });
  }
  (void)full<float>(device(), 4, 77);
  tape.backward({{z, ones_like(z)}});
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>(4, 108)));
}

TEST_P(TapeLaunch, more_slots_than_there_can_be_are_refused) {
  const auto k = kernel("loop", [](Arr<const float> x, Arr<float> y, Int n) {
    Float v = x[tid()];
    for ([[maybe_unused]] auto i : range(n)) v = v * v;
    y[tid()] = v;
  });
  auto x = ones<float>(device(), 1).requires_grad();
  auto y = zeros<float>(device(), 1);
  Tape tape({.loop_slots = 1u << 30});
  expect_contains(error_of([&] { tape.record([&] { launch(k, 1, x, y, 3); }); }), "65536");
}

TEST_P(TapeLaunch, arrays_that_elements_hold_stay_as_they_were_or_the_way_back_is_refused) {
  const auto factor = kernel(
      "factor", [](Arr<const float> x, Arr<const Factors> held, Arr<float> y) { y[0] = x[0] * detach(held[0].by[0]); });
  const auto power = kernel("power", [](Arr<const float> x, Arr<const Factors> held, Arr<float> y) {
    Float v = 1.f;
    for ([[maybe_unused]] auto j : range(held[0].count[0])) v = v * x[0];
    y[0] = v;
  });
  Array<float> by = full<float>(device(), 1, 2.f);
  Array<int> count = full<int>(device(), 1, 2);
  const Array<Factors> held(device(), std::vector<Factors>{{by, count}});
  for (const auto* k : {&factor, &power})
    for (const bool changes : {false, true}) {
      Array<float> x = full<float>(device(), 1, 3.f).requires_grad(), y = zeros<float>(device(), 1);
      Tape tape;
      tape.record([&] {
        launch(*k, 1, x, held, y);
        if (changes) k == &factor ? by.fill(2) : count.fill(2);
      });
      if (changes) {
        expect_contains(error_of([&] { tape.backward(y); }),
                        "an array that elements of its arguments hold has changed");
        EXPECT_EQ(x.grad().at(0), 0);
      } else {
        tape.backward(y);
        EXPECT_EQ(x.grad().at(0), k == &factor ? 2 : 6);
      }
    }
}

TEST_P(TapeLaunch, an_array_that_a_kernel_changes_and_finds_in_an_element_too_is_refused) {
  Array<float> by = full<float>(device(), 1, 2.f);
  const Array<Factors> held(device(), std::vector<Factors>{{by, full<int>(device(), 1, 2)}});
  Array<float> x = full<float>(device(), 1, 3.f).requires_grad();
  Tape tape;
  expect_contains(error_of([&] {
                    tape.record([&] {
                      launch(kernel("both", [](Arr<const float> x, Arr<const Factors> held,
                                               Arr<float> y) { y[0] = x[0] * detach(held[0].by[0]); }),
                             1, x, held, by);
                    });
                  }),
                  "an element of an argument holds it too");
}

}  // namespace
