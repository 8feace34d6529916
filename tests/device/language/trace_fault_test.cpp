// Mistakes of a caller while a kernel is traced are Errors: exceptions that leave traced blocks, and literal indices
// that are out of range.
#include <functional>

#include "../device_test.h"

using namespace weft;
using test::error_of;
using test::expect_contains;

namespace {

DEVICE_TEST(TraceFaults);

/// The error of a kernel with this body.
std::string fault(const Device& device, const std::function<void(Arr<float>)>& body) {
  Array<float> x = zeros<float>(device, 4);
  return error_of([&] { launch(kernel("faulty", [&](Arr<float> x) { body(x); }), 1, x); });
}

template <class F>
void caught(F f) {
  try {
    f();
  } catch (int) {
  }
}

TEST_P(TraceFaults, an_exception_that_is_caught_after_it_left_a_block_is_an_error) {
  const auto leaves = [&](const char* what, const std::function<void(Arr<float>)>& body) {
    SCOPED_TRACE(what);
    const std::string text = fault(device(), body);
    expect_contains(text, std::string("an exception leaves ") + what);
    expect_contains(text, "kernel \"faulty\"");
    expect_contains(text, "trace_fault_test.cpp:");
  };
  leaves("the body of If", [](Arr<float> x) {
    caught([&] {
      If (x[0] > 0) {
        throw 1;
      }
    });
  });
  leaves("the body of If", [](Arr<float> x) {
    caught([&] {
      If (x[0] > 0) {
        x[0] = 1;
        throw 1;
      }
      Else { x[0] = 2; }
    });
    x[1] = 3;
  });
  leaves("the body of Else", [](Arr<float> x) {
    caught([&] {
      If (x[0] > 0) {
        x[0] = 1;
      }
      Else { throw 1; }
    });
    for (auto k : range(3)) x[k] = 1;
  });
  leaves("the body of If", [](Arr<float> x) {
    caught([&] {
      If (x[0] > 0) {
        x[0] = 1;
      }
      ElseIf (x[1] > 0) {
        throw 1;
      }
    });
  });
  leaves("the body of While", [](Arr<float> x) {
    caught([&] {
      While (x[0] > 0) {
        throw 1;
      }
    });
  });
  leaves("the body of While", [](Arr<float> x) {
    caught([&] {
      While ([]() -> Bool { throw 1; }()) {
        x[0] = 1;
      }
    });
  });
  leaves("the body of for (.. : range(..))", [](Arr<float> x) {
    caught([&] {
      for (auto k : range(4)) {
        x[k] = 1;
        throw 1;
      }
    });
  });
  leaves("the body of If", [](Arr<float> x) { caught([&] { if_(x[0] > 0, [] { throw 1; }); }); });
  leaves("the body of If",
         [](Arr<float> x) { caught([&] { if_(x[0] > 0, [] {}).elif_([&] { return x[1] > 0; }, [] { throw 1; }); }); });
  leaves("the body of Else", [](Arr<float> x) { caught([&] { if_(x[0] > 0, [] {}).else_([] { throw 1; }); }); });
  leaves("the body of While", [](Arr<float> x) { caught([&] { while_([&] { return x[0] > 0; }, [] { throw 1; }); }); });
  leaves("an operand of && or ||", [](Arr<float> x) {
    caught([&] {
      [[maybe_unused]] Bool b = x[0] > 0 && [&]() -> Bool {
        x[0] = 1;
        throw 1;
      }();
    });
  });
  leaves("the body of If", [](Arr<float> x) {
    // The fault is inside a block that continues.
    While (x[0] > 0) {
      caught([&] {
        If (x[0] > 0) {
          throw 1;
        }
      });
      x[0] -= 1;
    }
  });
  leaves("func \"f\"", [](Arr<float> x) {
    const auto f = func("f", [](Float a) -> Float {
      if (true) throw 1;
      return a;
    });
    caught([&] { x[0] = f(x[0]); });
    x[1] = 1;
  });
  leaves("the body of If", [](Arr<float> x) {
    const auto f = func("f", [](Float a) -> Float {
      caught([&] {
        If (a > 0) {
          throw 1;
        }
      });
      return a;
    });
    x[0] = f(x[0]);
  });
}

TEST_P(TraceFaults, in_debug_mode_too) {
  Array<float> x = zeros<float>(device(), 4);
  const auto k = kernel("faulty",
                        [](Arr<float> x) {
                          const auto f = func("f", [](Float a) -> Float {
                            If (a > 0) {
                              throw 1;
                            }
                            return a;
                          });
                          caught([&] { x[0] = f(x[0]); });
                        },
                        {.debug = true});
  expect_contains(error_of([&] { launch(k, 1, x); }), "an exception leaves the body of If");
}

TEST_P(TraceFaults, an_exception_of_the_callers_comes_through) {
  Array<float> x = zeros<float>(device(), 4);
  const auto k = kernel("thrower", [](Arr<float> x) {
    If (x[0] > 0) {
      for (auto i : range(3)) {
        x[i] = 1;
        throw 7;
      }
    }
  });
  EXPECT_THROW(launch(k, 1, x), int);
  EXPECT_THROW(launch(k, 1, x), int);  // the first leaves nothing behind
  launch(kernel("next", [](Arr<float> x) { x[0] = 2; }), 1, x);
  EXPECT_EQ(x.at(0), 2);
}

TEST_P(TraceFaults, an_exception_that_leaves_no_block_is_the_kernels_own_business) {
  Array<float> x = zeros<float>(device(), 4);
  launch(kernel("fine",
                [](Arr<float> x) {
                  If (x[0] == 0) {
                    caught([] { throw 1; });
                    x[0] = 3;
                  }
                  caught([&] {
                    x[1] = 4;
                    throw 1;
                  });
                }),
         1, x);
  EXPECT_EQ(x.at(0), 3);
  EXPECT_EQ(x.at(1), 4);
}

TEST_P(TraceFaults, an_error_of_wefts_that_the_kernel_catches_stays_an_error) {
  const auto swallow = [](const auto& f) {
    try {
      f();
    } catch (...) {
    }
  };
  for (const std::string& text : {fault(device(), [&](Arr<float> x) { swallow([&] { x[-1] = 1; }); }),
                                  fault(device(),
                                        [&](Arr<float> x) {
                                          swallow([&] { x[-1] = 1; });
                                          If (x[0] > 0) {
                                            x[0] = 1;
                                          }
                                        }),
                                  fault(device(), [&](Arr<float> x) {
                                    If (x[0] > 0) {
                                      swallow([&] { Break(); });
                                      x[0] = 1;
                                    }
                                  })}) {
    expect_contains(text, "a weft::Error of this kernel is caught inside it");
    expect_contains(text, "kernel \"faulty\"");
  }
  const std::string text = fault(device(), [&](Arr<float> x) {
    const auto f = func("f", [&](Float a) {
      swallow([] { barrier(); });
      return a + 1;
    });
    x[0] = f(x[0]);
  });
  expect_contains(text, "func \"f\" catches what weft throws");
}

TEST_P(TraceFaults, literal_indices_that_are_out_of_range_are_refused) {
  const auto refused = [&](const char* words, const std::function<void(Arr<float>)>& body) {
    const std::string text = fault(device(), body);
    expect_contains(text, words);
    expect_contains(text, "trace_fault_test.cpp:");
  };
  refused("index -1 is outside dimension 0 of argument 1", [](Arr<float> x) { x[-1] = 4; });
  refused("index -1 is outside dimension 0 of argument 1", [](Arr<float> x) { x(-1) += 4; });
  refused("index -9000000000 is outside dimension 0 of argument 1",
          [](Arr<float> x) { x[std::int64_t(-9000000000)] = 4; });
  refused("slice(-1, 2, 1) of argument 1", [](Arr<float> x) { x.slice(-1, 2)[0] = 4; });
  refused("slice(0, (traced), 0) of argument 1", [](Arr<float> x) { x.slice(0, x.shape(0), 0)[0] = 4; });
  refused("slice(3, 2, 1) of argument 1", [](Arr<float> x) { x.slice(3, 2)[0] = 4; });
  refused("index 2 is outside dimension 0 of argument 1, which has 2 elements",
          [](Arr<float> x) { x.slice(1, 3)[2] = 4; });
  refused("slice(0, 3, 1) of argument 1: it takes 0 <= lo <= hi <= extent of 2",
          [](Arr<float> x) { x.slice(1, 3).slice(0, 3)[0] = 4; });
  refused("index 8 is outside dimension 0 of private array 1, which has 8 elements", [](Arr<float> x) {
    auto own = private_array<float>(8);
    own[8] = x[0];
  });
  refused("index -1 is outside dimension 1 of private array 1, which has 3 elements", [](Arr<float> x) {
    auto own = private_array<float, 2>({{2, 3}});
    own(1, -1) = x[0];
  });
  refused("index 2 is outside dimension 0 of private array 1, which has 2 elements", [](Arr<float> x) {
    auto own = private_array<float, 2>({{2, 3}});
    own[2][0] = x[0];
  });
  refused("index 16 is outside dimension 0 of shared array 1, which has 16 elements", [](Arr<float> x) {
    auto all = shared<float>(16);
    all[16u] = x[0];
  });
  refused("index -1 is out of range: there are 3, from 0", [](Arr<float> x) {
    Vec3 v;
    v[-1] = x[0];
  });
  refused("index 2 is out of range: there are 2, from 0", [](Arr<float> x) {
    Mat22 m;
    m(Int(x[0]), 2) = x[0];
  });
  refused("index 2 is out of range: there are 2, from 0", [](Arr<float> x) {
    Mat22 m;
    m.row(2) = Vec2(x[0]);
  });
  refused("index -1 is out of range: there are 4, from 0", [](Arr<float> x) {
    Var<std::array<float, 4>> w;
    w[-1] = x[0];
  });
}

TEST_P(TraceFaults, literal_indices_of_branches_that_no_thread_takes_are_not_looked_at) {
  Array<float> x(device(), std::vector<float>{1, 2, 3, 4});
  launch(kernel("unrolled",
                [](Arr<float> x) {
                  auto own = private_array<float>(4);
                  Vec3 v;
                  for (int k = 0; k < 4; ++k) {
                    If (k > 0) {
                      own[k] = x[k - 1];
                      v[k - 1] = x[k];
                      If (x[0] > 0) {
                        own[k] += x.slice(k - 1, k)[0];
                      }
                    }
                    Else { own[k] = 100; }
                    If (k == 3) {
                      own[k] += 1;
                    }
                    ElseIf (k < 3) {
                      own[k + 1] = 0;
                    }
                  }
                  for (int k = 0; k < 4; ++k) x[k] = own[k];
                  x[0] += v.x + v.z;
                }),
         1, x);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{106, 2, 4, 7}));
  launch(kernel("no rounds",
                [](Arr<float> x) {
                  for (int k = 0; k < 3; ++k) {
                    for (auto j : range(k)) x[j] += x[k - 1];
                    for ([[maybe_unused]] auto j : range(k - 1, -1, -1)) x[k] += x[k - 1];
                    While (k > 0) {
                      x[k - 1] += 1;
                      Break();
                    }
                    for ([[maybe_unused]] auto j : range(2)) {
                      If (k == 0) {
                        Continue();
                      }
                      x[k - 1] += 10;
                    }
                    for ([[maybe_unused]] auto j : range(2)) {
                      if (k == 0) Continue();
                      x[k - 1] += 100;
                    }
                  }
                }),
         1, x);
  std::vector<float> expected{106, 2, 4, 7};
  for (int k = 1; k < 3; ++k) {
    for (int j = 0; j < k; ++j) expected[std::size_t(j)] += expected[std::size_t(k - 1)];
    for (int j = k - 1; j > -1; --j) expected[std::size_t(k)] += expected[std::size_t(k - 1)];
    expected[std::size_t(k - 1)] += 1 + 20 + 200;
  }
  EXPECT_EQ(x.to_vector(), expected);
  expect_contains(fault(device(),
                        [](Arr<float> x) {
                          If (true) {
                            x[-1] = 4;
                          }
                          Else { x[-2] = 3; }
                        }),
                  "index -1 is outside dimension 0");
}

