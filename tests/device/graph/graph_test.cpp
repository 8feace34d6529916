// Graphs: captured work does what the same work does at once, as often as it is launched.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <cmath>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(Graphs);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto scale = kernel("scale", [](Arr<float> x, Float s) { x[tid()] *= s; });
// A struct with more bytes than push constants have.
struct Table {
  float values[60] = {};
};
WEFT_STRUCT(Table, values);
const auto add_from =
    kernel("add from", [](Arr<float> x, Var<Table> table, UInt8 k) { x[tid()] += table.values[Int(k)] + Float(k); });
const auto axpy = kernel("axpy", [](Arr<const float> x, Arr<float> y, Float a) { y[tid()] += a * x[tid()]; });

TEST_P(Graphs, run_when_they_are_launched_and_not_before) {
  Array<float> x = zeros<float>(device(), 100);
  const Graph graph = capture(device(), [&] {
    launch(add_one, 100, x);
    launch(scale, 100, x, 2.f);
  });
  EXPECT_EQ(graph.size(), 2);
  EXPECT_EQ(x.at(7), 0);
  for (int k = 0; k < 5; ++k) graph.launch();
  EXPECT_EQ(x.at(7), 62);
}

TEST_P(Graphs, are_ordered_with_other_work) {
  Array<float> x = zeros<float>(device(), 1000), y = zeros<float>(device(), 1000);
  const Graph graph = capture(device(), [&] { launch(axpy, 1000, x, y, 1.f); });
  float expected = 0;
  for (int k = 0; k < 50; ++k) {
    launch(add_one, 1000, x);
    graph.launch();
    expected += float(k + 1);
    if (k % 10 == 9) {
      EXPECT_EQ(y.at(999), expected);
    }
  }
}

TEST_P(Graphs, hold_copies_fills_and_values_of_the_host) {
  Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 4);
  const Graph graph = capture(device(), [&] {
    x.assign(std::vector<float>{1, 2, 3, 4});
    launch(scale, 4, x, 3.f);
    y.copy_from(x);
    x.fill(9);
  });
  for (int k = 0; k < 2; ++k) {
    x.fill(-1);
    y.fill(-1);
    graph.launch();
    EXPECT_EQ(x.to_vector(), (std::vector<float>{9, 9, 9, 9}));
    EXPECT_EQ(y.to_vector(), (std::vector<float>{3, 6, 9, 12}));
  }
}

TEST_P(Graphs, keep_what_they_work_on) {
  Array<float> sum = zeros<float>(device(), 1);
  Graph graph;
  {
    Array<float> outer = full<float>(device(), 1, 2);
    graph = capture(device(), [&] {
      Array<float> inner = full<float>(device(), 1, 5);
      launch(axpy, 1, outer, inner, 1.f);
      launch(axpy, 1, inner, sum, 1.f);
    });
  }
  // New arrays must not lie where the graph works.
  std::vector<Array<float>> others;
  for (int k = 0; k < 64; ++k) others.push_back(full<float>(device(), 1, 100));
  graph.launch();
  graph.launch();
  EXPECT_EQ(sum.at(0), 14);
  for (const Array<float>& a : others) EXPECT_EQ(a.at(0), 100);
}

TEST_P(Graphs, outlive_all_that_names_their_arrays_and_their_device) {
  std::vector<float> values(4, 1);
  Graph graph;
  {
    const Device own = Device::open(device().name());
    Array<float> x = full<float>(own, 4, 2), y(own, values), sum = zeros<float>(own, 4);
    if (own.wraps_host()) x = wrap(own, std::vector<float>(4, 2));
    graph = capture(own, [&] {
      launch(axpy, 4, x, sum, 3.f);
      launch(axpy, 2, y.slice(0, 4, 2), sum.slice(0, 4, 2), 1.f);
      y.copy_from(sum);
    });
  }
  for (int k = 0; k < 3; ++k) graph.launch();
  const Device of = graph.device();
  EXPECT_EQ(of.name(), device().name());
  // The device goes with the last object that needs it.
  of.synchronize();
  graph = Graph();
  EXPECT_EQ(zeros<float>(of, 1).at(0), 0);
}

