// Graphs whose kernels find memory through elements of arrays and through handles.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <optional>
#include <thread>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphReferences);

struct Holder {
  Array<float> values;
};
WEFT_STRUCT(Holder, values);

constexpr int kCount = 1 << 12;

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto double_held = kernel("double what is held", [](Arr<Holder> holder) {
  Int i = tid();
  holder[0].values[i] *= 2.f;
});

Array<Holder> holding(const Device& device, const Array<float>& values) {
  return Array<Holder>(device, {Holder{values}});
}

TEST_P(GraphReferences, work_on_what_elements_hold_is_ordered_inside_and_outside) {
  Array<float> x = zeros<float>(device(), kCount);
  const Array<Holder> holder = holding(device(), x);
  const Stream other = device().create_stream();
  const Graph graph = capture(device(), [&] {
    launch(add_one, kCount, x);
    launch(double_held, kCount, holder);
    launch(add_one, kCount, x);
  });
  float expected = 0;
  for (int k = 0; k < 6; ++k) {
    if (k % 2)
      launch(other, add_one, kCount, x);
    else
      launch(add_one, kCount, x);
    graph.launch();
    expected = (expected + 2) * 2 + 1;
  }
  for (const float v : x.to_vector()) ASSERT_EQ(v, expected);
}

const std::string kOthers = "elements of an array that a graph works on hold other arrays than when it was made";

TEST_P(GraphReferences, elements_that_come_to_hold_other_arrays_need_another_capture) {
  Array<float> x = full<float>(device(), kCount, 1), y = full<float>(device(), kCount, 5);
  Array<Holder> holder = holding(device(), x);
  const auto work = [&] { launch(double_held, kCount, holder); };
  const Graph graph = capture(device(), work);
  graph.launch();
  holder.assign(std::vector<Holder>{Holder{y}});
  expect_contains(error_of([&] { graph.launch(); }), kOthers);
  EXPECT_EQ(x.at(0), 2);
  EXPECT_EQ(y.at(0), 5);
  capture(device(), work).launch();
  EXPECT_EQ(y.at(0), 10);
  holder.assign(std::vector<Holder>{Holder{x}});  // as it was
  graph.launch();
  EXPECT_EQ(x.at(0), 4);
}

TEST_P(GraphReferences, arguments_that_are_set_keep_what_their_elements_hold) {
  Array<float> x = zeros<float>(device(), kCount);
  GraphNode node;
  const Array<Holder> first = holding(device(), x);
  const Graph graph = capture(device(), [&] {
    launch(double_held, kCount, first);
    node = captured_launch();
  });
  Array<float> seen;
  {
    Array<float> y = full<float>(device(), kCount, 3);
    const Array<Holder> second = holding(device(), y);
    graph.set(node, double_held, second);
    seen = y;
  }
  const Stream other = device().create_stream();
  for (int k = 0; k < 4; ++k) {
    launch(other, add_one, kCount, seen);
    graph.launch();
  }
  for (const float v : seen.to_vector()) ASSERT_EQ(v, 3 * 16 + 30);
  seen = {};
  // What was freed too early would be taken by these, and changed by the graph.
  std::vector<Array<float>> others;
  for (int k = 0; k < 8; ++k) others.push_back(full<float>(device(), kCount, 7));
  graph.launch();
  for (const Array<float>& o : others) EXPECT_EQ(o.at(kCount - 1), 7);
}

TEST_P(GraphReferences, arguments_that_are_set_may_not_come_to_hold_other_arrays) {
  GraphNode node;
  const Array<Holder> first = holding(device(), zeros<float>(device(), kCount));
  Array<Holder> second = first.clone();
  const Graph graph = capture(device(), [&] {
    launch(double_held, kCount, first);
    node = captured_launch();
  });
  graph.set(node, double_held, second);
  graph.launch();
  const Array<float> y = full<float>(device(), kCount, 3);
  second.assign(std::vector<Holder>{Holder{y}});
  expect_contains(error_of([&] { graph.launch(); }), "set() the node again");
  graph.set(node, double_held, second);
  graph.launch();
  EXPECT_EQ(y.at(7), 6);
  Array<float> gone = y.clone();
  second.assign(std::vector<Holder>{Holder{gone}});
  graph.set(node, double_held, second);
  gone.free();
  expect_contains(error_of([&] { graph.launch(); }),
                  "works on an array that was freed since it was set: set() the node");
}

TEST_P(GraphReferences, elements_that_held_nothing_in_the_capture_hold_nothing_later) {
  Array<float> x = zeros<float>(device(), 4), n = full<float>(device(), 1, -1);
  Array<Holder> holder = zeros<Holder>(device(), 1);
  const auto length = kernel("length", [](Arr<const Holder> h, Arr<float> n) { n[0] = Float(h[0].values.shape(0)); });
  const Graph graph = capture(device(), [&] { launch(length, 1, holder, n); });
  graph.launch();
  EXPECT_EQ(n.at(0), 0);
  holder.fill(Holder{x});
  expect_contains(error_of([&] { graph.launch(); }), kOthers);
}

