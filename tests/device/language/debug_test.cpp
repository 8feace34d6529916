// Debug mode: indices, divisors and stored values are checked, and errors name what is wrong.
#include <cmath>
#include <cstdint>
#include <limits>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(DebugMode);

constexpr KernelOptions kDebug{.debug = true};
constexpr KernelOptions kDebugAll{.debug = Debug::all()};

std::string here(int line) { return "debug_test.cpp:" + std::to_string(line) + ": kernel fault in kernel "; }

TEST_P(DebugMode, indices_outside_an_array_are_named) {
  auto shift = kernel(
      "shift",
      [](Arr<const float> from, Arr<float> to, Int by) {
        Int i = tid();
        Float v = from[i + by];
        to[i] = v + 1;
      },
      kDebug);
  const int line = __LINE__ - 4;
  Array<float> from = full<float>(device(), 8, 1.f), to = zeros<float>(device(), 8);
  launch(shift, 8, from, to, 0);
  EXPECT_EQ(to.to_vector(), std::vector<float>(8, 2.f));

  to.zero();
  launch(shift, 8, from, to, 3);
  const std::string above = error_of([&] { to.to_vector(); });
  expect_contains(above, here(line) + "\"shift\"");
  expect_contains(above,
                  "thread 5: index 8 is outside dimension 0 of argument 1, which has 8 elements (2 more failures)");
  // The threads that failed ended there.
  EXPECT_EQ(to.to_vector(), (std::vector<float>{2, 2, 2, 2, 2, 0, 0, 0}));

  launch(shift, 8, from, to, -7);
  expect_contains(error_of([&] { to.to_vector(); }), "thread 0: index -7 is outside dimension 0 of argument 1");
  launch(shift, 9, from, to, -1);
  expect_contains(error_of([&] { to.to_vector(); }), "thread 0: index -1 is outside dimension 0 of argument 1");
  launch(shift, {9}, from, to, -8);
  expect_contains(error_of([&] { to.to_vector(); }), "thread 0: index -8 is outside");
}

TEST_P(DebugMode, an_index_that_is_a_number_is_told_of_where_the_array_is_read) {
  auto write = kernel(
      "write", [](Arr<int> x) { x[7] = 1; }, kDebug);
  Array<int> x = zeros<int>(device(), 4);
  launch(write, 1, x);
  expect_contains(error_of([&] { x.at(0); }), "\"write\": thread 0: index 7 is outside dimension 0 of");
}

TEST_P(DebugMode, an_index_inside_the_memory_but_outside_its_dimension_is_found) {
  auto at = kernel(
      "at", [](Arr<int, 2> a, Int row, Int column) { a(row, column) = 1; }, kDebug);
  Array<int, 2> a = zeros<int, 2>(device(), {3, 4});
  launch(at, 1, a, 0, 4);
  expect_contains(error_of([&] { a.to_vector(); }),
                  "thread 0: index 4 is outside dimension 1 of argument 1, which has 4 elements (element (0, 4))");
  launch(at, 1, a, 1, -1);
  expect_contains(error_of([&] { a.to_vector(); }), "index -1 is outside dimension 1");
  launch(at, 1, a, 3, 0);
  expect_contains(error_of([&] { a.to_vector(); }), "index 3 is outside dimension 0");
  EXPECT_EQ(a.to_vector(), std::vector<int>(12, 0)) << "what failed was not done";
  launch(at, 1, a, 2, 3);
  EXPECT_EQ(a.to_vector().back(), 1);
}

TEST_P(DebugMode, all_dimensions_of_arrays_of_three_and_four_are_checked) {
  auto three = kernel(
      "three", [](Arr<const float, 3> a, Arr<float> out, Vec3i i) { out[0] = a(i.x, i.y, i.z); }, kDebug);
  auto four = kernel(
      "four", [](Arr<float, 4> a, Vec4i i) { atomic_add(a(i.x, i.y, i.z, i.w), 1.f); }, kDebug);
  Array<float, 3> a = zeros<float, 3>(device(), {2, 3, 4});
  Array<float, 4> b = zeros<float, 4>(device(), {2, 3, 4, 5});
  Array<float> out = zeros<float>(device(), 1);
  launch(three, 1, a, out, vec<3, int>{1, 2, 3});
  launch(four, 1, b, vec<4, int>{1, 2, 3, 4});
  device().synchronize();
  EXPECT_EQ(b.to_vector().back(), 1);
  for (int k = 0; k < 3; ++k) {
    vec<3, int> i{1, 2, 3};
    i[k] += 1;
    launch(three, 1, a, out, i);
    expect_contains(error_of([&] { device().synchronize(); }),
                    "index " + std::to_string(i[k]) + " is outside dimension " + std::to_string(k) + " of argument 1");
  }
  for (int k = 0; k < 4; ++k) {
    vec<4, int> i{0, 0, 0, 0};
    i[k] = -1;
    launch(four, 1, b, i);
    expect_contains(error_of([&] { device().synchronize(); }), "index -1 is outside dimension " + std::to_string(k));
  }
}

