// print() and assert_(): the reports of kernels to the host, their order, and the limits of their number.
#include <weft/runtime/graph.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../printed.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;
using weft::test::Lines;
using weft::test::Printed;

namespace {

DEVICE_TEST(Report);

TEST_P(Report, lines_come_by_launch_then_thread_then_order) {
  Printed printed;
  auto two = kernel("two", [](Arr<const float> x, Int shift) {
    Int i = tid();
    print("x", i + shift, "=", x[i]);
    print("again", i);
  });
  Array<float> x(device(), {0.5f, 0.1f, 1e20f});
  launch(two, 3, x, 0);
  launch(two, 3, x, 10);
  EXPECT_EQ(printed.lines(), Lines{}) << "nothing was waited for";
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"x 0 = 0.5", "again 0", "x 1 = 0.1", "again 1", "x 2 = 1e+20", "again 2",
                                    "x 10 = 0.5", "again 0", "x 11 = 0.1", "again 1", "x 12 = 1e+20", "again 2"}));
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{}) << "lines are shown once";
}

TEST_P(Report, reading_an_array_shows_what_its_producer_printed) {
  Printed printed;
  auto put = kernel("put", [](Arr<int> out) {
    out[tid()] = 7;
    print("put", tid());
  });
  Array<int> a = zeros<int>(device(), 2), unrelated = zeros<int>(device(), 1);
  EXPECT_EQ(unrelated.at(0), 0);
  launch(put, 2, a);
  EXPECT_EQ(a.to_vector(), (std::vector<int>{7, 7}));
  EXPECT_EQ(printed.lines(), (Lines{"put 0", "put 1"}));
  launch(put, 1, a);
  a.wait();
  EXPECT_EQ(printed.lines(), Lines{"put 0"});
  launch(put, 1, a);
  Stream stream = device().stream();
  stream.synchronize();
  EXPECT_EQ(printed.lines(), Lines{"put 0"});
}

TEST_P(Report, values_of_every_type_are_printed_with_the_fewest_digits) {
  Printed printed;
  auto all = kernel("all", [](Arr<int> out, Int8 a, UInt8 b, Int16 c, UInt16 d, Int e, UInt f, Int64 g, UInt64 h,
                              Half i, Float j, Bool l, Float m) {
    print(a, b, c, d);
    print(e, f, g, h);
    print(i, j, l, !l);
    print(m, -m, m - m);
    print(Vec3(1, 2.5f, j), Mat22(1, 2, 3, 4.5f), vec3{4, 5, 6}, Vec2i(-1, 7));
    print("host", 3, 2.5, true, 7u, std::string("text"), std::int64_t(1) << 40);
    print();
    print("");
    out[0] = 1;
    print(out[0], "element");
  });
  Array<int> out = zeros<int>(device(), 1);
  launch(all, 1, out, std::int8_t(-128), std::uint8_t(255), std::int16_t(-32768), std::uint16_t(65535), INT32_MIN, ~0u,
         INT64_MIN, ~0ull, half(0.1f), 0.1f, true, std::numeric_limits<float>::infinity());
  device().synchronize();
  EXPECT_EQ(printed.lines(),
            (Lines{"-128 255 -32768 65535", "-2147483648 4294967295 -9223372036854775808 18446744073709551615",
                   "0.1 0.1 true false", "inf -inf nan", "[1, 2.5, 0.1] [[1, 2], [3, 4.5]] [4, 5, 6] [-1, 7]",
                   "host 3 2.5 true 7 text 1099511627776", "", "", "1 element"}));
}

TEST_P(Report, components_by_traced_index_are_printed) {
  Printed printed;
  auto k = kernel("parts", [](Arr<const vec3> x, Int limit) {
    Int i = tid();
    Vec3 v = x[i];
    Mat22 m(1, 2, 3, 4);
    print(v[i], x[i][i], m(i, 0), m(i, 1 - i));
    print("at", i, v[i]);
    assert_(i < limit, v[i], "and", m(1, i));
  });
  Array<vec3> x(device(), {{1, 2, 3}, {4, 5, 6}});
  launch(k, 2, x, 2);
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"1 1 1 2", "at 0 1", "5 5 3 3", "at 1 5"}));
  launch(k, 2, x, 1);
  expect_contains(error_of([&] { device().synchronize(); }), "5 and 4");
}

