// Traced control flow means what the same C++ means: each kernel against a host function, for many inputs.
#include <functional>
#include <optional>
#include <utility>

#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(ControlFlow);

constexpr int kCount = 200;

// Runs out[i] = body(i) on the device and on the host.
void compare(const Device& device, const std::function<Int(Int)>& traced, const std::function<int(int)>& host) {
  Array<int> out = full<int>(device, kCount, -1);
  launch(kernel("control_flow",
                [&](Arr<int> out) {
                  Int i = tid();
                  out[i] = traced(i);
                }),
         kCount, out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(got[std::size_t(i)], host(i)) << "thread " << i;
}

TEST_P(ControlFlow, else_if_chains_take_the_first_true_branch) {
  compare(
      device(),
      [](Int i) {
        Int r = 0;
        If (i < 10) {
          r = 1;
        }
        ElseIf (i < 20) {
          r = 2;
        }
        ElseIf (i % 3 == 0) {
          r += 3;
        }
        ElseIf (i % 3 == 1) {
          If (i > 100) {
            r = 4;
          }
          Else { r = 5; }
        }
        Else { r = 6; }
        return r;
      },
      [](int i) {
        return i < 10 ? 1 : i < 20 ? 2 : i % 3 == 0 ? 3 : i % 3 == 1 ? (i > 100 ? 4 : 5) : 6;
      });
}

TEST_P(ControlFlow, loops_carry_locals_break_and_continue) {
  compare(
      device(),
      [](Int i) {
        Int sum = 0, last = -1;
        for (auto j : range(i)) {
          If (j % 3 == 1) {
            Continue();
          }
          If (sum > 500) {
            Break();
          }
          sum += j;
          last = j;
        }
        return sum * 1000 + last;
      },
      [](int i) {
        int sum = 0, last = -1;
        for (int j = 0; j < i; ++j) {
          if (j % 3 == 1) continue;
          if (sum > 500) break;
          sum += j;
          last = j;
        }
        return sum * 1000 + last;
      });
}

TEST_P(ControlFlow, nested_loops_keep_their_own_exits) {
  compare(
      device(),
      [](Int i) {
        Int n = 0, a = 0;
        While (a < i) {
          a += 1;
          for (auto b : range(a)) {
            If ((a * b) % 7 == 3) {
              Break();
            }
            for (auto c : range(2, b, 3)) {
              If (c % 2 == 0) {
                Continue();
              }
              n += c;
            }
            n += 1;
          }
          If (n > 3000) {
            Break();
          }
        }
        return n + a;
      },
      [](int i) {
        int n = 0, a = 0;
        while (a < i) {
          a += 1;
          for (int b = 0; b < a; ++b) {
            if ((a * b) % 7 == 3) break;
            for (int c = 2; c < b; c += 3) {
              if (c % 2 == 0) continue;
              n += c;
            }
            n += 1;
          }
          if (n > 3000) break;
        }
        return n + a;
      });
}

TEST_P(ControlFlow, return_ends_the_thread_from_any_depth) {
  Array<int> out = zeros<int>(device(), kCount);
  launch(kernel("early_return",
                [](Arr<int> out) {
                  Int i = tid();
                  out[i] = 1;
                  If (i % 2 == 0) {
                    Return();
                  }
                  for (auto j : range(10)) {
                    out[i] += 1;
                    While (out[i] > 3) {
                      If (j == 5 || i > 100) {
                        Return();
                      }
                      Break();
                    }
                  }
                  out[i] = -out[i];
                }),
         kCount, out);
  const std::vector<int> got = out.to_vector();
  for (int i = 0; i < kCount; ++i) {
    const int expected = i % 2 == 0 ? 1 : i > 100 ? 4 : 7;
    EXPECT_EQ(got[std::size_t(i)], expected) << i;
  }
}

TEST_P(ControlFlow, ranges_are_those_of_python) {
  struct Bounds {
    int lo, hi, step;
  };
  const int big = std::numeric_limits<int>::max(), small = std::numeric_limits<int>::min();
  const std::vector<Bounds> cases = {{0, 5, 1},
                                     {5, 0, 1},
                                     {0, 5, 2},
                                     {5, 0, -1},
                                     {5, -3, -3},
                                     {0, 0, 1},
                                     {3, 10, 100},
                                     {big - 3, big, 2},
                                     {small, small + 3, 2},
                                     {small + 3, small, -2},
                                     {0, 5, 0},
                                     {small, big, big},
                                     {-1, 1, 1}};
  std::vector<vec3i> bounds;
  for (const Bounds& b : cases) bounds.push_back({b.lo, b.hi, b.step});
  Array<vec3i> in(device(), bounds);
  Array<int> count = zeros<int>(device(), cases.size()), sum = zeros<int>(device(), cases.size());
  launch(kernel("ranges",
                [](Arr<const vec3i> in, Arr<int> count, Arr<int> sum) {
                  Int i = tid();
                  for (auto j : range(in[i].x, in[i].y, in[i].z)) {
                    count[i] += 1;
                    sum[i] += j;
                  }
                }),
         cases.size(), in, count, sum);
  const std::vector<int> counts = count.to_vector(), sums = sum.to_vector();
  for (std::size_t k = 0; k < cases.size(); ++k) {
    int n = 0;
    unsigned s = 0;
    const Bounds& b = cases[k];
    for (std::int64_t j = b.lo; b.step > 0 ? j < b.hi : b.step < 0 && j > b.hi; j += b.step) ++n, s += unsigned(j);
    EXPECT_EQ(counts[k], n) << b.lo << " " << b.hi << " " << b.step;
    EXPECT_EQ(unsigned(sums[k]), s) << b.lo << " " << b.hi << " " << b.step;
  }
}

TEST_P(ControlFlow, constant_steps_down_and_by_more_than_one) {
  compare(
      device(),
      [](Int i) {
        Int r = 0;
        for (auto j : range(i, 0, -3)) r = r * 2 + j % 5;
        for (auto j : range(0, i, 7)) r = r * 3 + j;
        return r & 0xffff;
      },
      [](int i) {
        int r = 0;
        for (int j = i; j > 0; j -= 3) r = int(unsigned(r) * 2u + unsigned(j % 5));
        for (int j = 0; j < i; j += 7) r = int(unsigned(r) * 3u + unsigned(j));
        return r & 0xffff;
      });
}

TEST_P(ControlFlow, assigning_the_loop_variable_does_not_change_the_course) {
  compare(
      device(),
      [](Int i) {
        Int n = 0;
        for (auto j : range(i)) {
          j += 5;
          n += j;
        }
        return n;
      },
      [](int i) {
        int n = 0;
        for (int j = 0; j < i; ++j) n += j + 5;
        return n;
      });
}

TEST_P(ControlFlow, and_or_evaluate_the_right_operand_only_when_needed) {
  // A load out of range is an error on the reference device and undefined on others: it must not happen.
  Array<int> a(device(), std::vector<int>{5, 6, 7});
  Array<int> out = zeros<int>(device(), kCount);
  launch(kernel("short_circuit",
                [](Arr<const int> a, Arr<int> out) {
                  Int i = tid();
                  Int n = a.shape(0);
                  If (i < n && a[i] > 5) {
                    out[i] = 1;
                  }
                  If (i >= n || a[i] == 5) {
                    out[i] += 2;
                  }
                  Bool both = i < n && (a[i] != 0 || a[i * 1000] == 5);
                  If (both) {
                    out[i] += 4;
                  }
                  If (!(i < n) && i < n + 2) {
                    out[i] += 8;
                  }
                }),
         3 + 2, a, out);
  std::vector<int> got = out.to_vector();
  got.resize(6);
  EXPECT_EQ(got, (std::vector<int>{2 + 4, 1 + 4, 1 + 4, 2 + 8, 2 + 8, 0}));
}

TEST_P(ControlFlow, functions_called_in_conditions_may_assign) {
  compare(
      device(),
      [](Int i) {
        Int calls = 0;
        auto odd = [&](Int x) {
          calls += 1;
          return x % 2 == 1;
        };
        Int r = 0;
        If (odd(i) && odd(i / 2)) {
          r = 1;
        }
        ElseIf (odd(i / 4) || odd(i / 8)) {
          r = 2;
        }
        return r * 10 + calls;
      },
      [](int i) {
        int calls = 0;
        auto odd = [&](int x) {
          ++calls;
          return x % 2 == 1;
        };
        int r = 0;
        if (odd(i) && odd(i / 2))
          r = 1;
        else if (odd(i / 4) || odd(i / 8))
          r = 2;
        return r * 10 + calls;
      });
}

TEST_P(ControlFlow, forms_without_macros_do_the_same) {
  compare(
      device(),
      [](Int i) {
        Int r = 0, k = i;
        while_([&] { return k > 0; },
               [&] {
                 if_(k % 3 == 0, [&] { r += 1; }).elif_([&] { return k % 3 == 1; }, [&] { r += 10; }).else_([&] {
                   r += 100;
                 });
                 k -= 4;
               });
        return r;
      },
      [](int i) {
        int r = 0;
        for (int k = i; k > 0; k -= 4) r += k % 3 == 0 ? 1 : k % 3 == 1 ? 10 : 100;
        return r;
      });
}

TEST_P(ControlFlow, native_loops_unroll_and_copies_are_snapshots) {
  compare(
      device(),
      [](Int i) {
        Int a = i, b = 1;
        for (int k = 0; k < 5; ++k) {
          Int old = a;
          a = b;
          b = old + k;
          If (i % 2 == 0) {
            a += 1;
          }
        }
        return a * 100 + b;
      },
      [](int i) {
        int a = i, b = 1;
        for (int k = 0; k < 5; ++k) {
          int old = a;
          a = b;
          b = old + k;
          if (i % 2 == 0) a += 1;
        }
        return a * 100 + b;
      });
}

TEST_P(ControlFlow, swap_and_exchange_move_values_not_names) {
  compare(
      device(),
      [](Int i) {
        Int a = i % 5, b = i % 3, c = i % 7;
        If (a > b) {
          std::swap(a, b);
        }
        If (b > c) {
          std::swap(b, c);
        }
        If (a > b) {
          std::swap(a, b);
        }
        Int x = 1, y = 1;
        for (auto k : range(i % 10)) {
          Int old = std::exchange(x, y);
          y = y + old;
          If (k == 3) {
            std::swap(x, y);
          }
        }
        return ((a * 10 + b) * 10 + c) * 1000 + x * 3 + y;
      },
      [](int i) {
        int a = i % 5, b = i % 3, c = i % 7;
        if (a > b) std::swap(a, b);
        if (b > c) std::swap(b, c);
        if (a > b) std::swap(a, b);
        int x = 1, y = 1;
        for (int k = 0; k < i % 10; ++k) {
          int old = std::exchange(x, y);
          y = y + old;
          if (k == 3) std::swap(x, y);
        }
        return ((a * 10 + b) * 10 + c) * 1000 + x * 3 + y;
      });
}

TEST_P(ControlFlow, a_range_runs_as_often_as_it_is_used) {
  compare(
      device(),
      [](Int i) {
        Int n = 0;
        auto five = range(i % 5);
        for (auto j : five) n += j;
        for (auto j : five) n += 10 * j;
        return n;
      },
      [](int i) {
        const int m = i % 5;
        return 11 * (m * (m - 1) / 2);
      });
}

TEST_P(ControlFlow, variables_of_a_condition_keep_their_value_in_the_body) {
  compare(
      device(),
      [](Int i) {
        Int n = 0, r = 0;
        std::optional<Int> kept;
        while_(
            [&] {
              kept.emplace(n * 10);
              return n < 4;
            },
            [&] {
              If (i % 2 == 0) {
                *kept += 1;
              }
              r += *kept;
              n += 1;
            });
        return r;
      },
      [](int i) {
        int r = 0;
        for (int n = 0; n < 4; ++n) r += n * 10 + (i % 2 == 0);
        return r;
      });
}

TEST_P(ControlFlow, variables_read_before_they_are_assigned_in_a_loop_see_the_last_iteration) {
  compare(
      device(),
      [](Int i) {
        Int x = i, y = 0, z = 1;
        for (auto j : range(6)) {
          y += x * z;  // x and z are assigned further down
          If (j > 2) {
            for (auto k : range(2)) z += k;
          }
          x = x / 2 + j;
        }
        return y;
      },
      [](int i) {
        int x = i, y = 0, z = 1;
        for (int j = 0; j < 6; ++j) {
          y += x * z;
          if (j > 2)
            for (int k = 0; k < 2; ++k) z += k;
          x = x / 2 + j;
        }
        return y;
      });
}

TEST_P(ControlFlow, elements_of_arrays_of_booleans_are_operands) {
  const Array<bool> a(device(), {false, false, true, true}), b(device(), {false, true, false, true});
  Array<int> out = zeros<int>(device(), 4);
  launch(kernel("operands",
                [](Arr<const bool> a, Arr<bool> b, Arr<int> out) {
                  Int i = tid();
                  If (a[i] && b[i]) {
                    out[i] += 1;
                  }
                  If (a[i] || b[i]) {
                    out[i] += 10;
                  }
                  If (b[i] && a[i]) {
                    out[i] += 100;
                  }
                  If (b[i] || a[i]) {
                    out[i] += 1000;
                  }
                }),
         4, a, b, out);
  EXPECT_EQ(out.to_vector(), (std::vector<int>{0, 1010, 1010, 1111}));
}

}  // namespace