TEST_P(Graphs, may_be_launched_again_while_they_run_and_dropped_too) {
  Array<float> x = zeros<float>(device(), 4096);
  {
    Graph graph = capture(device(), [&] {
      for (int k = 0; k < 20; ++k) launch(add_one, 4096, x);
    });
    for (int k = 0; k < (on_reference() ? 3 : 40); ++k) graph.launch();
  }
  EXPECT_EQ(x.at(4095), on_reference() ? 60 : 800);
}

TEST_P(Graphs, run_on_several_streams) {
  Array<float> x = zeros<float>(device(), 64);
  const Graph graph = capture(device(), [&] { launch(add_one, 64, x); });
  const Stream a = device().create_stream(), b = device().create_stream();
  for (int k = 0; k < 10; ++k) {
    graph.launch(k % 2 ? a : b);
    graph.launch();
  }
  EXPECT_EQ(x.at(63), 20);
}

TEST_P(Graphs, take_other_arguments) {
  Array<float> x = zeros<float>(device(), 8), y = zeros<float>(device(), 8), one = full<float>(device(), 8, 1);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(add_one, 8, one);
    launch(axpy, 8, one, x, 1.f);
    node = captured_launch();
    launch(add_one, 8, one);
  });
  graph.launch();  // x = 2, one = 3
  graph.set(node, axpy, one, x, 10.f);
  graph.launch();  // one = 4: x = 42, one = 5
  graph.set(node, axpy, one, y, 1.f);
  graph.launch();  // one = 6: y = 6, one = 7
  graph.set(node, axpy, x, y, 1.f);
  graph.launch();  // y = 48
  EXPECT_EQ(x.at(0), 42);
  EXPECT_EQ(y.at(0), 48);
  EXPECT_EQ(one.at(0), 9);
}

TEST_P(Graphs, take_other_arguments_of_any_size) {
  Array<float> x = zeros<float>(device(), 300), y = zeros<float>(device(), 300);
  const auto narrow = kernel("narrow", [](Arr<float> x, UInt8 by) { x[tid()] += Float(by); });
  GraphNode wide_node, narrow_node;
  const Graph graph = capture(device(), [&] {
    launch(add_from, 300, x, Table(), std::uint8_t(0));
    wide_node = captured_launch();
    launch(narrow, 300, y, std::uint8_t(1));
    narrow_node = captured_launch();
  });
  float expected_x = 0, expected_y = 0;
  for (int k = 0; k < 20; ++k) {
    Table table;
    table.values[k] = float(100 * k);
    graph.set(wide_node, add_from, x, table, std::uint8_t(k));
    expected_x += float(101 * k);
    graph.set(narrow_node, narrow, y, std::uint8_t(200 + k));
    expected_y += float(200 + k);
    graph.launch();
  }
  EXPECT_EQ(x.at(299), expected_x);
  EXPECT_EQ(y.at(299), expected_y);
}

TEST_P(Graphs, order_arrays_that_were_set_with_the_launches_around) {
  const int n = 1 << 16;
  Array<float> a = zeros<float>(device(), n), b = zeros<float>(device(), n), sum = zeros<float>(device(), n);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(scale, n, b, 2.f);
    launch(add_one, n, a);  // has nothing to do with the launches around it
    node = captured_launch();
    launch(axpy, n, b, sum, 1.f);
  });
  float expected_b = 0, expected = 0;
  for (int k = 0; k < 20; ++k) {
    graph.set(node, add_one, k % 2 ? b : a);
    graph.launch();
    expected_b = 2 * expected_b + float(k % 2);
    expected += expected_b;
  }
  EXPECT_EQ(a.at(n - 1), 10);
  EXPECT_EQ(sum.at(n - 1), expected);
}

TEST_P(Graphs, that_run_keep_their_arguments) {
  if (on_host()) GTEST_SKIP() << "it runs at once";
  const int n = 1 << 16;
  Array<float> x = zeros<float>(device(), n), one = full<float>(device(), n, 1);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(axpy, n, one, x, 0.f);
    node = captured_launch();
  });
  float expected = 0;
  for (int k = 1; k <= 100; ++k) {
    graph.set(node, axpy, one, x, float(k));
    graph.launch();
    expected += float(k);
  }
  EXPECT_EQ(x.at(n - 1), expected);
}