template <template <class> class F = Host>
struct Ball {
  F<vec3> center;
  F<float> radius;
};
template <template <class> class F = Host>
struct Scene {
  F<Ball<>> ball;
  F<std::array<int, 2>> ids;
  F<bool> shown;
};

TEST_P(Report, structs_are_printed_field_by_field) {
  Printed printed;
  auto scene = kernel("scene", [](Arr<const Scene<>> scenes, Var<Ball<>> ball) {
    print("scene", scenes[tid()], "of", tid());
    print(ball, ball.center);
  });
  Array<Scene<>> scenes(device(), {Scene<>{{{1, 2.5f, 3}, 0.5f}, {4, 5}, true}});
  launch(scene, 1, scenes, Ball<>{{0, 0, 1}, 2});
  device().synchronize();
#ifdef WEFT_NAMES_FIELDS
  EXPECT_EQ(printed.lines(),
            (Lines{"scene Scene(ball=Ball(center=[1, 2.5, 3], radius=0.5), ids=[4, 5], shown=true) of 0",
                   "Ball(center=[0, 0, 1], radius=2) [0, 0, 1]"}));
#else  // the compiler does not say
  EXPECT_EQ(printed.lines(),
            (Lines{"scene Scene(field 1=Ball(field 1=[1, 2.5, 3], field 2=0.5), field 2=[4, 5], field 3=true) of 0",
                   "Ball(field 1=[0, 0, 1], field 2=2) [0, 0, 1]"}));
#endif
}

TEST_P(Report, doubles_are_printed_where_the_device_has_them) {
  Printed printed;
  auto doubles = kernel("doubles", [](Arr<double> x) { print(x[0], Vec2d(x[1], 3)); });
  Array<double> x(device(), {0.1, std::numeric_limits<double>::max()});
  launch(doubles, 1, x);
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{"0.1 [1.7976931348623157e+308, 3]"});
}

TEST_P(Report, prints_stand_in_branches_and_loops) {
  Printed printed;
  auto loops = kernel("loops", [](Arr<const int> n) {
    Int i = tid();
    for (auto k : range(n[i])) {
      If (k % 2 == 0) {
        print("thread", i, "even", k);
      }
      Else {
        If (k == 3) {
          Break();
        }
        print("thread", i, "odd", k);
      }
    }
    If (i > 0 && n[i] > 2) {
      print("many");
      Return();
    }
    print("few");
  });
  Array<int> n(device(), {1, 9, 2});
  launch(loops, 3, n);
  device().synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"thread 0 even 0", "few", "thread 1 even 0", "thread 1 odd 1", "thread 1 even 2",
                                    "many", "thread 2 even 0", "thread 2 odd 1", "few"}));
}

TEST_P(Report, a_hundred_thousand_threads_lose_nothing) {
  Printed printed;
  set_report_bytes(16 << 20);
  auto number = kernel("number", [](Arr<const int> x) {
    Int i = tid();
    print(i, x[i]);
  });
  constexpr int n = 100000;
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[std::size_t(i)] = 3 * i;
  Array<int> x(device(), values);
  launch(number, n, x);
  device().synchronize();
  set_report_bytes(1 << 20);
  const Lines lines = printed.lines();
  ASSERT_EQ(lines.size(), std::size_t(n));
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(lines[std::size_t(i)], std::to_string(i) + " " + std::to_string(3 * i)) << "line " << i;
}

