// Arrays that are freed while others still name their memory: every later use is an error.
#include <gtest/gtest.h>
#include <weft/geometry.h>
#include <weft/runtime/dlpack.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/weft.h>

#include <functional>
#include <numeric>

#include "../../runtime/state.h"
#include "device_test.h"
#include "dlpack_foreign.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(FreedArrays);

struct Held {
  Array<float> values;
};
WEFT_STRUCT(Held, values);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto add_held = kernel("add what is held", [](Arr<const Held> from, Arr<float> to) {
  Int i = tid();
  to[i] += from[0].values[i];
});
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * x[i];
});

TEST_P(FreedArrays, are_refused_by_everything_that_would_use_them) {
  Array<float, 2> x = zeros<float, 2>(device(), {10, 10});
  const Array<float, 2> other = x, part = x.slice(2, 4);
  Array<float, 1> row = x[3];
  Array<float, 2> y = zeros<float, 2>(device(), {10, 10});
  launch(add_one, 10, row);
  EXPECT_FALSE(x.is_freed());
  x.free();
  EXPECT_TRUE(x.is_freed() && other.is_freed() && part.is_freed() && row.is_freed());
  EXPECT_FALSE(x.is_null());
  EXPECT_EQ(row.size(), 10);
  const std::string launched = error_of([&] { launch(add_one, 10, row); });
  expect_contains(launched, "argument 1");
  expect_contains(launched, "is an array that was freed");
  expect_contains(launched, "kernel \"add one\"");
  expect_contains(launched, "freed_array_test.cpp");
  const std::vector<float> hundred(100);
  std::vector<float> out(100);
  const std::vector<std::function<void()>> uses = {
      [&] { x.free(); },
      [&] { row.free(); },
      [&] { x.fill(1); },
      [&] { x.zero(); },
      [&] { x.transpose().fill(1); },
      [&] { x.assign(hundred); },
      [&] { (void)x.to_vector(); },
      [&] { (void)part.transpose().to_vector(); },
      [&] { x.copy_to(out); },
      [&] { (void)x.copy_to_async(out); },
      [&] { (void)row.at(1); },
      [&] { (void)row.host_span(); },
      [&] { x.wait(); },
      [&] { x.copy_from(y); },
      [&] { y.copy_from(other); },
      [&] { y.slice(0, 2).copy_from(part); },
      [&] { (void)other.clone(); },
      [&] { (void)row.requires_grad(); },
      [&] { (void)row.grad(); },
      [&] { Array<Held>(device(), {Held{row}}); },
      [&] { (void)to_dlpack(x); },
  };
  for (std::size_t k = 0; k < uses.size(); ++k) {
    SCOPED_TRACE(k);
    expect_contains(error_of(uses[k]), "freed");
  }
  for (const float v : y.to_vector()) ASSERT_EQ(v, 0);
}

TEST_P(FreedArrays, give_their_memory_to_others_at_once) {
  const auto make = [&] { return full<float>(device(), 1 << 20, 3); };
  Array<float> x = make();
  const std::uint64_t before = x.address();
  const Array<float> also = x;
  launch(add_one, x.size(), x);
  x.free();  // waits for the kernel
  std::vector<Array<float>> made;
  bool again = false;
  for (int k = 0; k < 100 && !again; ++k) again = made.emplace_back(make()).address() == before;
  EXPECT_TRUE(again || on_reference()) << "of the host's memory nobody knows which comes next";
  // What has the memory now is its own.
  expect_contains(error_of([&] { launch(add_one, 10, also); }), "freed");
  for (const float v : made.back().slice(0, 10).to_vector()) EXPECT_EQ(v, 3);
  x = {};
  made.push_back(make());
  EXPECT_NE(made.back().address(), before) << "freed twice";
}