TEST_P(Graphs, refuse_arguments_that_do_not_fit) {
  Array<float> x = zeros<float>(device(), 8);
  Array<float> wide = zeros<float>(device(), 16);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(scale, 8, x, 1.f);
    node = captured_launch();
  });
  const std::string text = error_of([&] { graph.set(node, add_one, x); });
  expect_contains(text, "in kernel \"add one\": arguments are set for a node that was captured for kernel \"scale\" (");
  expect_contains(text, "graph_test.cpp:");
  expect_contains(error_of([&] { graph.set(node, scale, wide.slice(0, 16, 2), 1.f); }),
                  "in kernel \"scale\": argument 1 is a view with strides, or misaligned, and was contiguous");
  expect_contains(error_of([&] { graph.set(GraphNode(), scale, x, 1.f); }), "captured_launch()");
  expect_contains(error_of([&] { Graph().launch(); }), "null graph");
  expect_contains(error_of([&] { captured_launch(); }), "outside of a capture");
}

TEST_P(Graphs, refuse_conditions_that_are_none) {
  const Array<int> flag = full<int>(device(), 1, 1);
  Array<float> x = zeros<float>(device(), 8);
  const auto work = [&] { launch(add_one, 8, x); };
  const auto refused = [&](const std::function<void()>& condition, const std::string& text) {
    expect_contains(error_of([&] { capture(device(), condition); }), text);
  };
  expect_contains(error_of([&] { graph_if(flag, work); }), "graph_if() is called outside of a capture");
  refused([&] { graph_if(full<int>(device(), 2, 1), work); }, "takes a flag of one element, and is given 2");
  refused([&] { graph_if(Array<int>(), work); }, "takes a flag of one element, and is given a null array");
  // The flag is on another device, even of the same name: it is refused whether there is work or not.
  const Device twin = Device::open(device().name());
  const Array<int> elsewhere = full<int>(twin, 1, 1);
  for (const auto& some : {std::function<void()>(work), std::function<void()>([] {})})
    refused([&] { graph_while(elsewhere, 3, some); },
            "graph_while() is given a flag on device " + twin.name() + " (another Device of that name)");
  refused([&] { graph_while(flag, 0, work); }, "a limit of 0 rounds; 1 to 2^20");
  refused([&] { graph_while(flag, (1 << 20) + 1, work); }, "1 to 2^20");
  refused([&] { graph_while(flag, 2000, [&] { graph_while(flag, 2000, work); }); },
          "operations up to 2000 times, after 0 others, and a graph with loops has 1048576");
  refused([&] { graph_if(flag, nullptr); }, "graph_if() is given an empty function");
  refused(nullptr, "capture() is given an empty function");
}

TEST_P(Graphs, take_events_of_their_own_capture_alone) {
  const Stream one = device().create_stream(), two = device().create_stream();
  Array<float> x = zeros<float>(device(), 8);
  Event inside;
  const Graph graph = capture(device(), [&] {
    two.wait(Event());
    launch(one, add_one, 8, x);
    inside = one.record();
    two.wait(inside);
    launch(two, add_one, 8, x);
    one.wait(two.record());
  });
  graph.launch(one);
  EXPECT_EQ(x.at(7), 2);
  const Event outside = one.record();
  expect_contains(error_of([&] { capture(device(), [&] { two.wait(outside); }); }), "for an event from outside");
  expect_contains(error_of([&] { capture(device(), [&] { two.wait(inside); }); }), "for an event from outside");
  for (const auto& f : std::vector<std::function<void()>>{[&] { inside.wait(); }, [&] { (void)inside.done(); },
                                                          [&] { two.wait(inside); }})
    expect_contains(error_of(f), "this event was recorded in a capture");
}

TEST_P(Graphs, leave_all_as_it_was_after_an_error) {
  Array<float> x = zeros<float>(device(), 8);
  expect_contains(error_of([&] {
                    capture(device(), [&] {
                      launch(add_one, 8, x);
                      x.at(0);
                    });
                  }),
                  "while a graph is captured");
  expect_contains(error_of([&] { capture(device(), [&] { device().synchronize(); }); }), "while a graph is captured");
  std::vector<float> out(8);
  expect_contains(error_of([&] { capture(device(), [&] { (void)x.copy_to_async(out); }); }),
                  "elements are copied to the host while a graph is captured");
  expect_contains(error_of([&] { capture(device(), [&] { capture(device(), [] {}); }); }),
                  "while a graph is captured already");
  launch(add_one, 8, x);
  EXPECT_EQ(x.at(0), 1) << "what was captured did not run, and what follows does";
}

