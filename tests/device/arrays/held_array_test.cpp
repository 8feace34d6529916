// Arrays that elements hold: kernels that read them alone, and gradients among them.
#include <gtest/gtest.h>
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <memory>
#include <vector>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(HeldArrays);

// A parameter as optimisers keep it.
struct Param {
  Array<float> value, grad;
};
WEFT_STRUCT(Param, value, grad);
struct Body {
  Array<vec3> points;
  Array<int> indices;
};
WEFT_STRUCT(Body, points, indices);
struct Link {
  Array<Link> next;
  float weight = 0;
};
WEFT_STRUCT(Link, next, weight);

const auto scale = kernel("scale", [](Arr<const Param> p, Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * detach(p[0].value[i]);
});
const auto scale_by_gradient = kernel("scale by gradient", [](Arr<const Param> p, Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * detach(p[0].grad[i]);
});
const auto square = kernel("square", [](Arr<const Param>, Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * x[i];
});
const auto descend = kernel("descend", [](Arr<const Param> p, Var<float> rate) {
  Int i = tid();
  p[0].value[i] = p[0].value[i] - rate * p[0].grad[i];
});
const auto times = kernel("times", [](Arr<const float> w, Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * detach(w[i]);
});

/// Computes y = 3 x, where an element holds the 3 and a gradient.
struct Scaled {
  Array<float> x, w, y, ones;
  Array<Param> p;
  explicit Scaled(const Device& device)
      : x(full<float>(device, 2, 2).requires_grad()),
        w(full<float>(device, 2, 3)),
        y(zeros<float>(device, 2).requires_grad()),
        ones(full<float>(device, 2, 1)),
        p(device, {Param{w, x.grad()}}) {}
};

const std::string kHolds = "an element of an argument holds the gradient of argument 2, to which the way back adds";

TEST_P(HeldArrays, a_gradient_that_an_element_holds_is_refused_on_the_way_back) {
  Scaled s(device());
  for (const auto* kernel : {&scale, &scale_by_gradient}) {
    Tape tape;
    tape.record([&] { launch(*kernel, 2, s.p, s.x, s.y); });
    expect_contains(error_of([&] { tape.backward({{s.y, s.ones}}); }), kHolds);
    EXPECT_EQ(s.x.grad().at(0), 0);
  }
  const Array<Param> q(device(), {Param{s.w, s.y.grad()}});
  Tape tape;
  tape.record([&] { launch(scale, 2, q, s.x, s.y); });
  expect_contains(error_of([&] { tape.backward({{s.y, s.ones}}); }), "holds the gradient of argument 3");
  tape.reset();
  expect_contains(error_of([&] {
                    (void)capture(device(), [&] {
                      Tape inside;
                      inside.record([&] { launch(scale, 2, s.p, s.x, s.y); });
                      inside.backward({{s.y, s.ones}});
                    });
                  }),
                  kHolds);
}

TEST_P(HeldArrays, what_a_tape_needs_is_not_changed_by_captured_work) {
  Scaled s(device());
  const Array<float> spare = zeros<float>(device(), 2);
  const Array<int> flag = full<int>(device(), 1, 1);
  const Array<Param> p(device(), {Param{s.w, spare}});
  const auto set = kernel("set", [](Arr<float> to) { to[tid()] = 5; });
  Tape outside;
  outside.record([&] { launch(scale, 2, p, s.x, s.y); });
  expect_contains(error_of([&] { (void)capture(device(), [&] {
                                   s.w.fill(5), outside.backward({{s.y, s.ones}});
                                 }); }),
                  "a tape from outside of the capture still needs");
  outside.reset();
  // A condition may run again after the change.
  expect_contains(error_of([&] {
                    (void)capture(device(), [&] {
                      Tape tape;
                      tape.record([&] { launch(scale, 2, p, s.x, s.y); });
                      graph_while(flag, 3, [&] { tape.backward({{s.y, s.ones}}), s.w.fill(5); });
                    });
                  }),
                  "still needs");
  // A node before the way back may not be set to change it.
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    Tape tape;
    tape.record([&] { launch(scale, 2, p, s.x, s.y); });
    launch(set, 2, spare.clone());
    node = captured_launch();
    tape.backward({{s.y, s.ones}});
  });
  expect_contains(error_of([&] { graph.set(node, set, s.w); }), "still needs what it holds");
  graph.launch();
  EXPECT_EQ(s.x.grad().at(0), 3);
}

TEST_P(HeldArrays, a_kernel_that_may_change_them_is_gone_back_through_as_often_as_one_likes) {
  const auto store = kernel("store", [](Arr<Param> p, Arr<const float> x, Arr<float> y) {
    Int i = tid();
    If (x[i] < -1) {
      p[0].grad[i] = 7.f;
    }
    y[i] = x[i] * x[i];
  });
  Scaled s(device());
  const Array<Param> p(device(), {Param{s.w, zeros<float>(device(), 2)}});
  Tape tape;
  tape.record([&] { launch(store, 2, p, s.x, s.y); });
  for (int k = 1; k <= 3; ++k) {
    tape.backward({{s.y, s.ones}});
    EXPECT_EQ(s.x.grad().at(0), 4 * k);
  }
}

TEST_P(HeldArrays, what_a_kernel_does_not_use_has_no_part_in_the_way_back) {
  Scaled s(device());
  Tape tape;
  tape.record([&] { launch(square, 2, s.p, s.x, s.y); });
  for (int k = 1; k <= 2; ++k) {
    tape.backward({{s.y, s.ones}});
    EXPECT_EQ(s.x.grad().at(0), 4 * k);
  }
}

