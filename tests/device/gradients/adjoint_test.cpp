// Gradients of single kernels against closed forms: loops that carry, exits, arrays that are overwritten, atomics.
#include <cmath>

#include "../run_adjoint.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Adjoint);

constexpr std::uint32_t kSlots[] = {1, 2, 3, 5, 64};

/// Computes the gradients of the arguments, which must not depend on the number of slots in a single bit.
template <class T, class Make>
std::vector<std::vector<T>> gradients(Make make, std::size_t seeded, const std::vector<T>& seed,
                                      const std::vector<std::size_t>& of) {
  std::vector<std::vector<T>> first;
  for (std::uint32_t slots : kSlots) {
    AdjointLaunch launch = make();
    launch.template gradient<T>(seeded).assign(seed);
    launch.backward(slots);
    std::vector<std::vector<T>> found;
    for (std::size_t k : of) found.push_back(launch.template gradient<T>(k).to_vector());
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << "with " << slots << " slots";
  }
  return first;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << "element " << i;
}

using Values = std::vector<double>;

TEST_P(Adjoint, of_straight_line_code) {
  const auto k = kernel("straight", [](Arr<const double> x, Arr<double> y) {
    Int i = tid();
    Double v = x[i];
    y[i] = sin(v) * v + 3.0 / v;
  });
  const Values x{0.5, 1.0, 2.0};
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 3, Array<double>(device(), x), zeros<double>(device(), 3)); }, 1,
      {1, 1, 2}, {0, 1});
  Values expected;
  for (double v : x) expected.push_back(std::cos(v) * v + std::sin(v) - 3 / (v * v));
  expected[2] *= 2;
  expect_near(g[0], expected);
  expect_near(g[1], {0, 0, 0});
}

TEST_P(Adjoint, of_a_product_over_a_dynamic_loop) {
  const auto k = kernel("product", [](Arr<const double> x, Arr<double> o, Int n) {
    Double p = 1.0;
    for (auto i : range(n)) p = p * x[i];
    o[tid()] = p;
  });
  const auto product = [&](const Values& x, int n) {
    return gradients<double>(
        [&] { return adjoint_launch(device(), k, 1, Array<double>(device(), x), zeros<double>(device(), 1), n); }, 1,
        {1}, {0})[0];
  };
  expect_near(product({2, 2, 2}, 3), {4, 4, 4});
  expect_near(product({2, 2, 2}, 0), {0, 0, 0});
  expect_near(product({2, 0, 5}, 3), {0, 10, 0});
}

TEST_P(Adjoint, of_a_weighted_mean) {
  const auto k = kernel("mean", [](Arr<const double> x, Arr<const double> w, Arr<double> o, Int n) {
    Double s = 0.0, sum = 0.0;
    for (auto i : range(n)) {
      sum += w[i];
      s += x[i] * w[i];
    }
    o[tid()] = s / sum;
  });
  const Values x{1, 2, 4}, w{1, 1, 2};
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), x), Array<double>(device(), w),
                              zeros<double>(device(), 1), 3);
      },
      2, {1}, {0, 1});
  expect_near(g[0], {.25, .25, .5});
  expect_near(g[1], {(1 - 2.75) / 4, (2 - 2.75) / 4, (4 - 2.75) / 4});
}

TEST_P(Adjoint, of_newtons_square_root) {
  const auto k = kernel("newton", [](Arr<const double> x, Arr<double> o) {
    Double a = x[tid()], y = a;
    for ([[maybe_unused]] auto i : range(Int(25))) y = 0.5 * (y + a / y);
    o[tid()] = y;
  });
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 1, Array<double>(device(), {2.0}), zeros<double>(device(), 1)); }, 1,
      {1}, {0});
  expect_near(g[0], {1 / (2 * std::sqrt(2.0))});
}