TEST_P(Graphs, are_captured_on_one_device) {
  const Device other = Device::open("reference");
  Array<float> x = zeros<float>(other, 8);
  expect_contains(error_of([&] { capture(device(), [&] { launch(add_one, 8, x); }); }), "given to device");
  Array<float> here = zeros<float>(device(), 8);
  const Graph graph = capture(device(), [&] { launch(add_one, 8, here); });
  expect_contains(error_of([&] { graph.launch(other.stream()); }), "launched on a stream of device");
}

TEST_P(Graphs, do_not_reach_to_another_device) {
  const Device twin = Device::open(device().name()), reference = Device::open("reference");
  for (const Device& other : {twin, reference}) {
    Array<float> here = full<float>(device(), 8, 1), there = full<float>(other, 8, 2);
    Array<int> flag = zeros<int>(other, 1);
    const std::string given = "given to device " + other.name(), captured = "a graph is captured";
    const auto refused = [&](const std::string& why, const std::function<void()>& work) {
      expect_contains(error_of([&] {
                        capture(device(), [&] {
                          launch(add_one, 8, here);
                          work();
                        });
                      }),
                      why);
    };
    refused(given, [&] { there.fill(7); });
    refused(given, [&] { launch(other.stream(), add_one, 8, there); });
    refused(given, [&] { zeros<float>(other, 3); });
    refused("are copied from device " + other.name() + " to device " + device().name(), [&] { here.copy_from(there); });
    refused("to device " + other.name(), [&] { there.copy_from(here); });
    refused(captured, [&] { here.to(other); });
    refused("device", [&] { graph_if(flag, [&] { launch(add_one, 8, here); }); });
    refused(captured, [&] { device().stream().wait(other.stream().record()); });
    GraphNode node;
    const Graph graph = capture(device(), [&] {
      launch(add_one, 8, here);
      node = captured_launch();
    });
    expect_contains(error_of([&] { graph.set(node, add_one, there); }), "device");
    // The refused calls have changed nothing, and both devices continue.
    graph.launch();
    launch(add_one, 8, there);
    EXPECT_EQ(here.at(7), 2);
    EXPECT_EQ(there.at(7), 3);
  }
}

TEST_P(Graphs, do_conditional_work) {
  Array<int> flag = zeros<int>(device(), 1);
  Array<float> x = zeros<float>(device(), 300), y = zeros<float>(device(), 300);
  const Graph graph = capture(device(), [&] {
    launch(add_one, 300, x);
    graph_if(flag, [&] {
      launch(scale, 300, x, 10.f);
      y.copy_from(x);
    });
    launch(add_one, 300, x);
  });
  graph.launch();
  EXPECT_EQ(x.at(299), 2);
  EXPECT_EQ(y.at(299), 0);
  flag.fill(1);
  graph.launch();
  EXPECT_EQ(x.at(299), 31);
  EXPECT_EQ(y.at(299), 30);
}

TEST_P(Graphs, do_conditional_copies_of_values_of_the_host) {
  Array<int> flag = zeros<int>(device(), 1);
  Array<float> x = zeros<float>(device(), 5), y = zeros<float>(device(), 5);
  Array<vec3> v = zeros<vec3>(device(), 3);
  Array<double> d = zeros<double>(device(), 3);
  const Graph graph = capture(device(), [&] {
    graph_while(flag, 3, [&] {
      x.assign(std::vector<float>{1, 2, 3, 4, 5});
      v.fill(vec3(1, 2, 3));
      d.fill(3.5);
      y.copy_from(arange<float>(device(), 5));
      flag.zero();
    });
  });
  graph.launch();
  EXPECT_EQ(x.at(4), 0);
  EXPECT_EQ(d.at(2), 0);
  for (int k = 0; k < 2; ++k) {
    flag.fill(1);
    for (Array<float>* a : {&x, &y}) a->fill(-1);
    graph.launch();
    EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 2, 3, 4, 5}));
    EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 1, 2, 3, 4}));
    EXPECT_EQ(v.at(2).z, 3);
    EXPECT_EQ(d.at(2), 3.5);
  }
}