TEST_P(TraceFaults, literal_indices_of_rows_and_lists_are_looked_at) {
  Array<float, 2> x = zeros<float, 2>(device(), {2, 3});
  const auto of = [&](auto body) { return error_of([&] { launch(kernel("rows", body), 1, x); }); };
  expect_contains(of([](Arr<float, 2> x) { x(0, -2) = 1; }), "index -2 is outside dimension 1 of argument 1");
  expect_contains(of([](Arr<float, 2> x) { x[0][-2] = 1; }), "index -2 is outside dimension 1 of argument 1");
  expect_contains(of([](Arr<float, 2> x) { x[-3][0] = 1; }), "index -3 is outside dimension 0 of argument 1");
  const auto listed = kernel("listed", [](IndexedArr<float, 2> x) { x(tid(), -1) = 1; });
  Array<int> rows(device(), std::vector<int>{1, 0});
  expect_contains(error_of([&] { launch(listed, 1, indexed(x, rows, rows)); }), "index -1 is outside dimension 0 of");
}

TEST_P(TraceFaults, a_native_else_after_an_if_is_refused) {
  // The else would run in every thread: native code takes the second round of the If, in which nothing is conditional.
  auto x = zeros<int>(device(), 4);
  expect_contains(error_of([&] {
                    launch(kernel("native_else",
                                  [](Arr<int> x) {
                                    Int i = tid();
                                    If (i > 1) {
                                      x[i] = 1;
                                    } else {
                                      x[i] = 2;
                                    }
                                  }),
                           4, x);
                  }),
                  "a native else follows an If; write Else or ElseIf");
  expect_contains(error_of([&] {
                    launch(kernel("native_else_of_variables",
                                  [](Arr<int> x) {
                                    Int i = tid(), v = 0;
                                    If (i > 1) {
                                      x[i] = 1;
                                    } else {
                                      v = 2;
                                    }
                                    x[i] += v;
                                  }),
                           4, x);
                  }),
                  "a native else follows an If");
  expect_contains(error_of([&] {
                    launch(kernel("native_else_if",
                                  [](Arr<int> x) {
                                    Int i = tid();
                                    If (i > 1) {
                                      x[i] = 1;
                                    } else If (i > 0) {
                                      x[i] = 2;
                                    }
                                  }),
                           4, x);
                  }),
                  "a native else follows an If");
  EXPECT_EQ(x.to_vector(), std::vector<int>(4, 0));
}

TEST_P(TraceFaults, an_else_belongs_to_the_if_that_cpp_says) {
  const auto host = [](int a, int b) {
    int r = 0;
    if (a) {
      if (b)
        r = 7;
      else
        r = 8;
    }
    return r;
  };
  Array<int> out = zeros<int>(device(), 9);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-else"
  launch(kernel("dangling",
                [](Arr<int> out) {
                  Int i = tid();
                  If (i % 2 == 1)
                    If (i / 2 == 1) out[i] = 7;
                  Else out[i] = 8;
                  const bool native = true;
                  if (native)
                    If (i == 0) out[4] = 1;
                  Else out[5 + i] = 1;
                }),
         2 * 2, out);
#pragma GCC diagnostic pop
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.at(i), host(i % 2, i / 2 == 1)) << i;
  EXPECT_EQ(out.at(4), 1);
  EXPECT_EQ(out.at(6), 1);
  EXPECT_EQ(out.at(7), 1);
  EXPECT_EQ(out.at(8), 1);
}

}  // namespace