TEST_P(DebugMode, slices_are_checked_where_their_elements_are_used) {
  auto sum = [](Arr<const float> row) {
    Float s = 0;
    for (auto k : range(row.shape(0) + 1)) s += row[k];
    return s;
  };
  auto sums = kernel(
      "sums",
      [=](Arr<const float, 2> a, Arr<float> out, Int rows) {
        Int i = tid();
        auto row = a[i];  // naming a row that is not there is no access
        If (i < rows) {
          out[i] = sum(row);
        }
      },
      kDebug);
  Array<float, 2> a = zeros<float, 2>(device(), {2, 3});
  Array<float> out = zeros<float>(device(), 4);
  launch(sums, 2, a, out, 0);
  device().synchronize();
  launch(sums, 4, a, out, 2);
  expect_contains(
      error_of([&] { device().synchronize(); }),
      "thread 0: index 3 is outside dimension 1 of argument 1, which has 3 elements (element (0, 3)) (1 more");
  auto cell = kernel(
      "cell", [](Arr<vec3, 3> a, Int i) { a[i][1][2].y = 5; }, kDebug);
  Array<vec3, 3> b = zeros<vec3, 3>(device(), {2, 2, 3});
  launch(cell, 1, b, 2);
  expect_contains(error_of([&] { device().synchronize(); }), "index 2 is outside dimension 0 of argument 1");
  launch(cell, 1, b, 1);
  EXPECT_EQ(b.to_vector().back().y, 5);
}

TEST_P(DebugMode, strided_views_are_checked_by_their_own_shape) {
  auto put = kernel(
      "put", [](Arr<int, 2> a, Int i, Int j) { a(i, j) = 1; }, kDebug);
  Array<int, 2> a = zeros<int, 2>(device(), {4, 6});
  Array<int, 2> view = a.slice(0, 6, 2, 1).slice(1, 3);
  ASSERT_FALSE(view.is_contiguous());
  launch(put, 1, view, 1, 2);
  EXPECT_EQ(view.to_vector(), (std::vector<int>{0, 0, 0, 0, 0, 1}));
  launch(put, 1, view, 1, 3);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "index 3 is outside dimension 1 of argument 1, which has 3");
  launch(put, 1, view, -1, 0);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "index -1 is outside dimension 0 of argument 1, which has 2");
}

TEST_P(DebugMode, ranges_and_transposes_in_kernels_are_checked) {
  auto put = kernel(
      "put",
      [](Arr<int, 2> a, Int lo, Int hi, Int step, Int k) {
        Arr<int> part = a[1].slice(lo, hi, step);
        part[k] = 1;
        a.transpose()(k, 0) = 2;
      },
      kDebug);
  Array<int, 2> a = zeros<int, 2>(device(), {2, 6});
  launch(put, 1, a, 1, 6, 2, 2);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  launch(put, 1, a, 1, 6, 2, 3);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "index 3 is outside dimension 1 of argument 1, which has 3");
  const auto refused = [&](int lo, int hi, int step) {
    launch(put, 1, a, lo, hi, step, 0);
    expect_contains(error_of([&] { device().synchronize(); }),
                    "thread 0: the range [" + std::to_string(lo) + ", " + std::to_string(hi) + ") with step " +
                        std::to_string(step) + " is not one of a dimension of argument 1, which has 6 elements");
  };
  refused(0, 7, 1);
  refused(-1, 3, 1);
  refused(4, 3, 1);
  refused(0, 6, 0);
}