TEST_P(Report, lines_beyond_the_buffer_are_counted) {
  Printed printed;
  set_report_bytes(4096);
  auto shout = kernel("shout", [](Arr<const int> x) { print(tid(), x[0]); });           // 5 words a line
  auto whisper = kernel("whisper", [](Arr<const int> x) { print(tid(), x[0], 1.f); });  // 6 words a line
  Array<int> x(device(), {5});
  launch(shout, 1000, x);
  launch(whisper, 10, x);
  device().synchronize();
  Lines lines = printed.lines();
  // 4096 bytes hold 204 records of 5 words, and 4 words are left.
  ASSERT_EQ(lines.size(), 206u);
  for (std::size_t i = 0; i < 204; ++i) expect_contains(lines[i], " 5");
  expect_contains(lines[204], "796 lines of print() in kernel \"shout\" were lost");
  expect_contains(lines[204], "4096 bytes");
  expect_contains(lines[204], "WEFT_REPORT_BYTES");
  expect_contains(lines[205], "10 lines of print() in kernel \"whisper\" were lost");

  // The buffer is empty again, and failures have a place of their own.
  auto fails = kernel("fails", [](Arr<const int> x) {
    for (auto k : range(1000)) print(k);
    assert_(x[0] == 4, "four");
  });
  launch(fails, 1, x);
  expect_contains(error_of([&] { device().synchronize(); }), "an assertion failed: four");
  lines = printed.lines();
  ASSERT_EQ(lines.size(), 257u);
  EXPECT_EQ(lines[255], "255");
  expect_contains(lines[256], "744 lines");
  set_report_bytes(1 << 20);
  launch(whisper, 1, x);
  device().synchronize();
  EXPECT_EQ(printed.lines(), Lines{"0 5 1"});
}

TEST_P(Report, a_line_longer_than_the_buffer_is_lost_and_overwrites_nothing) {
  Printed printed;
  set_report_bytes(4096);
  auto large = kernel("large", [](Arr<const int> x) {
    print(tid());
    print(x[0], Mat<40, 40, float>());
  });
  Array<int> x = zeros<int>(device(), 1);
  launch(large, 1, x);
  device().synchronize();
  Lines lines = printed.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "0");
  expect_contains(lines[1], "1 line of print() in kernel \"large\" was lost");
  set_report_bytes(16384);
  launch(large, 1, x);
  device().synchronize();
  lines = printed.lines();
  set_report_bytes(1 << 20);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "0");
  expect_contains(lines[1], "0 [[0, 0, ");
}

TEST_P(Report, streams_report_apart) {
  Printed printed;
  Stream one = device().create_stream(), two = device().create_stream();
  auto say = kernel("say", [](Arr<int> x, Int who) { print("stream", who, "thread", tid(), x[0]); });
  Array<int> x = zeros<int>(device(), 1);
  for (int k = 0; k < 3; ++k) {
    launch(one, say, 1, x, 1);
    launch(two, say, 1, x, 2);
  }
  one.synchronize();
  // The array is only read, so that one stream need not wait for the other.
  for (const std::string& line : printed.lines()) EXPECT_EQ(line, "stream 1 thread 0 0");
  two.synchronize();
  launch(one, say, 1, x, 3);
  one = device().create_stream();  // the last handle of a stream shows the lines that are left
  const Lines lines = printed.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), "stream 3 thread 0 0");
}

TEST_P(Report, a_device_shows_what_is_left_when_it_goes) {
  Printed printed;
  {
    Device own = Device::open(device().name());
    Array<int> x = zeros<int>(own, 1);
    launch(kernel("late", [](Arr<const int> x) { print("late", x[0]); }), 1, x);
  }
  EXPECT_EQ(printed.lines(), Lines{"late 0"});
}

TEST_P(Report, failures_of_a_device_that_goes_are_written_to_stderr) {
  testing::internal::CaptureStderr();
  {
    Device own = Device::open(device().name());
    Array<int> x = zeros<int>(own, 1);
    launch(kernel("late", [](Arr<const int> x) { assert_(x[0] > 0, "too late"); }), 1, x);
  }
  expect_contains(testing::internal::GetCapturedStderr(), "thread 0: an assertion failed: too late");
}

TEST_P(Report, lines_go_to_the_standard_output_without_a_sink) {
  const PrintSink before = set_print_sink({});
  testing::internal::CaptureStdout();
  Array<int> x = zeros<int>(device(), 1);
  launch(kernel("plain", [](Arr<const int> x) { print("plain", x[0]); }), 1, x);
  device().synchronize();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "plain 0\n");
  set_print_sink(before);
}

