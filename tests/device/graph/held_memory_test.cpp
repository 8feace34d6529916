// Memory that elements refer to, while threads assign elements, tapes copy them and graphs write them.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <atomic>
#include <memory>
#include <thread>

#include "../watched_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

WATCHED_TEST(HeldMemory);

struct Holder {
  Array<float> values;
};
WEFT_STRUCT(Holder, values);

struct Link {
  Array<Link> next;
  float weight = 0;
};
WEFT_STRUCT(Link, next, weight);

struct Body {
  Array<vec3> points;
  Array<int> indices;
};
WEFT_STRUCT(Body, points, indices);

const auto scale = kernel("scale by what is held", [](Arr<const Holder> holder, Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * detach(holder[0].values[i]);
});
const auto add_to_held = kernel("add to what is held", [](Arr<Holder> holder) { holder[0].values[tid()] += 1.f; });
const auto times_two = kernel("times two", [](Arr<float> x) { x[tid()] *= 2.f; });
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });

const std::vector<vec3> kCorners = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};

TEST_P(HeldMemory, assignments_and_changes_that_a_tape_hears_of_do_not_wait_for_each_other) {
  constexpr int n = 200;
  const auto heavier = kernel("heavier", [](Arr<Link> a) { a[tid()].weight += 1.f; });
  const auto sum = kernel("sum of weights", [](Arr<const Link> a, Arr<const Link> b, Arr<float> y) {
    Int i = tid();
    y[i] = y[i] + a[i].weight * b[i].weight;
  });
  for (int round = 0; round < 5; ++round) {
    Array<Link> x(device(), std::vector<Link>(n)), z(device(), std::vector<Link>(n));
    Array<float> y = zeros<float>(device(), n).requires_grad();
    Tape tape;
    tape.record([&] { tape.checkpointed(2, 1, [&](int) { launch(sum, n, x, z, y); }); });
    std::atomic<bool> stop{false};
    std::thread other([&] {
      const std::vector<Link> one(1);
      Array<Link> first = x.slice(0, 1);
      while (!stop) first.assign(one);
    });
    for (int i = 0; i < n; i += 2) launch(heavier, 1, z.slice(i, i + 1));
    stop = true;
    other.join();
    EXPECT_EQ(z.at(0).weight, 1);
  }
}

TEST_P(HeldMemory, a_read_waits_for_a_launch_that_reaches_the_array_whoever_assigned_it) {
  Array<float> w = zeros<float>(device(), 1);
  const Stream first = device().create_stream(), second = device().create_stream();
  Array<Holder> a(device(), {Holder{w}}), b(device(), {Holder{w}});
  for (int round = 0; round < 300; ++round) {
    Array<float> x = zeros<float>(device(), 1);
    device().synchronize();
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
    };
    std::thread assigns([&] {
      const StreamScope scope(second);
      meet();
      a.assign(std::vector<Holder>{Holder{x}});
    });
    {
      const StreamScope scope(first);
      meet();
      if (round % 2) b.copy_from(a);
      launch(add_to_held, 1, round % 2 ? b : a);
    }
    assigns.join();
    const float now = x.at(0);
    device().synchronize();
    ASSERT_EQ(x.at(0), now);
    a.assign(std::vector<Holder>{Holder{w}});
    b.assign(std::vector<Holder>{Holder{w}});
  }
}

TEST_P(HeldMemory, elements_that_were_assigned_all_at_once_hold_themselves_no_longer) {
  Array<Link> a(device(), std::vector<Link>(1));
  a.assign(std::vector<Link>{Link{a.slice(0, 1), 1}});
  a.zero();
  const Device other("reference");
  EXPECT_EQ(a.to(other).at(0).weight, 0);
  const Array<Link> b = a.clone();
  a.assign(std::vector<Link>{Link{b, 1}});  // no circle
  EXPECT_EQ(a.at(0).next.size(), 1);
}

TEST_P(HeldMemory, an_assignment_that_is_refused_leaves_no_view_of_the_array_itself) {
  Array<Link> a(device(), std::vector<Link>(1)), b(device(), std::vector<Link>{Link{a, 1}});
  expect_contains(error_of([&] { a.assign(std::vector<Link>{Link{b, 1}}); }), "in a circle");
  expect_contains(error_of([&] { (void)a.slice(0, 1).assign(std::vector<Link>{Link{b, 1}}); }), "in a circle");
  const Device other("reference");
  EXPECT_EQ(a.to(other).size(), 1);
}