TEST_P(Adjoint, of_nested_loops_whose_inner_bound_is_carried) {
  const auto k = kernel("nested", [](Arr<const double> in, Arr<double> o) {
    Double x = in[tid()], v = x;
    for (auto i : range(Int(4))) {
      for ([[maybe_unused]] auto j : range(i)) v = sin(v * x);
      v += Double(i);
    }
    o[tid()] = v;
  });
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 1, Array<double>(device(), {0.7}), zeros<double>(device(), 1)); }, 1,
      {1}, {0});
  EXPECT_NEAR(g[0][0], 0.777738, 1e-6);
}

TEST_P(Adjoint, of_a_value_from_before_a_loop_that_is_used_after_it) {
  const auto k = kernel("before", [](Arr<const double> x, Arr<const double> s, Arr<double> o, Int n) {
    Double b = x[0] * x[0], a = 0.0;
    for (auto i : range(n)) a += s[i];
    o[tid()] = a * b;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), {3.0}), Array<double>(device(), {1.0, 2.0, 4.0}),
                              zeros<double>(device(), 1), 3);
      },
      2, {1}, {0, 1});
  expect_near(g[0], {42});
  expect_near(g[1], {9, 9, 9});
}

TEST_P(Adjoint, of_continue) {
  const auto k = kernel("continue", [](Arr<const double> x, Arr<const double> c, Arr<double> o, Int n) {
    Double m = -1e20;
    for (auto i : range(n)) {
      If (c[i] == 0.0) {
        Continue();
      }
      Double v = x[0] * c[i];
      If (v > m) {
        m = v;
      }
    }
    o[tid()] = m;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), {2.0}),
                              Array<double>(device(), {1.0, 0.0, 5.0, 3.0, 0.0}), zeros<double>(device(), 1), 5);
      },
      2, {1}, {0, 1});
  expect_near(g[0], {5});
  expect_near(g[1], {0, 0, 2, 0, 0});
}

TEST_P(Adjoint, of_break) {
  const auto k = kernel("break", [](Arr<const double> x, Arr<double> o, Int n) {
    Double p = 1.0;
    for (auto i : range(n)) {
      p *= x[i];
      If (p > 10.0) {
        Break();
      }
    }
    o[tid()] = p;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), {2.0, 3.0, 2.0, 7.0, 5.0, 1.0}),
                              zeros<double>(device(), 1), 6);
      },
      1, {1}, {0});
  expect_near(g[0], {6, 4, 6, 0, 0, 0});
}

TEST_P(Adjoint, of_an_early_return_out_of_a_loop) {
  const auto k = kernel("return", [](Arr<const double> in, Arr<double> o) {
    Int t = tid();
    Double x = in[t], v = x;
    for ([[maybe_unused]] auto i : range(Int(5))) {
      v *= x;
      If (v > 20.0) {
        o[t] = v * 3.0;
        Return();
      }
    }
    o[t] = sin(v);
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 2, Array<double>(device(), {3.0, .5}), zeros<double>(device(), 2));
      },
      1, {1, 1}, {0});
  expect_near(g[0], {81, 6 * std::pow(.5, 5) * std::cos(std::pow(.5, 6))});
}

TEST_P(Adjoint, of_an_array_that_a_loop_stores_and_loads) {
  const auto k = kernel("prefix", [](Arr<const double> x, Arr<double> p, Arr<double> o, Int n) {
    for (auto i : range(n)) p[i + 1] = x[i] * p[i];
    atomic_add(o[0], Double(p[n]));
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), {2.0, 3.0, 5.0}), ones<double>(device(), 4),
                              zeros<double>(device(), 1), 3);
      },
      2, {1}, {0, 1});
  expect_near(g[0], {15, 10, 6});
  expect_near(g[1], {30, 0, 0, 0});
}

TEST_P(Adjoint, of_an_element_that_is_read_and_then_overwritten) {
  const auto k = kernel("overwrite", [](Arr<double> a, Arr<double> b) {
    Int i = tid();
    Double v = a[i];
    b[i] = v * v;
    a[i] = 1.0;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 3, Array<double>(device(), {1.0, 2.0, 3.0}), zeros<double>(device(), 3));
      },
      1, {1, 1, 1}, {0, 1});
  expect_near(g[0], {2, 4, 6});
  expect_near(g[1], {0, 0, 0});
}