TEST_P(HeldArrays, what_has_changed_since_is_refused_on_the_way_back) {
  Scaled s(device());
  const Array<float> spare = zeros<float>(device(), 2);
  const Array<Param> p(device(), {Param{s.w, spare}});
  Tape tape;
  tape.record([&] { launch(scale, 2, p, s.x, s.y); });
  for (int k = 1; k <= 2; ++k) {
    tape.backward({{s.y, s.ones}});
    EXPECT_EQ(s.x.grad().at(0), 3 * k);
  }
  s.w.fill(5);
  const std::string error = error_of([&] { tape.backward({{s.y, s.ones}}); });
  expect_contains(error, "kernel \"scale\"");
  expect_contains(error, "an array that elements of its arguments hold has changed since");
  EXPECT_EQ(s.x.grad().at(0), 6);
  tape.reset();
  tape.record([&] { launch(scale, 2, p, s.x, s.y); });
  tape.backward({{s.y, s.ones}});
  EXPECT_EQ(s.x.grad().at(0), 11);
}

TEST_P(HeldArrays, tapes_are_told_of_what_is_stored_through_elements_that_are_read) {
  Scaled s(device());
  s.x.grad().fill(1);
  Tape tape;
  tape.record([&] { launch(times, 2, s.w, s.x, s.y); });
  launch(descend, 2, s.p, 1.f);
  EXPECT_EQ(s.w.at(0), 2);
  tape.backward({{s.y, s.ones}});
  EXPECT_EQ(s.x.grad().at(0), 1 + 3);
}

TEST_P(HeldArrays, kernels_that_read_them_alone_change_nothing) {
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points(device(), data.points);
  const Array<int> indices(device(), data.indices);
  Mesh mesh(points, indices);
  const Array<Body> bodies(device(), {Body{points, indices}});
  const Array<float> heights = zeros<float>(device(), 2);
  launch(kernel("heights",
                [](Arr<const Body> bodies, Arr<float> y) {
                  Int i = tid();
                  y[i] = bodies[0].points[bodies[0].indices[i]].z;
                }),
         2, bodies, heights);
  EXPECT_EQ(heights.at(1), data.points[std::size_t(data.indices[1])].z);
  mesh.refit();

  // A kernel that stores to the indices makes the mesh stale.
  launch(kernel("turn",
                [](Arr<const Body> bodies) {
                  const Var<int> first = bodies[0].indices[0];
                  bodies[0].indices[0] = bodies[0].indices[1];
                  bodies[0].indices[1] = first;
                }),
         1, bodies);
  expect_contains(error_of([&] { mesh.refit(); }), "the indices of a mesh have changed");
}

TEST_P(HeldArrays, work_that_is_captured_may_read_what_a_tape_needs) {
  Scaled s(device());
  const Array<float> out = zeros<float>(device(), 2);
  Tape tape;
  tape.record([&] { launch(times, 2, s.w, s.x, s.y); });
  const Graph graph = capture(device(), [&] {
    launch(kernel("read held", [](Arr<const Param> p, Arr<float> out) { out[tid()] = p[0].value[tid()]; }), 2, s.p,
           out);
  });
  s.w.fill(4);
  graph.launch();
  EXPECT_EQ(out.at(0), 4);
  tape.backward({{s.y, s.ones}});
  EXPECT_EQ(s.x.grad().at(0), 3);
}

TEST_P(HeldArrays, zeros_hold_no_arrays) {
  Array<Param> p(device(), std::vector<Param>(2));
  std::weak_ptr<void> held;
  {
    const Array<float> a = full<float>(device(), 5, 1);
    held = a.storage();
    p.fill(Param{a, a});
  }
  p.zero();
  device().synchronize();
  EXPECT_TRUE(held.expired());

  Array<float> b = full<float>(device(), 5, 1);
  p.fill(Param{b, b});
  p.zero();
  b.free();
  EXPECT_TRUE(p.to_vector()[1].value.is_null());
}

TEST_P(HeldArrays, an_assignment_that_is_refused_leaves_nothing) {
  Array<Link> links(device(), std::vector<Link>(2));
  expect_contains(error_of([&] {
                    links.assign(std::vector<Link>{Link{links, 1}});
                  }),
                  "1 elements are given where the array has 2");
  const Array<float> x = full<float>(device(), 2, 2).requires_grad(), y = zeros<float>(device(), 2);
  Tape tape;
  tape.record([&] {
    launch(kernel("weigh",
                  [](Arr<Link> links, Arr<const float> x, Arr<float> y) {
                    Int i = tid();
                    links[i].weight = 1.f;
                    y[i] = x[i] * 2.f;
                  }),
           2, links, x, y);
  });
  tape.backward({{y, full<float>(device(), 2, 1)}});
  EXPECT_EQ(x.grad().at(1), 2);
}

TEST_P(HeldArrays, a_copy_into_a_null_array_is_recorded) {
  const Array<float> x = full<float>(device(), 2, 2).requires_grad(), z = zeros<float>(device(), 2);
  Array<float> y;
  Tape tape;
  tape.record([&] {
    y.copy_from(x);
    launch(times, 2, full<float>(device(), 2, 3), y, z);
  });
  tape.backward({{z, full<float>(device(), 2, 1)}});
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{3, 3}));
}

}  // namespace