TEST_P(Report, assertions_name_kernel_line_thread_and_values) {
  auto check = kernel("check", [](Arr<const float> x, Arr<float> y) {
    auto [i, j] = tid<2>();
    assert_(x[j] < 1, "x is large:", x[j], "in row", i);
    y[j] = x[j];
  });
  const int line = __LINE__ - 3;
  Array<float> x(device(), {0.f, 0.5f, 2.5f, 0.f}), y = zeros<float>(device(), 4);
  launch(check, {3, 4}, x, y);
  const std::string text = error_of([&] { y.to_vector(); });
  expect_contains(text, "report_test.cpp:" + std::to_string(line) + ": kernel fault in kernel \"check\"");
  expect_contains(text, "thread (0, 2): an assertion failed: x is large: 2.5 in row 0");
  expect_contains(text, "(2 more failures)");
  // The failure was thrown once; the threads that failed ended there.
  EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 0.5f, 0, 0}));
}

TEST_P(Report, the_failure_of_the_first_launch_and_its_lowest_thread_is_thrown) {
  auto check = kernel("check", [](Arr<const int> x, Int limit) {
    assert_(x[tid()] < limit, "limit", limit);
    assert_(tid() < 1000, "not reached");
  });
  std::vector<int> values(500);
  for (int i = 0; i < 500; ++i) values[std::size_t(i)] = i;
  Array<int> x(device(), values);
  launch(check, 500, x, 500);
  device().synchronize();
  launch(check, 500, x, 498);
  launch(check, 500, x, 100);
  const std::string text = error_of([&] { device().synchronize(); });
  expect_contains(text, "thread 498: an assertion failed: limit 498 (401 more failures)");
  try {
    launch(check, 500, x, 0);
    device().synchronize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kernel_fault);
    EXPECT_EQ(e.kernel(), "check");
    EXPECT_STREQ(e.loc().file, __FILE__);
  }
}

TEST_P(Report, a_copy_to_the_host_keeps_no_failure_to_itself) {
  auto fail = kernel("fail", [](Arr<int> x) {
    x[tid()] += 1;
    assert_(x[tid()] < 0, "not negative");
  });
  Array<int> x = zeros<int>(device(), 2);
  std::vector<int> out(2);
  launch(fail, 2, x);
  { HostCopy dropped = x.copy_to_async(out); }
  EXPECT_EQ(out, (std::vector<int>{1, 1}));
  expect_contains(error_of([&] { device().synchronize(); }), "thread 0: an assertion failed: not negative");
  device().synchronize();

  launch(fail, 2, x);
  HostCopy copy = x.copy_to_async(out);
  launch(fail, 2, x);
  expect_contains(error_of([&] { copy.wait(); }), "not negative");
  EXPECT_EQ(out, (std::vector<int>{2, 2})) << "the copy arrives before the failure is told";
  copy.wait();
  device().synchronize();
}