TEST_P(Graphs, do_work_in_nested_conditions) {
  Array<int> a = zeros<int>(device(), 1), b = zeros<int>(device(), 1);
  Array<float> x = zeros<float>(device(), 4);
  const Graph graph = capture(device(), [&] {
    graph_if(a, [&] {
      launch(add_one, 4, x);
      graph_if(b, [&] { launch(scale, 4, x, 10.f); });
    });
  });
  const auto with = [&](int outer, int inner) {
    a.fill(outer);
    b.fill(inner);
    x.fill(1);
    graph.launch();
    return x.at(0);
  };
  EXPECT_EQ(with(1, 1), 20);
  EXPECT_EQ(with(0, 1), 1) << "the inner gate was open in the launch before";
  EXPECT_EQ(with(1, 0), 2);
  EXPECT_EQ(with(0, 0), 1);
}

TEST_P(Graphs, repeat_work_while_a_flag_is_set) {
  // Newton's iteration for sqrt(2) runs until it stands still.
  Array<float> x = full<float>(device(), 1, 100);
  Array<int> going = zeros<int>(device(), 1), rounds = zeros<int>(device(), 1);
  const auto start = kernel("start", [](Arr<float> x, Arr<int> going, Arr<int> rounds, Float from) {
    x[0] = from;
    going[0] = 1;
    rounds[0] = 0;
  });
  const auto step = kernel("newton", [](Arr<float> x, Arr<int> going, Arr<int> rounds) {
    Float next = 0.5f * (x[0] + 2 / x[0]);
    going[0] = select(abs(next - x[0]) > 1e-6f, 1, 0);
    x[0] = next;
    rounds[0] += 1;
  });
  const Graph graph = capture(device(), [&] {
    launch(start, 1, x, going, rounds, 100.f);
    graph_while(going, 40, [&] { launch(step, 1, x, going, rounds); });
  });
  graph.launch();
  EXPECT_NEAR(x.at(0), std::sqrt(2.f), 1e-6);
  EXPECT_GT(rounds.at(0), 5);
  EXPECT_LT(rounds.at(0), 20);
  const Graph cut = capture(device(), [&] {
    launch(start, 1, x, going, rounds, 100.f);
    graph_while(going, 3, [&] { launch(step, 1, x, going, rounds); });
  });
  cut.launch();
  EXPECT_EQ(rounds.at(0), 3);
  EXPECT_EQ(going.at(0), 1) << "the caller sees that it was cut";
}

TEST_P(Graphs, keep_no_arrays_that_others_were_set_for) {
  if (!device().wraps_host()) GTEST_SKIP() << "arrays of this device do not stand on memory of the host";
  std::vector<float> first(16, 1), second(16, 1);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(scale, 16, zeros<float>(device(), 16), 2.f);
    node = captured_launch();
  });
  graph.set(node, scale, wrap(device(), first), 2.f);
  graph.launch();
  EXPECT_THROW(wrap(device(), first), Error) << "an array of the graph's stands there";
  graph.set(node, scale, wrap(device(), second), 3.f);
  graph.launch();
  EXPECT_NO_THROW(wrap(device(), first));
  device().synchronize();
  EXPECT_EQ(first[15], 2);
  EXPECT_EQ(second[15], 3);
}

TEST_P(Graphs, refuse_nodes_of_others) {
  Array<float> x = zeros<float>(device(), 4), y = zeros<float>(device(), 4);
  GraphNode node;
  const Graph one = capture(device(), [&] {
    launch(scale, 4, x, 1.f);
    node = captured_launch();
  });
  const Graph other = capture(device(), [&] { launch(scale, 4, y, 1.f); });
  expect_contains(error_of([&] { other.set(node, scale, y, 3.f); }), "a node of another graph");
  expect_contains(error_of([&] { other.set(GraphNode(), scale, y, 3.f); }), "captured_launch()");
  one.set(node, scale, x, 3.f);
}

