// Control flow that is deep, or that drivers make deep: the values are right on every device, forward and backward.
#include <functional>
#include <string>
#include <vector>

#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

// Depths on both sides of the limit of drivers (80), and far beyond; each costs one compilation on a software device.
constexpr int kDepths[] = {40, 80, 81, 200, 400};

DEVICE_TEST(DeepControlFlow);

/// Launches a kernel over depth + 3 threads and compares the output of each with `expected`.
template <class K, class F>
void expect_values(const Device& device, const K& kernel, int depth, F expected) {
  auto out = zeros<int>(device, depth + 3);
  launch(kernel, depth + 3, out);
  const std::vector<int> values = out.to_vector();
  for (int i = 0; i < depth + 3; ++i)
    ASSERT_EQ(values[std::size_t(i)], expected(i)) << "thread " << i << " of " << depth;
}

TEST_P(DeepControlFlow, early_returns_in_a_row) {
  for (const int depth : kDepths) {
    auto k = kernel("returns", [depth](Arr<int> o) {
      Int i = tid();
      for (int k = 0; k < depth; ++k) {
        If (i == k) {
          o[i] = k + 1;
          Return();
        }
      }
      o[i] = -1;
    });
    expect_values(device(), k, depth, [&](int i) { return i < depth ? i + 1 : -1; });
  }
}

TEST_P(DeepControlFlow, continues_and_breaks_in_a_row) {
  for (const int depth : kDepths) {
    auto k = kernel("exits", [depth](Arr<int> o) {
      Int i = tid(), sum = 0;
      for (auto j : range(4)) {
        for (int k = 0; k < depth; ++k) {
          If (i == k) {
            sum += k + j;
            if (k % 3 == 2) {
              If (j == 2) {
                Break();
              }
            }
            Continue();
          }
        }
        sum += 1000;
      }
      While (true) {
        for (int k = 0; k < depth; ++k) {
          If (i == k) {
            sum += k;
            Break();
          }
        }
        sum += 500;
        Break();
      }
      o[i] = sum;
    });
    expect_values(device(), k, depth, [&](int i) {
      if (i >= depth) return 4500;
      int sum = i;
      for (int j = 0; j < 4; ++j) {
        sum += i + j;
        if (i % 3 == 2 && j == 2) break;
      }
      return sum;
    });
  }
}

TEST_P(DeepControlFlow, alternatives_of_a_chain) {
  for (const int depth : kDepths) {
    auto k = kernel("chain", [depth](Arr<int> o) {
      Int i = tid();
      auto chain = if_(i == 0, [&] { o[i] = 7; });
      for (int k = 1; k < depth; ++k) chain.elif_([&] { return i == k; }, [&] { o[i] = 3 * k; });
      chain.else_([&] { o[i] = -2; });
    });
    expect_values(device(), k, depth, [&](int i) { return i == 0 ? 7 : i < depth ? 3 * i : -2; });
  }
}

void nested(const Arr<int>& o, const Int& i, int k, int depth) {
  if (k == depth) {
    o[i] = -7;
    return;
  }
  Int before = o[i] + k;
  If (i > k) {
    nested(o, i, k + 1, depth);
    // `before` was computed before the branch inside, and is needed after it.
    o[i] += before % 3;
  }
  Else { o[i] = before; }
}

TEST_P(DeepControlFlow, branches_inside_each_other) {
  for (const int depth : kDepths) {
    auto k = kernel("nested", [depth](Arr<int> o) {
      Int i = tid();
      nested(o, i, 0, depth);
    });
    expect_values(device(), k, depth, [&](int i) {
      const std::function<void(int&, int)> go = [&](int& o, int k) {
        if (k == depth) {
          o = -7;
          return;
        }
        const int before = o + k;
        if (i > k) {
          go(o, k + 1);
          o += before % 3;
        } else {
          o = before;
        }
      };
      int o = 0;
      go(o, 0);
      return o;
    });
  }
}

