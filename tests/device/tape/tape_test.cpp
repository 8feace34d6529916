// Gradients through recorded operations: copies, fills, functions of the caller, and arrays that change on the way.
#include <cmath>
#include <numeric>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(TapeTest);

using Floats = std::vector<float>;

TEST_P(TapeTest, a_gradient_is_an_array_of_the_same_shape_and_zero_at_first) {
  auto x = Array<vec3, 2>(device(), {2, 2}, std::vector<vec3>(4, vec3{1, 2, 3})).requires_grad();
  EXPECT_TRUE(x.has_grad());
  EXPECT_FALSE(zeros<float>(device(), 3).has_grad());
  EXPECT_EQ(x.grad().to_vector(), std::vector<vec3>(4));
  EXPECT_EQ(x.grad().shape(0), 2);
  x.grad().fill(vec3{1, 1, 1});
  EXPECT_EQ(x.requires_grad().grad().at(1, 1), (vec3{1, 1, 1})) << "a second call changes nothing";
  x.zero_grad();
  EXPECT_EQ(x.grad().at(1, 1), vec3{});
}

TEST_P(TapeTest, views_have_views_of_the_gradient) {
  Array<float, 2> a = zeros<float, 2>(device(), {3, 4});
  Array<float> column_before = a.slice(1, 2, 1, 1).slice(0, 1).flatten();
  a.slice(1, 3).requires_grad();
  Array<float, 2> g = a.grad();
  std::vector<float> counting(12);
  std::iota(counting.begin(), counting.end(), 0.f);
  g.assign(counting);
  EXPECT_EQ(a[1].grad().to_vector(), (Floats{4, 5, 6, 7}));
  EXPECT_EQ((a.slice(0, 4, 2, 1).grad().to_vector()), (Floats{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(a.transpose().grad().at(3, 2), 11);
  EXPECT_EQ(column_before.grad().at(0), 1) << "a view from before requires_grad()";
  EXPECT_FALSE(a.clone().has_grad());
}

TEST_P(TapeTest, copies_pass_gradients_on) {
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  Array<float> y = zeros<float>(device(), 4), z = zeros<float>(device(), 2);
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    z.copy_from(y.slice(0, 4, 2));
  });
  EXPECT_EQ(tape.size(), 2u);
  tape.backward({{y, Array<float>(device(), {1, 10, 100, 1000})}, {z, Array<float>(device(), {5, 7})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{6, 10, 107, 1000}));
  tape.backward({{z, Array<float>(device(), {1, 1})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{7, 10, 108, 1000})) << "calls add up";
  tape.zero();
  EXPECT_EQ(x.grad().to_vector(), Floats(4));
}

TEST_P(TapeTest, fills_and_assignments_stop_gradients) {
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  Array<float> y = zeros<float>(device(), 4);
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    y.slice(0, 1).fill(9);
    y.slice(1, 2).assign(Floats{8});
    y.slice(2, 4, 2).zero();
  });
  tape.backward({{y, ones<float>(device(), 4)}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 0, 1}));
}