TEST_P(FreedArrays, are_refused_by_graphs_that_work_on_them) {
  Array<float> x = zeros<float>(device(), 8), y = zeros<float>(device(), 8);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(add_one, 8, y);
    launch(add_one, 8, x);
    node = captured_launch();
    expect_contains(error_of([&] { y.free(); }), "while a graph is captured");
  });
  graph.launch();
  EXPECT_EQ(x.at(7), 1);
  x.free();
  for (int k = 0; k < 2; ++k)
    expect_contains(error_of([&] { graph.launch(); }), "a graph works on an array that was freed since it was made");
  EXPECT_EQ(y.at(7), 1) << "a part of the graph ran";
  expect_contains(error_of([&] { graph.set(node, add_one, x); }), "is an array that was freed");
  // The device goes on, and so does what works on other memory.
  const Graph next = capture(device(), [&] { launch(add_one, 8, y); });
  next.launch();
  EXPECT_EQ(y.at(7), 2);
}

TEST_P(FreedArrays, are_refused_where_elements_held_them_until_these_are_assigned_anew) {
  Array<float> a = full<float>(device(), 4, 1), b = full<float>(device(), 4, 2), to = zeros<float>(device(), 4);
  Array<Held> held(device(), {Held{a}});
  const Graph graph = capture(device(), [&] { launch(add_held, 4, held, to); });
  launch(add_held, 4, held, to);
  a.free();
  expect_contains(error_of([&] { launch(add_held, 4, held, to); }), "an array was freed that the elements");
  expect_contains(error_of([&] { graph.launch(); }), "freed");
  expect_contains(error_of([&] { (void)held.to_vector(); }), "assign all of them anew");
  expect_contains(error_of([&] { (void)held.at(0); }), "assign all of them anew");
  held.assign(std::vector<Held>{Held{b}});
  launch(add_held, 4, held, to);
  EXPECT_EQ(to.at(3), 3);
  expect_contains(error_of([&] { graph.launch(); }), "capture again");
  EXPECT_EQ(held.at(0).values.at(0), 2);
}