// Code after a failure that is known while the kernel is traced never runs, and is not in the kernel. A read of an
// array that this code would have written reports the failure all the same.
TEST_P(Report, a_certain_failure_is_told_to_who_reads_what_it_kept_from_being_written) {
  int limit = 0;
  const std::pair<const char*, Kernel<Arr<int>>> kernels[] = {
      {"by a captured number", kernel("check",
                                      [limit](Arr<int> t) {
                                        Int l = limit;
                                        assert_(l > 0, "limit:", l);
                                        t[tid()] = 1;
                                      })},
      {"at once", kernel("check",
                         [](Arr<int> t) {
                           assert_(false, "limit: 0");
                           t[tid()] = 1;
                         })},
      {"behind a condition", kernel("check",
                                    [](Arr<int> t) {
                                      const auto fails = [] {
                                        assert_(false, "limit: 0");
                                        return Bool(true);
                                      };
                                      If (t[0] == 0 && fails()) t[0] = 1;
                                    })},
      {"under what is assigned behind it", kernel("check",
                                                  [](Arr<int> t) {
                                                    Bool found = false;
                                                    If (t[0] == 0) {
                                                      assert_(false, "limit: 0");
                                                      found = true;
                                                    }
                                                    If (found) t[0] = 1;
                                                  })},
      {"in as many rounds as are counted behind it", kernel("check",
                                                            [](Arr<int> t) {
                                                              Int found = 0;
                                                              If (t[0] == 0) {
                                                                assert_(false, "limit: 0");
                                                                found = 1;
                                                              }
                                                              for (Int i : range(found)) t[i] = 1;
                                                            })},
      {"before an atomic operation", kernel("check",
                                            [](Arr<int> t) {
                                              assert_(false, "limit: 0");
                                              atomic_add(t[0], 1);
                                            })},
      {"in a branch", kernel("check",
                             [](Arr<int> t) {
                               If (tid() == 0) {
                                 assert_(false, "limit: 0");
                                 t[0] = 1;
                               }
                             })},
      {"in both branches", kernel("check",
                                  [](Arr<int> t) {
                                    If (tid() == 0) assert_(false, "limit: 0");
                                    Else Return();
                                    t[0] = 1;
                                  })},
      {"in a loop", kernel("check",
                           [](Arr<int> t) {
                             for (Int i : range(3)) {
                               assert_(false, "limit: 0");
                               If (i > 1) t[i - 2] = 1;
                             }
                           })},
      {"in a loop's condition", kernel("check",
                                       [](Arr<int> t) {
                                         while_(
                                             [] {
                                               assert_(false, "limit: 0");
                                               return Bool(true);
                                             },
                                             [&] { t[0] = 1; });
                                         t[0] = 2;
                                       })},
      {"before a barrier", kernel("check",
                                  [](Arr<int> t) {
                                    assert_(false, "limit: 0");
                                    barrier();
                                    t[0] = 1;
                                  })},
      {"in a function", kernel("check",
                               [](Arr<int> t) {
                                 const auto set = func("set", [](Arr<int> t, Int limit) {
                                   assert_(limit > 0, "limit:", limit);
                                   t[0] = 1;
                                 });
                                 set(t, 0);
                               })},
  };
  Array<int> t = zeros<int>(device(), 1);
  const std::pair<const char*, std::function<void()>> ways[] = {
      {"at", [&] { t.at(0); }}, {"to_vector", [&] { t.to_vector(); }}, {"wait", [&] { t.wait(); }}};
  for (const auto& [where, check] : kernels) {
    const Graph graph = capture(device(), [&] { launch(check, 1, t); });
    for (const auto& [way, read] : ways)
      for (const bool by_graph : {false, true}) {
        SCOPED_TRACE(std::string(where) + ", read by " + way + (by_graph ? ", launched by a graph" : ""));
        by_graph ? graph.launch() : launch(check, 1, t);
        expect_contains(error_of(read), "an assertion failed: limit: 0");
        device().synchronize();  // the failure was reported above
      }
  }
}

TEST_P(Report, a_thread_that_is_certain_to_fail_and_goes_on_keeps_what_it_had_assigned) {
  const auto check = kernel("check",
                            [](Arr<const int> t, Arr<int> u) {
                              Int found = -1;
                              If (t[tid()] == 0) {
                                found = 5;
                                assert_(false, "never");
                              }
                              barrier();
                              u[tid()] = found;
                            },
                            {.block = 32});
  std::vector<int> values(32, 0);
  values[3] = 1;
  const Array<int> t(device(), values), u = zeros<int>(device(), 32);
  launch(check, 32, t, u);
  expect_contains(error_of([&] { u.at(0); }), "never (30 more failures)");
  std::vector<int> expected(32, 5);
  expected[3] = -1;
  EXPECT_EQ(u.to_vector(), expected);
}

TEST_P(Report, a_certain_failure_is_told_to_a_tape) {
  const float limit = 0;
  const auto square = kernel("square", [limit](Arr<const float> x, Arr<float> y) {
    assert_(Float(limit) > 0, "limit", limit);
    y[tid()] = x[tid()] * x[tid()];
  });
  const Array<float> x = full<float>(device(), 4, 2).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  Tape tape;
  tape.record([&] { launch(square, 4, x, y); });
  expect_contains(error_of([&] {
                    tape.backward({{y, full<float>(device(), 4, 1)}});
                    x.grad().at(0);
                  }),
                  "an assertion failed: limit 0");
}