const auto get_held = kernel("get what is held", [](Arr<const Holder> holder, Arr<float> out) {
  Int i = tid();
  out[i] = holder[0].values[i];
});

/// What was freed too early is taken by these.
std::vector<Array<float>> others(const Device& device) {
  std::vector<Array<float>> made;
  for (int k = 0; k < (device.name() == "reference" ? 20 : 200); ++k) made.push_back(full<float>(device, kCount, 77));
  return made;
}

TEST_P(GraphReferences, elements_hold_what_they_held_until_the_graph_runs) {
  Array<Holder> holder = holding(device(), full<float>(device(), kCount, 1));
  Array<float> out = zeros<float>(device(), kCount);
  const auto expect_held = [&](float value) {
    const auto taken = others(device());
    launch(get_held, kCount, holder, out);
    for (const float v : out.to_vector()) ASSERT_EQ(v, value);
    EXPECT_EQ(holder.to_vector()[0].values.at(7), value);
  };
  EXPECT_THROW(capture(device(),
                       [&] {
                         holder.assign(std::vector<Holder>{Holder{full<float>(device(), kCount, 2)}});
                         throw 1;
                       }),
               int);
  expect_held(1);
  Graph graph;
  {
    const Array<float> two = full<float>(device(), kCount, 2);
    graph = capture(device(), [&] { holder.assign(std::vector<Holder>{Holder{two}}); });
  }
  expect_held(1);
  graph.launch();
  expect_held(2);
}

TEST_P(GraphReferences, each_launch_brings_its_arrays_along_with_the_elements) {
  Array<Holder> given = holding(device(), full<float>(device(), kCount, 1)), copied = given.clone();
  Array<Holder> filled = given.clone(), source = holding(device(), full<float>(device(), kCount, 2));
  Graph graph;
  {
    const Array<float> three = full<float>(device(), kCount, 3);
    graph = capture(device(), [&] {
      given.assign(std::vector<Holder>{Holder{three}});
      filled.fill(Holder{three});
      copied.copy_from(source);
    });
  }
  Array<float> out = zeros<float>(device(), kCount);
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    const auto taken = others(device());
    for (const auto& [holder, expected] : {std::pair(&given, 3.f), std::pair(&filled, 3.f), std::pair(&copied, 2.f)}) {
      launch(get_held, kCount, *holder, out);
      for (const float v : out.to_vector()) ASSERT_EQ(v, expected);
      EXPECT_EQ(holder->to_vector()[0].values.at(7), expected);
    }
  }
  source.assign(std::vector<Holder>{Holder{full<float>(device(), kCount, 9)}});
  expect_contains(error_of([&] { graph.launch(); }), kOthers);
}

TEST_P(GraphReferences, whole_copies_keep_nothing_of_what_elements_held_before) {
  if (!device().wraps_host()) GTEST_SKIP() << "arrays of this device do not stand on memory of the host";
  Array<Holder> source = zeros<Holder>(device(), 1), copy = source.clone();
  std::vector<float> values(16, 1);
  const auto hold = [&] { source.assign(std::vector<Holder>{Holder{wrap(device(), values)}}); };
  hold();
  copy.copy_from(source);
  source.assign(std::vector<Holder>{Holder{zeros<float>(device(), 16)}});
  EXPECT_THROW(wrap(device(), values), Error) << "held by the copy";
  copy.copy_from(source);
  device().synchronize();
  EXPECT_NO_THROW(wrap(device(), values)) << "of nobody any more";
}

TEST_P(GraphReferences, elements_keep_what_they_hold_where_nothing_is_written) {
  Array<int> flag = zeros<int>(device(), 1);
  Array<float> out = zeros<float>(device(), kCount), two = full<float>(device(), kCount, 2);
  const Array<Holder> source = holding(device(), two);
  const auto one = [&] { return holding(device(), full<float>(device(), kCount, 1)); };
  Array<Holder> copied = one(), given = one(), refused = one();
  const Graph graph = capture(device(), [&] {
    graph_if(flag, [&] {
      copied.copy_from(source);
      given.assign(std::vector<Holder>{Holder{two}});
    });
    EXPECT_THROW(refused.assign(std::vector<Holder>(2, Holder{two})), Error);
    launch(add_one, kCount, out);
  });
  const auto expect_held = [&](const Array<Holder>& holder, float value) {
    launch(get_held, kCount, holder, out);
    for (const float v : out.to_vector()) ASSERT_EQ(v, value);
    EXPECT_EQ(holder.to_vector()[0].values.at(7), value);
  };
  for (int k = 0; k < 2; ++k) {
    graph.launch();
    device().synchronize();
    const auto taken = others(device());
    for (const Array<Holder>* h : {&copied, &given, &refused}) expect_held(*h, 1);
  }
  flag.fill(1);
  graph.launch();
  expect_held(copied, 2);
  expect_held(given, 2);
}

TEST_P(GraphReferences, a_failed_capture_leaves_no_references_behind) {
  Array<Holder> a = holding(device(), full<float>(device(), 4, 1)), b = holding(device(), full<float>(device(), 4, 2));
  EXPECT_THROW(capture(device(),
                       [&] {
                         a.copy_from(b);
                         throw 1;
                       }),
               int);
  b.copy_from(a);  // which a circle would forbid
  EXPECT_EQ(b.to_vector()[0].values.at(3), 1);
}