TEST_P(Adjoint, of_two_stores_to_one_element) {
  const auto k = kernel("twice", [](Arr<const double> x, Arr<double> b) {
    Int i = tid();
    b[i] = x[i] * x[i];
    b[i] = 3.0 * x[i];
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 2, Array<double>(device(), {5.0, 6.0}), zeros<double>(device(), 2));
      },
      1, {1, 1}, {0});
  expect_near(g[0], {3, 3});
}

TEST_P(Adjoint, of_load_store_load) {
  const auto k = kernel("load store load", [](Arr<double> a, Arr<double> o) {
    Int i = tid();
    Double u = a[i];
    a[i] = sin(u);
    Double w = a[i];
    o[i] = u * w;
  });
  const double u = 0.4;
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 1, Array<double>(device(), {u}), zeros<double>(device(), 1)); }, 1, {1},
      {0});
  expect_near(g[0], {std::sin(u) + u * std::cos(u)});
}

TEST_P(Adjoint, of_many_threads_that_add_to_one_element) {
  const auto k = kernel("shared parameter", [](Arr<const double> w, Arr<const double> x, Arr<double> o) {
    atomic_add(o[0], w[0] * w[0] * x[tid()]);
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 4, Array<double>(device(), {3.0}),
                              Array<double>(device(), {1.0, 2.0, 3.0, 4.0}), zeros<double>(device(), 1));
      },
      2, {1}, {0, 1});
  expect_near(g[0], {60});
  expect_near(g[1], {9, 9, 9, 9});
}

TEST_P(Adjoint, of_a_thousand_steps_of_the_logistic_map) {
  const auto k = kernel("logistic", [](Arr<const double> x, Arr<double> o, Int n) {
    Double r = x[tid()], v = 0.3;
    for ([[maybe_unused]] auto i : range(n)) v = r * v * (1.0 - v);
    o[tid()] = v;
  });
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 1, Array<double>(device(), {2.5}), zeros<double>(device(), 1), 1000); },
      1, {1}, {0});
  expect_near(g[0], {0.16});
}

TEST_P(Adjoint, of_a_branch_that_guards_a_root) {
  const auto k = kernel("guard", [](Arr<const double> in, Arr<double> o) {
    Double x = in[tid()], y = 0.0;
    If (x > 0.0) {
      y = sqrt(x);
    }
    o[tid()] = y;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 2, Array<double>(device(), {4.0, -1.0}), zeros<double>(device(), 2));
      },
      1, {1, 1}, {0});
  expect_near(g[0], {.25, 0});
}

TEST_P(Adjoint, of_in_place_updates_by_loops_in_branches) {
  // Later iterations see the store, and so does, through the log, the way back of another loop.
  const auto k = kernel("in place", [](Arr<double> a, Arr<double> o, Int n) {
    Int t = tid();
    If (t < 3) {
      for ([[maybe_unused]] auto i : range(n)) a[t] = a[t] * a[t];
    }
    Double s = 0.0;
    for (auto i : range(n)) s += a[t] * Double(i + 1);
    o[t] = s;
  });
  const Values x{1.1, 0.9, 1.2, 2.0};
  const auto g = gradients<double>(
      [&] { return adjoint_launch(device(), k, 4, Array<double>(device(), x), zeros<double>(device(), 4), 3); }, 1,
      {1, 1, 1, 1}, {0, 1});
  expect_near(g[0], {6 * 8 * std::pow(1.1, 7), 6 * 8 * std::pow(.9, 7), 6 * 8 * std::pow(1.2, 7), 6});
}

TEST_P(Adjoint, of_an_unsigned_counter_that_counts_down_past_zero) {
  const auto k = kernel("down", [](Arr<const double> x, Arr<double> o, UInt n) {
    UInt i = n - 1u;
    Double p = 1.0;
    While (i < n) {
      p *= x[i];
      i -= 1u;
    }
    o[tid()] = p;
  });
  const auto g = gradients<double>(
      [&] {
        return adjoint_launch(device(), k, 1, Array<double>(device(), {2.0, 3.0, 4.0}), zeros<double>(device(), 1), 3u);
      },
      1, {1}, {0});
  expect_near(g[0], {12, 8, 6});
}