TEST_P(Report, kernels_of_one_place_that_differ_only_behind_a_certain_failure_are_told_apart) {
  const Array<int> t = zeros<int>(device(), 1), u = zeros<int>(device(), 1);
  for (const bool first : {true, false, true}) {
    const auto check = kernel("check", [first](Arr<int> t, Arr<int> u) {
      assert_(false, "never");
      (first ? t : u)[0] = 1;
    });
    launch(check, 1, t, u);
    expect_contains(error_of([&] { (first ? t : u).at(0); }), "an assertion failed: never");
  }
}

TEST_P(Report, memory_of_the_host_that_is_given_back_keeps_no_failure_to_itself) {
  std::vector<int> host(1024);
  if (!device().wraps_host()) {
    expect_contains(error_of([&] { wrap(device(), host); }), "without a copy");
    return;
  }
  auto fail = kernel("fail", [](Arr<int> x, Int who) {
    x[tid()] = who;
    assert_(x[tid()] < 0, "not negative:", who);
  });
  launch(fail, 1, wrap(device(), host), 3);
  EXPECT_EQ(host[0], 3) << "the end of the array waited";
  Array<int> other = zeros<int>(device(), 1);
  launch(fail, 1, other, 4);
  expect_contains(error_of([&] { other.to_vector(); }), "not negative: 3 (1 more failure)");
  other.to_vector();
}

TEST_P(Report, a_stream_that_is_handed_out_again_brings_no_failure_of_its_former_owner) {
  auto fail = kernel("fail", [](Arr<const int> x, Int who) { assert_(x[0] < 0, "stream", who); });
  Array<int> x = zeros<int>(device(), 1);
  const auto reuse = [&](int who) {
    Stream stream = device().create_stream();
    const detail::StreamState* before = &detail::state_of(stream);
    launch(stream, fail, 1, x, who);
    stream = device().stream();  // the last handle
    stream = device().create_stream();
    EXPECT_EQ(&detail::state_of(stream), before) << "the test needs the same one again";
    return stream;
  };
  Stream next = reuse(1);
  launch(next, kernel("fine", [](Int zero) { assert_(zero == 0); }), 1, 0);
  EXPECT_NO_THROW(next.synchronize());
  // The failures go to the next wait on the default stream, which needs no reports of its own for that.
  Stream standard = device().stream();
  expect_contains(error_of([&] { standard.synchronize(); }), "an assertion failed: stream 1");
  EXPECT_NO_THROW(device().synchronize());
  next = reuse(2);
  expect_contains(error_of([&] { device().synchronize(); }), "stream 2");
  EXPECT_NO_THROW(device().synchronize());

  // Nothing waits any more: the failure is still reported when the device ends.
  testing::internal::CaptureStderr();
  {
    Device own = Device::open(device().name());
    Array<int> y = zeros<int>(own, 1);
    Stream stream = own.create_stream();
    launch(stream, fail, 1, y, 3);
    stream = own.stream();
    stream = own.create_stream();
  }
  expect_contains(testing::internal::GetCapturedStderr(), "an assertion failed: stream 3");
}

TEST_P(Report, whoever_waits_for_two_streams_hears_of_both) {
  Stream one = device().create_stream(), two = device().create_stream();
  auto fail = kernel("fail", [](Arr<const int> x, Int who) { assert_(x[0] < 0, "stream", who); });
  Array<int> x = zeros<int>(device(), 1);
  launch(one, fail, 1, x, 1);
  launch(two, fail, 1, x, 2);
  const std::string text = error_of([&] { (void)x.host_span(); });
  if (text.find("is not the host's") != text.npos) {
    expect_contains(error_of([&] { device().synchronize(); }), "(1 more failure)");
    return;
  }
  expect_contains(text, "stream 1 (1 more failure)");
  device().synchronize();
}

TEST_P(Report, more_failures_than_fit_are_counted) {
  auto check = kernel("check", [](Arr<const int> x) { assert_(x[0] != 0); });
  Array<int> x = zeros<int>(device(), 1);
  launch(check, 100000, x);
  const std::string text = error_of([&] { device().synchronize(); });
  expect_contains(text, ": an assertion failed (99999 more failures)");
  launch(check, 0, x);
  device().synchronize();
}