TEST_P(Graphs, end_with_a_condition_that_failed) {
  Array<float> x = zeros<float>(device(), 4);
  Array<int> flag(device(), {1});
  const std::function<void()> failed[] = {[&] {
                                            graph_if(flag, [&] {
                                              launch(scale, 4, x, 100.f);
                                              throw std::runtime_error("enough");
                                            });
                                          },
                                          [&] {
                                            graph_while(flag, 3, [&] {
                                              launch(scale, 4, x, 100.f);
                                              x.at(0);  // nothing of it has run
                                            });
                                          }};
  for (const auto& part : failed)
    expect_contains(error_of([&] {
                      (void)capture(device(), [&] {
                        EXPECT_ANY_THROW(part());
                        launch(add_one, 4, x);
                      });
                    }),
                    "in what is captured has failed, and only a part of it was captured: capture again");
  capture(device(), [&] { launch(add_one, 4, x); }).launch();
  EXPECT_EQ(x.at(2), 1);
}

TEST_P(Graphs, hold_gradients_of_a_tape_inside) {
  const int n = 10;
  Array<float> x = full<float>(device(), n, 3).requires_grad(), loss = zeros<float>(device(), 1).requires_grad();
  const auto square = kernel("square", [](Arr<const float> x, Arr<float> loss) {
    Int i = tid();
    atomic_add(loss[0], x[i] * x[i]);
  });
  const auto descend = kernel("descend", [](Arr<float> x, Arr<const float> g) { x[tid()] -= 0.25f * g[tid()]; });
  const Graph step = capture(device(), [&] {
    loss.zero();
    Tape tape;
    tape.record([&] { launch(square, n, x, loss); });
    tape.backward(loss);
    launch(descend, n, x, x.grad());
    tape.zero();
  });
  float expected = 3;
  for (int k = 0; k < 6; ++k) {
    step.launch();
    expected *= 0.5f;
  }
  EXPECT_FLOAT_EQ(x.at(0), expected);
  EXPECT_FLOAT_EQ(loss.at(0), float(n) * 4 * expected * expected);
}

TEST_P(Graphs, refuse_to_change_what_a_tape_still_needs) {
  Array<float> x = full<float>(device(), 4, 3).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  const auto square = kernel("square all", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  Tape tape;
  tape.record([&] { launch(square, 4, x, y); });
  expect_contains(error_of([&] { capture(device(), [&] { launch(add_one, 4, x); }); }), "a tape from outside");
  Array<float> z = zeros<float>(device(), 4);
  const Graph graph = capture(device(), [&] { launch(add_one, 4, z); });
  graph.launch();
  tape.backward({{y, full<float>(device(), 4, 1)}});
  EXPECT_EQ(x.grad().at(2), 6);
}

TEST_P(Graphs, that_change_what_a_tape_needs_are_undone_on_its_way_back) {
  Array<float> x = full<float>(device(), 4, 3).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  const auto square = kernel("square all", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
  const Graph graph = capture(device(), [&] { launch(add_one, 4, x); });
  Tape tape;
  tape.record([&] { launch(square, 4, x, y); });
  graph.launch();
  tape.backward({{y, full<float>(device(), 4, 1)}});
  EXPECT_EQ(x.grad().at(2), 6) << "of x as it was";
}

TEST_P(Graphs, hold_refits_and_builds) {
  const MeshData data = shapes::icosphere(1, on_reference() ? 1 : 3);
  Array<vec3> points(device(), data.points);
  Mesh mesh(points, Array<int>(device(), data.indices));
  HashGrid grid(device(), 8, 8, 8);
  grid.build(points, 0.5f);
  Array<float> distance = zeros<float>(device(), 1);
  Array<int> near = zeros<int>(device(), 1);
  const auto push = kernel("push", [](Arr<vec3> p) { p[tid()].x += 1; });
  const auto ask =
      kernel("ask", [](Var<MeshArrays> mesh, Var<HashGridArrays> grid, Arr<float> distance, Arr<int> near) {
        distance[0] = mesh_query_point(mesh, Vec3(100, 0, 0)).distance;
        Int n = 0;
        for (auto i : hash_grid_query(grid, Vec3(6, 0, 0), 0.25f)) n += select(i >= 0, 1, 0);
        near[0] = n;
      });
  const Graph graph = capture(device(), [&] {
    launch(push, points.size(), points);
    mesh.refit();
    grid.build(points, 0.5f);
    launch(ask, 1, mesh, grid, distance, near);
  });
  for (int k = 1; k <= 5; ++k) {
    graph.launch();
    EXPECT_NEAR(distance.at(0), 99 - float(k), 0.02f) << k;
  }
  EXPECT_GT(near.at(0), 0);
}

}  // namespace