TEST_P(TapeTest, copies_inside_one_array_pass_each_gradient_to_where_the_value_came_from) {
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  Tape tape;
  // x becomes 1, 1, 2, 3.
  tape.record([&] { x.slice(1).copy_from(x.slice(0, 3)); });
  tape.backward({{x, Array<float>(device(), {1, 10, 100, 1000})}});
  EXPECT_EQ(x.to_vector(), (Floats{1, 1, 2, 3}));
  EXPECT_EQ(x.grad().to_vector(), (Floats{11, 100, 1000, 0}));
  // The tape changes the array; a second call must not take the result of the first for a seed.
  tape.backward({{x, Array<float>(device(), {1, 10, 100, 1000})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{22, 200, 2000, 0}));
}

TEST_P(TapeTest, copies_of_ranges_and_clones_are_recorded) {
  auto x = Array<float>(device(), {1, 2, 3, 4}).requires_grad();
  Array<float> y = zeros<float>(device(), 3), z;
  Tape tape;
  tape.record([&] {
    copy(y, x, 1, 2, 2);
    z = y.clone();
  });
  tape.backward({{z, Array<float>(device(), {1, 10, 100})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{0, 0, 10, 100}));
}

struct Mixed {
  int id;
  float mass;
  vec3 place;
  double energy;
};
WEFT_STRUCT(Mixed, id, mass, place, energy);

TEST_P(TapeTest, the_real_numbers_of_structs_have_gradients) {
  auto x = Array<Mixed>(device(), std::vector<Mixed>(3, Mixed{7, 1, {1, 2, 3}, 4})).requires_grad();
  Array<Mixed> y = zeros<Mixed>(device(), 3);
  Tape tape;
  tape.record([&] { y.copy_from(x); });
  tape.backward({{y, Array<Mixed>(device(), std::vector<Mixed>(3, Mixed{5, 2, {3, 4, 5}, 6}))}});
  const Mixed g = x.grad().at(1);
  EXPECT_EQ(g.id, 0);
  EXPECT_EQ(g.mass, 2);
  EXPECT_EQ(g.place, (vec3{3, 4, 5}));
  EXPECT_EQ(g.energy, 6);
}

TEST_P(TapeTest, copies_to_another_device_pass_gradients_back) {
  if (on_reference()) GTEST_SKIP() << "the same device";
  const Device other("reference");
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> y, z;
  Tape tape;
  tape.record([&] {
    y = x.to(other);
    z = y.to(device());
  });
  tape.backward({{y, Array<float>(other, {1, 2, 3})}, {z, Array<float>(device(), {10, 20, 30})}});
  EXPECT_EQ(x.grad().to_vector(), (Floats{11, 22, 33}));
}

TEST_P(TapeTest, the_innermost_record_has_the_operation) {
  auto x = Array<float>(device(), {2}).requires_grad();
  Array<float> y = zeros<float>(device(), 1), z = zeros<float>(device(), 1), w = zeros<float>(device(), 1);
  Tape outer, inner;
  outer.record([&] {
    y.copy_from(x);
    inner.record([&] { z.copy_from(x); });
    outer.record([&] { w.copy_from(y); });
    Tape::unrecorded([&] { w.copy_from(x); });
  });
  EXPECT_EQ(outer.size(), 2u);
  EXPECT_EQ(inner.size(), 1u);
  outer.backward(w);
  EXPECT_EQ(x.grad().to_vector(), (Floats{1}));
  inner.backward(z);
  EXPECT_EQ(x.grad().to_vector(), (Floats{2}));
  inner.reset();
  EXPECT_EQ(inner.size(), 0u);
  expect_contains(error_of([&] { inner.backward(z); }), "recorded nothing");
}

TEST_P(TapeTest, what_no_gradient_passes_is_not_recorded) {
  Array<float> x = zeros<float>(device(), 3), y = zeros<float>(device(), 3);
  auto g = zeros<float>(device(), 3).requires_grad();
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    x.fill(1);
    Array<int> n = zeros<int>(device(), 3);
    n.fill(2);
    EXPECT_EQ(g.to_vector(), Floats(3)) << "reading is no operation";
  });
  EXPECT_EQ(tape.size(), 0u);
}

TEST_P(TapeTest, functions_of_the_caller_run_at_their_place) {
  auto x = Array<float>(device(), {3}).requires_grad();
  Array<float> u = zeros<float>(device(), 1), y = zeros<float>(device(), 1), z = zeros<float>(device(), 1);
  Tape tape;
  std::vector<std::string> order;
  // u = x; y = u^2 by the host; u = 100; z = y
  tape.record([&] {
    u.copy_from(x);
    Tape::unrecorded([&] { y.assign(Floats{u.at(0) * u.at(0)}); });
    tape.record_func(
        [&] {
          const float u_then = u.at(0), gy = tape.gradient(y).at(0), gu = tape.gradient(u).at(0);
          EXPECT_EQ(u_then, 3) << "the value of that time";
          tape.gradient(u).assign(Floats{gu + 2 * u_then * gy});
          tape.gradient(y).zero();
          order.push_back("first");
        },
        u, y);
    u.fill(100);
    tape.record_func([&] { order.push_back("second"); }, y);
    z.copy_from(y);
  });
  tape.backward(z);
  EXPECT_EQ(x.grad().to_vector(), (Floats{6}));
  EXPECT_EQ(order, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(u.at(0), 100) << "arrays hold what they held before";
}

TEST_P(TapeTest, functions_of_the_caller_run_whatever_comes_to_their_arrays) {
  auto x = Array<float>(device(), {1, 2, 3}).requires_grad();
  Array<float> loss = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] {
    tape.record_func([&] { tape.gradient(x).fill(2); }, x);
    loss.copy_from(x.slice(0, 1));
  });
  auto y = Array<float>(device(), {1}).requires_grad();
  tape.record([&] { loss.copy_from(y); });
  tape.backward(loss);
  EXPECT_EQ(x.grad().to_vector(), (Floats{2, 2, 2}));
}