TEST_P(DebugMode, indices_of_every_integer_type_are_checked) {
  const auto with = [&](auto index) {
    using T = decltype(index);
    auto get = kernel(
        "get", [](Arr<const int> a, Arr<int> out, Var<T> i) { out[0] = a[i]; }, kDebug);
    Array<int> a(device(), {5, 6, 7}), out = zeros<int>(device(), 1);
    launch(get, 1, a, out, T(2));
    EXPECT_EQ(out.at(0), 7);
    launch(get, 1, a, out, index);
    expect_contains(error_of([&] { device().synchronize(); }), "index " + std::to_string(index) + " is outside");
  };
  with(std::int8_t(-1));
  with(std::uint8_t(200));
  with(std::int16_t(-300));
  with(std::uint16_t(60000));
  with(-5);
  with(4000000000u);
  with(std::int64_t(1) << 32);  // the low half is a valid index
  with(std::int64_t(-1));
  with(~std::uint64_t(0));
}

TEST_P(DebugMode, what_is_right_is_left_alone) {
  auto same = [](KernelOptions options) {
    return kernel(
        "blur",
        [](Arr<const float, 2> from, Arr<float, 2> to, Int n) {
          auto [i, j] = tid<2>();
          Float sum = 0;
          Int count = 0;
          for (auto k : range(-1, 2)) {
            If (i + k >= 0 && i + k < from.shape(0)) {
              sum += from(i + k, j);
              count += 1;
            }
          }
          // A neighbour is read only if there is one, and a quotient is taken only if the divisor is not 0.
          If (j > 0 && from(i, j - 1) > 2) {
            sum += 1;
          }
          If (n != 0 && 7 / n > 1) {
            sum += 2;
          }
          to(i, j) = sum / Float(count);
          atomic_add(to(i, j), 1.f);
        },
        options);
  };
  std::vector<float> values;
  for (int i = 0; i < 12; ++i) values.push_back(float(i % 5));
  Array<float, 2> x(device(), {3, 4}, values);
  Array<float, 2> a = zeros_like(x), b = zeros_like(x), c = zeros_like(x);
  for (int n : {0, 2}) {
    launch(same({}), {3, 4}, x, a, n);
    launch(same(kDebug), {3, 4}, x, b, n);
    launch(same(kDebugAll), {3, 4}, x, c, n);
    device().synchronize();
    EXPECT_EQ(a.to_vector(), b.to_vector());
    EXPECT_EQ(a.to_vector(), c.to_vector());
  }
}

TEST_P(DebugMode, integer_division_by_zero_is_named) {
  auto divide = kernel(
      "divide",
      [](Arr<const int> x, Arr<int> out) {
        Int i = tid();
        out[i] = 100 / x[i];
        out[i] %= x[i] - 1;
      },
      kDebug);
  const int line = __LINE__ - 3;
  Array<int> x(device(), {2, 5, 0, 7}), out = zeros<int>(device(), 4);
  launch(divide, 4, x, out);
  std::string text = error_of([&] { out.to_vector(); });
  expect_contains(text, here(line - 1) + "\"divide\": thread 2: division of 100 by zero");
  x.fill(1);
  launch(divide, 4, x, out);
  text = error_of([&] { out.to_vector(); });
  expect_contains(text, here(line) + "\"divide\": thread 0: remainder of 100 by zero (3 more failures)");
  // A divisor that is known while the kernel is traced.
  constexpr int none = 0;
  auto by_none = kernel(
      "by_none", [](Arr<const int> x, Arr<int> out) { out[tid()] = x[tid()] / Int(none); }, kDebug);
  launch(by_none, 4, x, out);
  expect_contains(error_of([&] { out.at(0); }), "\"by_none\": thread 0: division of 1 by zero (3 more failures)");
  // Reals have infinities.
  auto reals = kernel(
      "reals", [](Arr<float> y, Float by) { y[tid()] = 1 / by; }, kDebug);
  Array<float> y = zeros<float>(device(), 1);
  launch(reals, 1, y, 0.f);
  EXPECT_NO_THROW(y.at(0));
}

TEST_P(DebugMode, stores_of_nan_are_named_when_asked_for) {
  const auto with = [](KernelOptions options) {
    return kernel(
        "grow", [](Arr<vec3, 2> a, Float x) { a(tid(), 1) = Vec3(1, x, 2); }, options);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  Array<vec3, 2> a = zeros<vec3, 2>(device(), {2, 2});
  launch(with(kDebug), 2, a, nan);
  EXPECT_TRUE(std::isnan(a.to_vector()[1].y)) << "nobody asked";
  a.zero();
  launch(with(kDebugAll), 2, a, -infinity);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "thread 0: -inf is stored to element (0, 1) of argument 1 (1 more failure)");
  launch(with(kDebugAll), 2, a, nan);
  expect_contains(error_of([&] { device().synchronize(); }), "nan is stored to element (0, 1) of argument 1");
  EXPECT_EQ(a.to_vector()[1].x, 0) << "nothing of it was stored";
  launch(with(kDebugAll), 2, a, 1.f);
  EXPECT_EQ(a.to_vector()[3].y, 1);
  auto add = kernel(
      "add", [](Arr<float> sum, Float x) { atomic_add(sum[0], x); }, kDebugAll);
  Array<float> sum = zeros<float>(device(), 1);
  launch(add, 1, sum, nan);
  expect_contains(error_of([&] { device().synchronize(); }), "nan is stored to element (0) of argument 1");
}