TEST_P(DeepControlFlow, assertions_and_checks_of_debug_mode) {
  // Each assertion and each read of an array may end the thread.
  constexpr int kReads = 150;
  auto k = kernel("checks", [](Arr<const int> a, Arr<int> o) {
    Int i = tid(), sum = 0;
    for (int k = 0; k < kReads; ++k) {
      sum += a[(i * 7 + k * k) % 64] * (k % 5 + 1);
      assert_(sum >= 0, "sum", sum);
    }
    o[i] = sum;
  });
  std::vector<int> numbers(64);
  for (int k = 0; k < 64; ++k) numbers[std::size_t(k)] = k * 37 % 101;
  const struct Restored {
    Debug before = debug_mode();
    ~Restored() { set_debug(before); }
  } restored;
  for (const bool checks : {false, true}) {
    set_debug(checks);
    auto a = Array<int>(device(), numbers);
    auto out = zeros<int>(device(), 40);
    launch(k, 40, a, out);
    const std::vector<int> values = out.to_vector();
    for (int i = 0; i < 40; ++i) {
      int sum = 0;
      for (int k = 0; k < kReads; ++k) sum += numbers[std::size_t((i * 7 + k * k) % 64)] * (k % 5 + 1);
      ASSERT_EQ(values[std::size_t(i)], sum) << i << (checks ? " with checks" : "");
    }
  }
}

/// All threads of a workgroup come to the innermost block, and exchange numbers there.
template <class Held>
void together(const Arr<int>& o, Held& held, const Int& n, int k, int depth) {
  Int i = tid();
  if (k == depth) {
    held[local_id()] = i * 3;
    barrier();
    o[i] = held[(local_id() + 1) % block_dim()] + 1;
    barrier();
    return;
  }
  // The condition is the same in all threads, and known to be so.
  If (n > k) {
    together(o, held, n, k + 1, depth);
    o[i] += 1;
  }
  Else { o[i] = -k; }
}

TEST_P(DeepControlFlow, barriers_in_blocks_that_are_laid_out_flat) {
  constexpr int kBlock = 16, kThreads = 4 * kBlock;
  for (const int depth : {60, 90, 200}) {
    auto k = kernel("together",
                    [depth](Arr<int> o, Int n) {
                      auto held = shared<int>(kBlock);
                      together(o, held, n, 0, depth);
                    },
                    {.block = kBlock});
    auto out = zeros<int>(device(), kThreads);
    launch(k, kThreads, out, depth);
    std::vector<int> values = out.to_vector();
    for (int i = 0; i < kThreads; ++i) {
      const int next = i / kBlock * kBlock + (i + 1) % kBlock;
      ASSERT_EQ(values[std::size_t(i)], next * 3 + 1 + depth) << "thread " << i << " of " << depth;
    }
    launch(k, kThreads, out, depth - 5);
    values = out.to_vector();
    for (int i = 0; i < kThreads; ++i) ASSERT_EQ(values[std::size_t(i)], 0) << "thread " << i << " of " << depth;
  }
}

/// The threads of a subgroup stay together, on sides that they choose together, and add up at each level.
void subgroups_together(const Arr<int>& o, const Int& n, int k, int depth) {
  Int i = tid();
  if (k == depth) {
    o[i] += subgroup_max(subgroup_lane()) + 1 - subgroup_size();
    return;
  }
  If (n > k) {
    o[i] += subgroup_add(Int(1));
    subgroups_together(o, n, k + 1, depth);
  }
  Else { o[i] -= subgroup_add(Int(2)); }
}

TEST_P(DeepControlFlow, operations_of_subgroups_in_blocks_that_are_laid_out_flat) {
  constexpr int kBlock = 128;
  for (const int depth : {60, 90, 200}) {
    auto k = kernel("subgroups",
                    [depth](Arr<int> o, Int n, Arr<int> size) {
                      size[tid()] = subgroup_size();
                      subgroups_together(o, n, 0, depth);
                    },
                    {.block = kBlock});
    for (const int n : {depth, depth - 5, 3}) {
      auto out = zeros<int>(device(), 2 * kBlock), size = zeros<int>(device(), 2 * kBlock);
      launch(k, 2 * kBlock, out, n, size);
      const int each = size.at(0);
      const std::vector<int> values = out.to_vector();
      for (const int v : values) ASSERT_EQ(v, n == depth ? n * each : (n - 2) * each) << n << " of " << depth;
    }
  }
}

TEST_P(DeepControlFlow, exits_by_the_thousands_in_flat_code) {
  // The time of drivers grows with the square of the number of exits, to seconds.
  const int exits = on_reference() ? 5000 : 1000;
  constexpr int kThreads = 40;
  const int step = exits / 33;
  auto k = kernel("many exits", [exits, step](Arr<int> o) {
    Int i = tid(), kept = 0;
    for (auto j : range(2)) {
      for (int k = 0; k < exits; ++k) {
        Int next = kept + k % 3;
        If (i * step + j == k) {
          o[i] = next;
          if (k % 2 == 0)
            Continue();
          else
            Return();
        }
        // This value is needed hundreds of exits later.
        if (k % 500 == 0) kept = next;
      }
      kept += 100;
    }
    o[i] = -kept;
  });
  EXPECT_FALSE(k.spirv().words.empty());
  auto out = zeros<int>(device(), kThreads);
  launch(k, kThreads, out);
  const std::vector<int> values = out.to_vector();
  for (int i = 0; i < kThreads; ++i) {
    int kept = 0, right = 0;
    bool returned = false;
    for (int j = 0; j < 2 && !returned; ++j) {
      bool left = false;
      for (int k = 0; k < exits && !left; ++k) {
        const int next = kept + k % 3;
        left = i * step + j == k;
        if (left) right = next;
        returned = left && k % 2 == 1;
        if (!left && k % 500 == 0) kept = next;
      }
      if (!left) kept += 100;
    }
    if (!returned) right = -kept;
    ASSERT_EQ(values[std::size_t(i)], right) << "thread " << i << " of " << exits;
  }
}