TEST_P(TapeTest, elements_are_kept_for_functions_whoever_changes_them) {
  auto x = Array<float>(device(), {1, 2, 3, 4, 5, 6}).requires_grad();
  Tape tape;
  Floats all, middle, odd;
  tape.record([&] {
    tape.record_func([&] { all = x.to_vector(); }, x);
    tape.record_func([&] { middle = x.slice(2, 4).to_vector(); }, x.slice(2, 4));
    x.slice(2, 3).fill(30);
    tape.record_func([&] { odd = x.slice(0, 6, 2).to_vector(); }, x.slice(0, 6, 2));
  });
  x.slice(4, 5).fill(50);  // not recorded
  x.slice(0, 1).assign(Floats{10});
  const auto overwrite = kernel("overwrite", [](Arr<float> x) { x[tid()] = -1.f; });
  launch(overwrite, 1, x.slice(1, 2));
  const Floats final_values = x.to_vector();
  EXPECT_EQ(final_values, (Floats{10, -1, 30, 4, 50, 6}));
  for (int k = 0; k < 2; ++k) {
    tape.backward({{x, ones<float>(device(), 6)}});
    EXPECT_EQ(all, (Floats{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(middle, (Floats{3, 4}));
    EXPECT_EQ(odd, (Floats{1, 30, 5}));
    EXPECT_EQ(x.to_vector(), final_values);
  }
}

TEST_P(TapeTest, gradients_of_every_kind_of_element_pass_copies) {
  const auto check = [&]<class T>(const std::vector<T>& seed) {
    const std::int64_t n = std::int64_t(seed.size());
    auto x = Array<T>(device(), std::vector<T>(seed.size())).requires_grad();
    Array<T> y = Array<T>::zeros(device(), n), z = Array<T>::zeros(device(), n);
    Tape tape;
    tape.record([&] {
      y.copy_from(x);
      z.slice(0, n, 2).copy_from(y.slice(0, n, 2));
    });
    tape.backward({{y, Array<T>(device(), seed)}, {z, Array<T>(device(), seed)}});
    const std::vector<T> found = x.grad().to_vector();
    for (std::size_t i = 0; i < seed.size(); ++i)
      EXPECT_EQ(found[i], i % 2 == 0 ? T(seed[i] + seed[i]) : seed[i]) << sizeof(T) << " bytes, element " << i;
  };
  check(std::vector<double>{1, 2, 3});
  check(std::vector<half>{half(1.f), half(2.f), half(3.f)});
  check(std::vector<vec3>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  check(std::vector<vec<5, half>>{vec<5, half>(half(1.f)), vec<5, half>(half(2.f))});
  check(std::vector<mat33>{mat33(1.f), mat33(2.f), mat33(3.f)});
}

TEST_P(TapeTest, gradients_of_four_dimensions_pass_strided_copies) {
  auto x = zeros<vec2, 4>(device(), {2, 3, 2, 2}).requires_grad();
  auto y = zeros<vec2, 4>(device(), {2, 3, 2, 2}).requires_grad();
  std::vector<vec2> seed;
  for (int k = 0; k < 24; ++k) seed.push_back(vec2{float(k), float(-k)});
  Tape tape;
  tape.record([&] { y.slice(1, 3, 1, 1).copy_from(x.slice(0, 3, 2, 1)); });
  tape.backward({{y, Array<vec2, 4>(device(), {2, 3, 2, 2}, seed)}});
  EXPECT_EQ(x.grad().at(1, 0, 1, 0), (vec2{18, -18}));
  EXPECT_EQ(x.grad().at(1, 1, 1, 0), (vec2{0, 0}));
  EXPECT_EQ(x.grad().at(0, 2, 0, 1), (vec2{9, -9}));
  EXPECT_EQ(y.grad().at(0, 0, 0, 1), (vec2{1, -1})) << "what the copy left alone";
  EXPECT_EQ(y.grad().at(0, 1, 0, 1), (vec2{0, 0})) << "what it replaced";
}

TEST_P(TapeTest, gradients_of_wrapped_memory_are_aligned_as_it_is) {
  if (!device().wraps_host()) GTEST_SKIP() << "a device with memory of its own";
  const auto squares = kernel("squares", [](Arr<const float, 2> x, Arr<float, 2> y) {
    auto [i, j] = tid<2>();
    y(i, j) = x(i, j) * x(i, j);
  });
  Floats memory(64, 3.f);
  for (std::size_t first : {0u, 1u, 2u, 3u}) {
    Array<float> all = wrap(device(), std::span<float>(memory.data() + first, 16));
    const auto x = all.reshape<2>({4, 4}).requires_grad();
    Array<float, 2> y = zeros<float, 2>(device(), {4, 4});
    Tape tape;
    tape.record([&] { launch(squares, {4, 4}, x, y); });
    tape.backward({{y, ones<float, 2>(device(), {4, 4})}});
    EXPECT_EQ(x.grad().to_vector(), Floats(16, 6)) << first;
  }
}

}  // namespace