TEST_P(DebugMode, nothing_is_reached_through_a_wrong_range_where_the_thread_goes_on) {
  Array<int> all = zeros<int>(device(), 8), middle = all.slice(2, 6);
  auto put = kernel("put",
                    [](Arr<int> a, Int lo, Int hi) {
                      Arr<int> part = a.slice(lo, hi);
                      barrier();
                      part[tid()] = 1;
                    },
                    {.block = 4, .debug = true});
  launch(put, 4, middle, 0, 4);
  const std::vector<int> right{0, 0, 1, 1, 1, 1, 0, 0};
  EXPECT_EQ(all.to_vector(), right);
  launch(put, 4, middle, -2, 2);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "thread 0: the range [-2, 2) with step 1 is not one of a dimension of argument 1");
  EXPECT_EQ(all.to_vector(), right);

  auto condition = kernel(
      "condition",
      [](Arr<int> a, Int lo, Int hi) {
        Int k = 0;
        const auto next = [&] {
          Arr<int> part = a.slice(lo, hi);
          part[k] += 7;
          return part[k];
        };
        While (next() != 8) {
          k += 1;
        }
      },
      kDebug);
  launch(condition, 1, middle, -1, 3);
  expect_contains(error_of([&] { device().synchronize(); }),
                  "thread 0: the range [-1, 3) with step 1 is not one of a dimension of argument 1");
  EXPECT_EQ(all.to_vector(), right);
  launch(condition, 1, middle, 0, 4);
  EXPECT_EQ(all.to_vector(), (std::vector<int>{0, 0, 8, 1, 1, 1, 0, 0}));
}

/// Gives `check` the same body as a kernel in each debug mode: a body that one mode accepts is accepted in all.
template <class F, class Check>
void in_every_mode(const char* name, F body, Check check) {
  for (Debug debug : {Debug(false), Debug(true), Debug::all()}) {
    SCOPED_TRACE(testing::Message() << name << ": checks " << debug.checks << ", finite " << debug.finite);
    check(kernel(name, body, {.block = 4, .debug = debug}));
  }
}

TEST_P(DebugMode, checks_in_a_loop_leave_what_it_counts_the_same_for_all) {
  const auto count = [](Arr<const float> x, Arr<float> out, Int n) {
    Int i = tid(), rounds = 0;
    Float sum = 0;
    for (auto k : range(n)) {
      sum += x[(i + k) % n];
      out[i] = sum;
      rounds += 1;
    }
    auto shown = shared<float>(4);
    shown[i] = sum;
    If (rounds == n) {
      barrier();
    }
    out[i] = shown[3 - i];
  };
  Array<float> x(device(), {1, 2, 3, 4}), out = zeros<float>(device(), 4);
  in_every_mode("count", count, [&](const auto& k) {
    launch(k, 4, x, out, 3);
    EXPECT_EQ(out.to_vector(), std::vector<float>(4, 6));
  });
  // An index is beyond the array: threads that fail come to the barrier as well.
  auto debug = kernel("count", count, {.block = 4, .debug = true});
  launch(debug, 4, x.slice(0, 3), out, 4);
  expect_contains(error_of([&] { device().synchronize(); }), "index 3 is outside dimension 0 of argument 1");
}

TEST_P(DebugMode, checks_in_a_loop_stand_beside_barriers_in_the_same_loop) {
  const auto blur = [](Arr<const float> x, Arr<float> out, Int rounds) {
    Int i = tid();
    auto row = shared<float>(4);
    row[i] = x[i];
    for (auto r : range(rounds)) {
      Int terms = 0;
      Float sum = 0;
      barrier();
      While (terms < 4) {
        sum += row[(i + terms) % 4] * x[terms];
        assert_(sum >= 0, "a negative sum");
        terms += 1;
      }
      While (terms > 0) {
        terms -= 2;
        barrier();
      }
      row[i] = sum / 4;
      out[i] = sum + Float(r) * 0;
    }
  };
  Array<float> x = full<float>(device(), 4, 2.f), out = zeros<float>(device(), 4);
  in_every_mode("blur", blur, [&](const auto& k) {
    launch(k, 4, x, out, 3);
    EXPECT_EQ(out.to_vector(), std::vector<float>(4, 64));
  });
  Array<float> wrong(device(), {2, 2, -9, 2});
  auto plain = kernel("blur", blur, {.block = 4});
  launch(plain, 4, wrong, out, 1);
  expect_contains(error_of([&] { device().synchronize(); }), "a negative sum");
}