TEST_P(Report, a_failed_assertion_in_a_loops_condition_ends_the_thread) {
  auto walk = kernel("walk", [](Arr<const int> next, Arr<int> steps) {
    Int i = tid(), at = i, count = 0;
    const auto follow = [&] {
      assert_(at >= 0, "the chain of", i, "has no end");
      // Loops inside of a condition end as well.
      Int k = 0;
      While (k < 3) {
        k += 1;
      }
      return next[max(at, 0)];
    };
    While (follow() != at) {
      at = next[at];
      count += 1;
    }
    steps[i] = count;
  });
  Array<int> next(device(), {1, 2, 2, -1, 3}), steps = full<int>(device(), 5, -7);
  launch(walk, 5, next, steps);
  const std::string text = error_of([&] { steps.to_vector(); });
  expect_contains(text, "thread 3: an assertion failed: the chain of 3 has no end (1 more failure)");
  EXPECT_EQ(steps.to_vector(), (std::vector<int>{2, 1, 0, -7, -7}));
}

TEST_P(Report, threads_keep_their_numbers_when_a_launch_takes_several_dispatches) {
  Printed printed;
  std::int64_t& limit = device().state()->max_threads;
  const std::int64_t before = std::exchange(limit, 4);
  auto rows = kernel("rows", [](Arr<const int>) {
    auto [i, j] = tid<2>();
    print(i, j);
    assert_(i + j < 6);
  });
  Array<int> x = zeros<int>(device(), 1);
  launch(rows, {5, 3}, x);
  const std::string text = error_of([&] { device().synchronize(); });
  limit = before;
  Lines expected;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j) expected.push_back(std::to_string(i) + " " + std::to_string(j));
  EXPECT_EQ(printed.lines(), expected);
  expect_contains(text, "thread (4, 2): an assertion failed");
}

TEST_P(Report, output_outlives_the_program_that_made_it) {
  Printed printed;
  Device own = Device::open(device().name());
  own.state()->programs.keep_idle(0);
  Array<int> x = zeros<int>(own, 1);
  for (int k = 0; k < 3; ++k) launch(kernel("brief", [=](Arr<const int> x) { print("kernel", k, x[0]); }), 1, x);
  EXPECT_LE(own.state()->programs.size(), 1u);
  own.synchronize();
  EXPECT_EQ(printed.lines(), (Lines{"kernel 0 0", "kernel 1 0", "kernel 2 0"}));
}

TEST_P(Report, kernels_that_report_nothing_have_no_report) {
  const auto plain = [](Arr<float> x, Int n) {
    Int i = tid();
    While (x[i] > 1 && n / i > 2) {
      x[i] /= 2;
    }
  };
  const auto silent = [](Arr<float> x, Int n) {
    Int i = tid();
    While (x[i] > 1 && n / i > 2) {
      x[i] /= 2;
    }
    if (false) print("never traced");
    assert_(true, "known while it is traced");
  };
  const ir::Module a = kernel("k", plain).trace(), b = kernel("k", silent).trace();
  EXPECT_EQ(a.report_offset, 0u);
  EXPECT_TRUE(a.messages.empty());
  EXPECT_EQ(ir::print(a), ir::print(b));
  EXPECT_TRUE(ir::hash(a) == ir::hash(b));
}

TEST_P(Report, messages_belong_to_a_kernels_hash) {
  const auto with = [](const char* text) {
    return ir::hash(kernel("k", [=](Arr<float> x) { print(text, x[0]); }).trace());
  };
  EXPECT_TRUE(with("a") == with("a"));
  EXPECT_FALSE(with("a") == with("b"));
  // Kernels that are made at one place with different texts are different programs.
  Printed printed;
  Array<float> x = zeros<float>(device(), 1);
  for (const char* text : {"a", "b"}) {
    launch(kernel("k", [=](Arr<const float> x) { print(text, x[0]); }), 1, x);
    device().synchronize();
  }
  EXPECT_EQ(printed.lines(), (Lines{"a 0", "b 0"}));
}

}  // namespace