// The rows overlap, so that an index looks like that of an element of the thread's own, and is not.
TEST_P(Adjoint, of_windows_that_overlap) {
  const int n = 2048;
  const auto k = kernel("windows", [](Arr<const double> x, Arr<double, 2> y, Int stride) {
    auto [i, j] = tid<2>();
    y(i, j) = x[i * stride + j] * 3.0;
  });
  AdjointLaunch launch(device(), k.trace(), 2 * n,
                       {AdjointArg::make(ones<double>(device(), n + 1)),
                        AdjointArg::make(zeros<double, 2>(device(), {n, 2})), AdjointArg::make(1)});
  const std::string adjoint = ir::print(ir::adjoint(launch.module(), {.with_gradient = 3}).module);
  EXPECT_NE(adjoint.find("atomic_add f64 arg3"), std::string::npos) << adjoint;
}

// The number of stores in loops with constant bounds is known without a run, if all threads make as many.
TEST_P(Adjoint, of_loops_with_constant_bounds_needs_no_counting) {
  using X = Arr<const float>;
  using Y = Arr<float>;
  const auto step = [](X& x, Y& y, const Int& i) { y[i] = y[i] * x[i] + 1.f; };
  const auto entries = [](const auto& kernel) {
    const ir::Adjoint adjoint = ir::adjoint(kernel.trace(), {.with_gradient = 3});
    EXPECT_TRUE(adjoint.counter.empty() || adjoint.log_entries == ir::kNone) << kernel.name();
    return adjoint.log_entries;
  };
  const int n = 16;
  std::vector<float> at_start(n), factors(n);
  for (int i = 0; i < n; ++i) at_start[std::size_t(i)] = 0.5f, factors[std::size_t(i)] = 0.25f + 0.05f * float(i);
  // Gradients are right only if the known length of the log suffices.
  const auto check = [&](const auto& kernel, int times) {
    SCOPED_TRACE(kernel.name());
    AdjointLaunch launch(
        device(), kernel.trace(), n,
        {AdjointArg::make(Array<float>(device(), factors)), AdjointArg::make(Array<float>(device(), at_start))});
    launch.gradient<float>(1).fill(1);
    launch.backward(4, 7);
    const std::vector<float> found = launch.gradient<float>(0).to_vector();
    for (int i = 0; i < n; ++i) {
      double value = 0.5, slope = 0;
      for (int k = 0; k < times; ++k) {
        slope = slope * double(factors[std::size_t(i)]) + value;
        value = value * double(factors[std::size_t(i)]) + 1;
      }
      EXPECT_NEAR(found[std::size_t(i)], slope, 1e-5 * (1 + slope)) << i;
    }
  };
  const auto once = kernel("once", [=](X x, Y y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(5)) step(x, y, i);
  });
  EXPECT_EQ(entries(once), 5u);
  check(once, 5);
  const auto nested = kernel("nested", [=](X x, Y y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(2, 9, 3))
      for ([[maybe_unused]] auto m : range(4)) step(x, y, i);
  });
  EXPECT_EQ(entries(nested), 12u);
  check(nested, 12);
  const auto down = kernel("down", [=](X x, Y y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(9, 2, -2)) step(x, y, i);
    for ([[maybe_unused]] auto k : range(-3, 0)) step(x, y, i);
  });
  EXPECT_EQ(entries(down), 7u);
  check(down, 7);
  const auto either = kernel("either", [=](X x, Y y) {
    Int i = tid();
    for (auto k : range(6)) {
      If (k % 2 == 0) {
        step(x, y, i);
      }
      Else { step(x, y, i); }
    }
  });
  EXPECT_EQ(entries(either), 6u);
  check(either, 6);
  const auto vectors = kernel("vectors", [](Arr<const vec3> x, Arr<vec3> y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(5)) y[i] = y[i] * x[i];
  });
  EXPECT_EQ(entries(vectors), 15u);
  // A known length that is a little more than needed is used as well.
  const auto some = kernel("some", [=](X x, Y y) {
    Int i = tid();
    for (auto k : range(6)) {
      If (k % 2 == 0) {
        step(x, y, i);
      }
    }
  });
  EXPECT_EQ(entries(some), 6u);
  check(some, 3);
  // A length of much more is not: it is a known limit, and the stores are counted where the host can wait for that.
  const auto rarely = kernel("rarely", [=](X x, Y y) {
    Int i = tid();
    If (x[i] > 100) {
      for ([[maybe_unused]] auto k : range(1000)) step(x, y, i);
    }
    Else {
      for ([[maybe_unused]] auto k : range(2)) step(x, y, i);
    }
  });
  const ir::Adjoint adjoint = ir::adjoint(rarely.trace(), {.with_gradient = 3});
  EXPECT_EQ(adjoint.log_entries, 1000u);
  EXPECT_FALSE(adjoint.counter.empty());
  check(rarely, 2);
  const auto rarely_once = kernel("rarely once", [=](X x, Y y) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(100)) step(x, y, i);
    If (x[i] > 100) {
      step(x, y, i);
    }
  });
  EXPECT_EQ(entries(rarely_once), 101u);
  check(rarely_once, 100);
  // Stores are counted with breaks, with bounds that are arguments, and in loops that go past the largest number.
  const auto until = kernel("until", [=](X x, Y y) {
    Int i = tid();
    for (auto k : range(6)) {
      If (k == 4) {
        Break();
      }
      step(x, y, i);
    }
  });
  EXPECT_EQ(entries(until), ir::kNone);
  check(until, 4);
  const auto past_the_last = kernel("past the last", [=](X x, Y y) {
    Int i = tid(), k = 0;
    While (k < 2000000000) {
      step(x, y, i);
      k += 1500000000;
    }
  });
  EXPECT_EQ(entries(past_the_last), ir::kNone);
  int rounds = 0;
  for (std::uint32_t k = 0; std::int32_t(k) < 2000000000; k += 1500000000) ++rounds;
  const auto asked = kernel("asked", [=](X x, Y y, Int times) {
    Int i = tid();
    for ([[maybe_unused]] auto k : range(times)) step(x, y, i);
  });
  EXPECT_EQ(entries(asked), ir::kNone);
  if (device().driver().find("NVIDIA") != std::string::npos)
    GTEST_SKIP() << "past the last: NVIDIA's driver counts the rounds of such a loop as if its counter did not wrap";
  check(past_the_last, rounds);
}