TEST_P(DebugMode, checks_in_the_condition_of_a_loop_with_barriers_are_no_part_of_it) {
  const auto walk = [](Arr<const int> x, Arr<int> out, Int n) {
    Int i = tid(), k = 0, seen = 0;
    const auto more = [&] {
      seen += x[i + k];
      assert_(seen >= 0, "seen", seen);
      return k < n;
    };
    While (more()) {
      barrier();
      k += 1;
    }
    out[i] = seen;
  };
  Array<int> x(device(), {1, 2, 3, 4, 5, 6}), out = zeros<int>(device(), 4);
  in_every_mode("walk", walk, [&](const auto& k) {
    launch(k, 4, x, out, 2);
    EXPECT_EQ(out.to_vector(), (std::vector<int>{6, 9, 12, 15}));
  });
  auto debug = kernel("walk", walk, {.block = 4, .debug = true});
  launch(debug, 4, x, out, 3);
  expect_contains(error_of([&] { device().synchronize(); }), "thread 3: index 6 is outside dimension 0 of argument 1");
}

TEST_P(DebugMode, a_failure_ends_a_loop_that_waits_for_what_it_kept_from_happening) {
  auto find = kernel("find",
                     [](Arr<const int> x, Arr<int> out, Int what) {
                       Int i = tid(), at = i;
                       barrier();
                       While (x[at] != what) {
                         at += 1;
                       }
                       Int back = 0;
                       While (true) {
                         If (x[at - back] == 1) {
                           Break();
                         }
                         back += 1;
                       }
                       barrier();
                       out[i] = back;
                     },
                     {.block = 4, .debug = true});
  Array<int> x(device(), {1, 4, 5, 6}), out = zeros<int>(device(), 4);
  launch(find, 4, x, out, 6);
  EXPECT_EQ(out.to_vector(), std::vector<int>(4, 3));
  launch(find, 4, x, out, 7);
  expect_contains(error_of([&] { device().synchronize(); }), "thread 0: index 4 is outside dimension 0 of argument 1");
  // All threads fail alike: they leave a loop together that would end for none of them.
  auto divide = kernel("divide",
                       [](Arr<int> out, Int n, Int by) {
                         Int k = 0;
                         While (k < n) {
                           k += select(by == 0, Int(0), n / by);
                           barrier();
                         }
                         out[tid()] = k;
                       },
                       {.block = 4, .debug = true});
  launch(divide, 4, out, 8, 4);
  EXPECT_EQ(out.to_vector(), std::vector<int>(4, 8));
  launch(divide, 4, out, 8, 0);
  expect_contains(error_of([&] { device().synchronize(); }), "division of 8 by zero");
}

TEST_P(DebugMode, what_threads_of_different_fates_count_is_still_refused) {
  const auto body = [](Arr<const int> x, Arr<int> out) {
    Int k = 0;
    While (x[k] != 0) {
      k += 1;
    }
    If (k == 3) {
      barrier();
    }
    out[tid()] = k;
  };
  for (Debug debug : {Debug(false), Debug(true)}) {
    auto k = kernel("fates", body, {.block = 4, .debug = debug});
    expect_contains(error_of([&] { k.trace(); }), "barrier() stands where not every thread of the workgroup may come");
  }
}

TEST_P(DebugMode, a_loop_that_runs_off_an_array_ends) {
  auto find = kernel(
      "find",
      [](Arr<const int> a, Arr<int> out, Int what) {
        Int i = tid(), at = 0;
        While (a[at] != what) {
          at += 1;
        }
        out[i] = at;
      },
      kDebug);
  Array<int> a(device(), {4, 5, 6}), out = full<int>(device(), 1, -1);
  launch(find, 1, a, out, 6);
  EXPECT_EQ(out.at(0), 2);
  launch(find, 1, a, out, 7);
  expect_contains(error_of([&] { out.to_vector(); }), "thread 0: index 3 is outside dimension 0 of argument 1");
  EXPECT_EQ(out.at(0), 2) << "the thread ended after its loop";
}