TEST_P(FreedArrays, under_a_mesh_are_refused_by_its_queries_and_refits) {
  Array<vec3> points(device(), std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  const Array<int> corners(device(), {0, 1, 2});
  Array<float> found = zeros<float>(device(), 1);
  const auto distance = kernel("distance", [](UInt64 mesh, Arr<float> to) {
    to[0] = mesh_query_point(mesh, vec3{0.2f, 0.2f, 3.f}, 10.f).distance;
  });
  {
    Mesh mesh(points, corners);
    launch(distance, 1, mesh.id(), found);
    EXPECT_NEAR(found.at(0), 3, 1e-6);
    points.free();
    const std::string asked = error_of([&] { launch(distance, 1, mesh.id(), found); });
    expect_contains(asked, "stands on which kernels find by its handle");
    expect_contains(asked, "kernel \"distance\"");
    expect_contains(error_of([&] { mesh.refit(); }), "freed");
    expect_contains(error_of([&] { mesh.rebuild(); }), "freed");
  }
  // Without the mesh kernels go by handles again.
  const Array<vec3> others(device(), std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  const Mesh mesh(others, corners);
  launch(distance, 1, mesh.id(), found);
  EXPECT_NEAR(found.at(0), 3, 1e-6);
}

TEST_P(FreedArrays, under_a_hierarchy_are_replaced_by_a_refit) {
  const std::vector<vec3> low{{0, 0, 0}, {2, 0, 0}}, high{{1, 1, 1}, {3, 1, 1}};
  Array<vec3> lowers(device(), low), uppers(device(), high);
  Bvh bvh(device(), lowers, uppers);
  Array<int> found = zeros<int>(device(), 1);
  const auto count = kernel("count", [](UInt64 boxes, Arr<int> n) {
    for ([[maybe_unused]] auto k : bvh_query_aabb(boxes, vec3{-9, -9, -9}, vec3{9, 9, 9})) n[0] += 1;
  });
  launch(count, 1, bvh.id(), found);
  lowers.free();
  expect_contains(error_of([&] { launch(count, 1, bvh.id(), found); }), "freed");
  expect_contains(error_of([&] { bvh.refit(); }), "freed");
  // Boxes that may well lie where those did.
  const Array<vec3> next(device(), low);
  bvh.rebuild(next, uppers);
  launch(count, 1, bvh.id(), found);
  EXPECT_EQ(found.at(0), 4);
  Array<vec3> third(device(), low);
  bvh.refit(third, uppers);
  third.free();
  const Array<vec3> fourth(device(), low);
  bvh.refit(fourth, uppers);
  launch(count, 1, bvh.id(), found);
  EXPECT_EQ(found.at(0), 6);
}

TEST_P(FreedArrays, leave_tapes_what_they_need) {
  Array<float> x = full<float>(device(), 3, 3).requires_grad(), y = zeros<float>(device(), 3);
  Array<float> scratch = zeros<float>(device(), 3);
  const Array<float> gradient = x.grad();
  Tape tape;
  tape.record([&] {
    launch(square, 3, x, y);
    scratch.free();  // nobody else's business
    expect_contains(error_of([&] { x.free(); }), "free() of an array that carries gradients while a tape records");
  });
  EXPECT_FALSE(x.is_freed());
  // What is refused is not recorded.
  tape.record([&] {
    expect_contains(error_of([&] { scratch.fill(1); }), "freed");
    expect_contains(error_of([&] { scratch.copy_from(x); }), "freed");
    expect_contains(error_of([&] { launch(square, 3, x, scratch); }), "freed");
  });
  tape.backward({{y, full<float>(device(), 3, 1)}});
  EXPECT_EQ(gradient.at(2), 6);
  x.free();
  // Gradients are arrays of their own.
  EXPECT_EQ(gradient.at(2), 6);
}

TEST_P(FreedArrays, stay_where_another_library_has_them) {
  if (!device().native().info().host_visible) GTEST_SKIP() << "tensors are copies here";
  Array<float> x = full<float>(device(), 4, 2);
  DLManagedTensorVersioned* tensor = to_dlpack(x);
  expect_contains(error_of([&] { x.free(); }), "others still work on: a tensor of DLPack's");
  EXPECT_EQ(x.at(3), 2);
  EXPECT_EQ(static_cast<float*>(tensor->dl_tensor.data)[3], 2);
  tensor->deleter(tensor);
  x.free();
  EXPECT_TRUE(x.is_freed());
}

TEST_P(FreedArrays, give_wrapped_memory_back_to_its_owner) {
  if (!device().wraps_host()) GTEST_SKIP();
  std::vector<float> memory(1024);
  std::iota(memory.begin(), memory.end(), 0.f);
  Array<float> x = wrap(device(), memory), view = x.slice(8, 16);
  launch(add_one, 1024, x);
  expect_contains(error_of([&] { wrap(device(), memory); }), "stands on already");
  view.free();
  EXPECT_EQ(memory[1023], 1024) << "work is waited for";
  expect_contains(error_of([&] { (void)x.at(0); }), "freed");
  Array<float> again = wrap(device(), memory);
  x = {}, view = {};  // gives nothing back twice
  launch(add_one, 1024, again);
  EXPECT_EQ(again.at(0), 2);
  expect_contains(error_of([&] { wrap(device(), memory); }), "stands on already");
  // An owner that weft keeps is let go of.
  int deleted = 0;
  Array<float> taken = from_dlpack<float>(device(), test::Foreign<DLManagedTensorVersioned>::make({64}, deleted));
  const bool shared = taken.storage()->wrapped;
  EXPECT_EQ(deleted, shared ? 0 : 1);
  taken.free();
  EXPECT_EQ(deleted, 1);
}

TEST_P(FreedArrays, refuse_null_and_may_be_empty) {
  Array<float> none, empty = zeros<float>(device(), 0);
  expect_contains(error_of([&] { none.free(); }), "a null array is freed");
  EXPECT_FALSE(none.is_freed());
  empty.free();
  EXPECT_TRUE(empty.is_freed());
  expect_contains(error_of([&] { empty.free(); }), "freed");
}

}  // namespace