TEST_P(DeepControlFlow, gradients_through_views_that_are_made_among_many_exits) {
  auto k = kernel("views", [](Arr<const float> x, Arr<float> y) {
    Int i = tid();
    If (i == 1000) {
      Return();
    }
    auto view = x.slice(1, x.shape(0));
    for (int k = 0; k < 300; ++k) {
      If (i == k + 2) {
        y[i] = float(k);
        Return();
      }
    }
    y[i] = 3 * view[0] * view[i];
  });
  auto x = Array<float>(device(), std::vector<float>{1, 2, 4, 8}).requires_grad();
  auto y = zeros<float>(device(), 4).requires_grad();
  Tape tape;
  tape.record([&] { launch(k, 4, x, y); });
  EXPECT_EQ(y.to_vector(), (std::vector<float>{12, 24, 0, 1}));
  tape.backward({{y, full<float>(device(), 4, 1.f)}});
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{0, 12 + 12, 6, 0}));
}

TEST_P(DeepControlFlow, gradients_of_ladders_and_of_early_returns) {
  for (const int depth : {60, 90, 400}) {
    auto ladder = kernel("ladder", [depth](Arr<const float> x, Arr<float> y) {
      Int i = tid();
      Float v = x[i];
      auto chain = if_(i == 0, [&] { v = 0.5f * v; });
      for (int k = 1; k < depth; ++k) chain.elif_([&] { return i == k; }, [&] { v = float(k) * v * v; });
      chain.else_([&] { v = 3 * v; });
      y[i] = v;
    });
    auto returns = kernel("returns", [depth](Arr<const float> x, Arr<float> y) {
      Int i = tid();
      for (int k = 0; k < depth; ++k) {
        If (i == k) {
          y[i] = float(k + 1) * x[i] * x[i];
          Return();
        }
      }
      y[i] = -x[i];
    });
    const int n = depth + 2;
    std::vector<float> numbers(std::size_t(n), 0.f);
    for (int i = 0; i < n; ++i) numbers[std::size_t(i)] = 1 + float(i % 7) / 4;
    for (const bool early : {false, true}) {
      auto x = Array<float>(device(), numbers).requires_grad();
      auto y = zeros<float>(device(), n).requires_grad();
      Tape tape;
      tape.record([&] { launch(early ? returns : ladder, n, x, y); });
      tape.backward({{y, full<float>(device(), n, 1.f)}});
      const std::vector<float> gradients = x.grad().to_vector();
      for (int i = 0; i < n; ++i) {
        const float at = numbers[std::size_t(i)];
        const float expected = early ? (i < depth ? 2 * float(i + 1) * at : -1.f)
                                     : (i == 0      ? 0.5f
                                        : i < depth ? 2 * float(i) * at
                                                    : 3.f);
        ASSERT_FLOAT_EQ(gradients[std::size_t(i)], expected) << "thread " << i << " of " << depth << " early " << early;
      }
    }
  }
}

TEST_P(DeepControlFlow, more_than_is_held_is_refused_with_a_number) {
  const auto message = [&](auto k) {
    auto out = zeros<int>(device(), 4);
    return error_of([&] { launch(k, 4, out); });
  };
  const std::string chain = message(kernel("alternatives", [](Arr<int> o) {
    Int i = tid();
    auto chain = if_(i == 0, [&] { o[i] = 7; });
    for (int k = 1; k < 3000; ++k) chain.elif_([&] { return i == k; }, [&] { o[i] = k; });
  }));
  expect_contains(chain, "more than 1024 alternatives");
  expect_contains(chain, "deep_control_flow_test.cpp");
  const std::string deep = message(kernel("blocks", [](Arr<int> o) {
    Int i = tid();
    nested(o, i, 0, 3000);
  }));
  expect_contains(deep, "more than 1024 blocks are nested");
}

}  // namespace