TEST_P(GraphReferences, copies_within_an_array_may_overlap) {
  std::vector<Holder> three;
  for (const float v : {1.f, 2.f, 3.f}) three.push_back(Holder{full<float>(device(), 4, v)});
  Array<Holder> a(device(), three);
  a.slice(1, 3).copy_from(a.slice(0, 2));
  const std::vector<Holder> found = a.to_vector();
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(found[k].values.at(0), k == 2 ? 2 : 1);
}

const std::string kFixed = "after that has copied them, or a tape has recorded a launch that follows them";

TEST_P(GraphReferences, elements_that_a_tape_has_followed_are_given_no_others_in_the_capture) {
  const auto scaled = kernel("scaled by what is held", [](Arr<const float> x, Arr<const Holder> h, Arr<float> y) {
    Int i = tid();
    y[i] = x[i] * detach(Float(h[0].values[i]));
  });
  Array<float> x = full<float>(device(), 8, 3).requires_grad(), y = zeros<float>(device(), 8).requires_grad();
  Array<Holder> holder = holding(device(), full<float>(device(), 8, 1));
  const Array<Holder> two = holding(device(), full<float>(device(), 8, 2));
  const Array<Holder> five = holding(device(), full<float>(device(), 8, 5));
  const Graph graph = capture(device(), [&] {
    holder.copy_from(two);  // before the tape, as in each launch of the graph
    Tape tape;
    tape.record([&] { tape.checkpointed(3, 2, [&](int) { launch(scaled, 8, x, holder, y); }); });
    expect_contains(error_of([&] { holder.copy_from(five); }), kFixed);
    tape.backward({{y, full<float>(device(), 8, 1)}});
  });
  for (const float expected : {2.f, 4.f}) {
    graph.launch();
    EXPECT_EQ(x.grad().at(7), expected);
  }
}

// The second launch of the graph would copy what the first one has left.
TEST_P(GraphReferences, elements_that_were_copied_are_given_no_others_in_the_capture) {
  const auto empty_holder = [&] { return Array<Holder>(device(), {Holder{}}); };
  Array<Holder> a = holding(device(), full<float>(device(), kCount, 7)), b = empty_holder(), c = empty_holder();
  const Graph graph = capture(device(), [&] {
    b.copy_from(a), c.copy_from(b), b.copy_from(a);
    for (const auto& change :
         {std::function<void()>([&] { a.fill(Holder{full<float>(device(), kCount, 5)}); }),
          std::function<void()>([&] { b.copy_from(holding(device(), zeros<float>(device(), 4))); })})
      expect_contains(error_of(change), kFixed);
  });
  for (int k = 0; k < 2; ++k) graph.launch();
  launch(double_held, kCount, c);
  EXPECT_EQ(c.at(0).values.at(5), 14);
}

TEST_P(GraphReferences, threads_that_replace_all_elements_lose_nothing) {
  // Many elements, so that the threads are at it at the same time.
  Array<Holder> holder(device(), std::vector<Holder>(20000));
  for (int round = 0; round < 40; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back(
          [&, t] { holder.assign(std::vector<Holder>(20000, Holder{full<float>(device(), 8, float(t))})); });
    for (std::thread& t : threads) t.join();
    const Array<float> held = holder.at(0).values;
    ASSERT_FALSE(held.is_null()) << "round " << round;
    EXPECT_LT(held.at(7), 6);
  }
}

TEST_P(GraphReferences, handles_are_those_of_the_launch) {
  const MeshData data = shapes::icosphere(1, on_reference() ? 1 : 3);
  Array<vec3> points(device(), data.points);
  Array<std::uint64_t> id = zeros<std::uint64_t>(device(), 1);
  Array<float> distance = zeros<float>(device(), 1);
  const auto ask = kernel("ask", [](Arr<const std::uint64_t> id, Arr<float> distance) {
    const MeshPointHit h = mesh_query_point(id[0], Vec3(100, 0, 0));
    distance[0] = select(h.hit, h.distance, -1.f);
  });
  const auto push = kernel("push", [](Arr<vec3> p) { p[tid()].x += 1; });
  const Graph graph = capture(device(), [&] { launch(ask, 1, id, distance); });
  graph.launch();
  EXPECT_EQ(distance.at(0), -1) << "0 names nothing";
  std::optional<Mesh> mesh(std::in_place, points, Array<int>(device(), data.indices));  // after the capture
  id.fill(mesh->id());
  const Stream other = device().create_stream();
  for (int k = 1; k <= 10; ++k) {
    launch(push, points.size(), points);
    mesh->refit();
    if (k % 2)
      graph.launch();
    else
      graph.launch(other);
    EXPECT_NEAR(distance.at(0), 99 - float(k), 0.02f) << k;
  }
  graph.launch();
  mesh.reset();  // what is under way keeps it
  EXPECT_NEAR(distance.at(0), 89, 0.02f);
  graph.launch();
  EXPECT_EQ(distance.at(0), -1);
}

}  // namespace