TEST_P(Adjoint, of_an_index_by_a_long_chain_of_operations_in_time) {
  const auto k = kernel("hash", [](Arr<const float> x, Arr<float> y, UInt seed) {
    UInt h = seed;
    for (int round = 0; round < 40; ++round) h = (h ^ (h >> 3u)) * (h + 77u);
    y[tid()] = x[h % 16u] * 2.0f;
  });
  EXPECT_NO_THROW(ir::adjoint(k.trace(), {.with_gradient = 3}));
}

TEST_P(Adjoint, leaves_memory_as_it_was) {
  const auto k = kernel("puts back", [](Arr<double> a, Arr<double> o, Int n) {
    Int t = tid();
    for (auto i : range(n)) a[t * 8 + i + 1] = a[t * 8 + i] * 1.5;
    o[t] = a[t * 8 + n];
  });
  const Array<double> a = arange<double>(device(), 80.0), o = zeros<double>(device(), 10);
  const std::vector<double> before = a.to_vector();
  AdjointLaunch launch = adjoint_launch(device(), k, 10, a, o, 7);
  launch.gradient<double>(1).fill(1);
  launch.backward(2, 8);
  EXPECT_EQ(a.to_vector(), before);
  const std::vector<double> g = launch.gradient<double>(0).to_vector();
  for (int i = 0; i < 80; ++i) EXPECT_NEAR(g[std::size_t(i)], i % 8 ? 0 : std::pow(1.5, 7), 1e-9);
}

}  // namespace