/// Launches over 5 threads on a tape and goes back from all of y. \return  the report, and the gradient of x
template <class K, class... A>
std::pair<std::string, std::vector<float>> there_and_back(const Device& device, const K& kernel, const Array<float>& x,
                                                          const Array<float>& y, const A&... arguments) {
  const std::string said = error_of([&] {
    Tape tape;
    tape.record([&] { launch(kernel, 5, arguments...); });
    tape.backward({{y, ones_like(y)}});
    device.synchronize();
  });
  return {said, x.grad().to_vector()};
}

TEST_P(DebugMode, threads_that_fail_have_no_way_back) {
  // Thread 4 reads the element beside its view.
  Array<float> x = full<float>(device(), 10, 2).requires_grad(), y = zeros<float>(device(), 10);
  const auto reads =
      kernel("reads", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid() + 1] * 3; }, {.debug = true});
  auto [said, gradient] = there_and_back(device(), reads, x, y, x.slice(0, 5), y);
  expect_contains(said, "index 5 is outside dimension 0 of argument 1");
  EXPECT_EQ(gradient, (std::vector<float>{0, 3, 3, 3, 3, 0, 0, 0, 0, 0}));
  // Threads 3 and 4 store outside of their view.
  x.zero_grad();
  const auto stores =
      kernel("stores", [](Arr<const float> x, Arr<float> y) { y[tid() + 2] = x[tid()] * 3; }, {.debug = true});
  std::tie(said, gradient) = there_and_back(device(), stores, x, y, x, y.slice(0, 5));
  expect_contains(said, "of argument 2");
  EXPECT_EQ(gradient, (std::vector<float>{3, 3, 3, 0, 0, 0, 0, 0, 0, 0}));
  // Thread 2 divides by zero.
  x.zero_grad();
  const Array<int> n(device(), {1, 2, 0, 3, 6});
  const auto divides = kernel("divides",
                              [](Arr<const float> x, Arr<float> y, Arr<const int> n) {
                                Int i = tid();
                                Float a = x[i] * 5;
                                Int q = 6 / n[i];
                                y[i] = a * Float(q);
                              },
                              {.debug = true});
  std::tie(said, gradient) = there_and_back(device(), divides, x, y, x, y, n);
  expect_contains(said, "zero");
  EXPECT_EQ(gradient, (std::vector<float>{30, 15, 0, 10, 5, 0, 0, 0, 0, 0}));
  // All threads read far outside of all memory.
  x.zero_grad();
  const auto far = kernel("far", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid() + 100000000] * x[tid()]; },
                          {.debug = true});
  std::tie(said, gradient) = there_and_back(device(), far, x, y, x, y);
  expect_contains(said, "is outside dimension 0 of argument 1");
  EXPECT_EQ(gradient, std::vector<float>(10, 0));
}

TEST_P(DebugMode, is_switched_for_all_kernels_between_launches) {
  auto get = kernel("get", [](Arr<const int> a, Arr<int> out, Int i) { out[0] = a[i]; });
  // An index beyond the view is still in the memory: without debug mode this is no error on any device.
  Array<int> whole(device(), {5, 6, 7, 8}), out = zeros<int>(device(), 1);
  Array<int> a = whole.slice(0, 2);
  launch(get, 1, a, out, 2);
  EXPECT_EQ(out.at(0), 7);
  const Debug before = debug_mode();
  set_debug(true);
  launch(get, 1, a, out, 3);
  const std::string text = error_of([&] { out.to_vector(); });
  set_debug(before);
  expect_contains(text, "index 3 is outside dimension 0 of argument 1, which has 2 elements");
  launch(get, 1, a, out, 3);
  EXPECT_EQ(out.at(0), 8);
}

TEST_P(DebugMode, costs_nothing_when_it_is_off) {
  const auto body = [](Arr<float, 2> a, Int n) {
    auto [i, j] = tid<2>();
    While (a(i, j) > 1) {
      a(i, j) /= 2;
    }
    a[i][j] += Float(i / n);
  };
  const ir::Module off = kernel("k", body).trace(), on = kernel("k", body, kDebug).trace();
  EXPECT_EQ(off.report_offset, 0u);
  EXPECT_TRUE(off.messages.empty());
  EXPECT_EQ(ir::print(off).find("return"), std::string::npos);
  EXPECT_NE(on.report_offset, 0u);
  EXPECT_FALSE(on.messages.empty());
}

}  // namespace