TEST_P(HeldMemory, what_another_thread_does_during_a_capture_is_no_part_of_a_tape_in_it) {
  Array<float> x = full<float>(device(), 1, 3).requires_grad(), y = zeros<float>(device(), 1);
  const Graph graph = capture(device(), [&] {
    x.zero_grad();
    Tape tape;
    tape.record([&] { launch(square, 1, x, y); });
    std::thread([&] { x.fill(5); }).join();
    tape.backward(y);
  });
  for (const float value : {7.f, 9.f}) {
    x.fill(value);
    graph.launch();
    EXPECT_EQ(y.at(0), value * value);
    EXPECT_EQ(x.grad().at(0), 2 * value);
  }
}

TEST_P(HeldMemory, a_graph_with_a_tape_is_refused_when_elements_of_its_launches_were_assigned_since) {
  Array<float> x = full<float>(device(), 1, 2).requires_grad(), y = zeros<float>(device(), 1);
  Array<float> w = full<float>(device(), 1, 3), q = full<float>(device(), 1, 5);
  Array<Holder> holder(device(), {Holder{w}});
  const auto step = [&] {
    x.zero_grad();
    Tape tape;
    tape.record([&] { launch(scale, 1, holder, x, y); });
    tape.backward(y);
  };
  const Graph graph = capture(device(), step);
  graph.launch();
  EXPECT_EQ(y.at(0), 6);
  EXPECT_EQ(x.grad().at(0), 3);
  holder.assign(std::vector<Holder>{Holder{q}});
  expect_contains(error_of([&] { graph.launch(); }), "hold other arrays than when it was made");
  Array<Holder> source(device(), {Holder{q}});
  const Graph assigns = capture(device(), [&] {
    holder.copy_from(source);
    step();
  });
  for (int k = 0; k < 2; ++k) {
    assigns.launch();
    EXPECT_EQ(x.grad().at(0), 5);
  }
  source.assign(std::vector<Holder>{Holder{w}});
  expect_contains(error_of([&] { assigns.launch(); }), "hold other arrays than when it was made");
  expect_contains(error_of([&] {
                    (void)capture(device(), [&] {
                      step();
                      holder.assign(std::vector<Holder>{Holder{w}});
                    });
                  }),
                  "assign them before");
}

TEST_P(HeldMemory, going_back_finds_that_held_indices_of_a_mesh_have_changed) {
  const auto first_index = kernel("times an index", [](Arr<const Body> b, Arr<const float> x, Arr<float> y) {
    y[0] = x[0] * Float(b[0].indices[1]);
  });
  Array<vec3> points(device(), kCorners);
  Array<int> indices(device(), {0, 1, 2});
  Array<float> x = full<float>(device(), 1, 3).requires_grad(), y = zeros<float>(device(), 1);
  Array<Body> body(device(), {Body{points, indices}});
  Mesh mesh(points, indices);
  Tape tape;
  tape.record([&] { launch(first_index, 1, body, x, y); });
  indices.assign(std::vector<int>{0, 2, 1});
  mesh.rebuild();
  expect_contains(error_of([&] { tape.backward(y); }), "has changed since");
  EXPECT_EQ(indices.at(1), 2);
  mesh.refit();
}

TEST_P(HeldMemory, structures_may_end_in_a_step_of_a_tape) {
  for (const bool is_mesh : {false, true}) {
    Array<float> z = full<float>(device(), 1, 1).requires_grad();
    auto mesh = std::make_unique<Mesh>(Array<vec3>(device(), kCorners), Array<int>(device(), {0, 1, 2}));
    auto grid = std::make_unique<HashGrid>(device(), 4, 4, 4);
    (void)mesh->id();
    (void)grid->id();
    Tape tape;
    tape.record([&] {
      tape.checkpointed(2, 1, [&](int k) {
        if (k == 0 && is_mesh) mesh.reset();
        if (k == 0 && !is_mesh) grid.reset();
        launch(times_two, 1, z);
      });
    });
    tape.backward({{z, full<float>(device(), 1, 1)}});
    EXPECT_EQ(z.grad().at(0), 4);
  }
}

TEST_P(HeldMemory, long_chains_of_elements_are_followed_and_end) {
  const auto touch = kernel("touch", [](Arr<const Link> a, Arr<float> y) { y[0] = a[0].weight; });
  Array<float> y = zeros<float>(device(), 1);
  Array<Link> head(device(), std::vector<Link>(1));
  for (int k = 0; k < 2000; ++k) head = Array<Link>(device(), {Link{head, float(k)}});
  launch(touch, 1, head, y);
  EXPECT_EQ(y.at(0), 1999);
  device().synchronize();
  head = {};  // ends all of them, each by the one before
}

}  // namespace
