// Arrays that are freed while others still name their memory: every later use is an error.
#include <gtest/gtest.h>
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/runtime/dlpack.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>
#include <weft/weft.h>

#include <functional>
#include <numeric>

#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../exchange/dlpack_foreign.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(FreedArrays);

struct Held {
  Array<float> values;
};
WEFT_STRUCT(Held, values);

struct Outer {
  Array<Held> held;
};
WEFT_STRUCT(Outer, held);

const auto add_one = kernel("add one", [](Arr<float> x) { x[tid()] += 1; });
const auto add_held = kernel("add what is held", [](Arr<const Held> from, Arr<float> to) {
  Int i = tid();
  to[i] += from[0].values[i];
});
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) {
  Int i = tid();
  y[i] = x[i] * x[i];
});

// Gives the memory to another library and takes it back.
void to_dlpack_and_back(const Array<float>& x) {
  DLManagedTensorVersioned* const tensor = to_dlpack(x);
  Array<float> same = from_dlpack<float>(x.device(), tensor);
  EXPECT_EQ(same.storage(), x.storage());
  EXPECT_FALSE(same.is_freed());
}

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
  const auto overlap = [](std::uint64_t a, std::uint64_t b) { return a < b + (4 << 20) && b < a + (4 << 20); };
  // The memory may be part of a larger free piece by now, so the first new array need not lie there.
  for (int k = 0; k < 100 && !again; ++k) again = overlap(made.emplace_back(make()).address(), before);
  EXPECT_TRUE(again || on_reference()) << "of the host's memory nobody knows which comes next";
  // A handle of the freed array does not reach the array that has its memory now.
  expect_contains(error_of([&] { launch(add_one, 10, also); }), "freed");
  for (const float v : made.back().slice(0, 10).to_vector()) EXPECT_EQ(v, 3);
  x = {};
  made.push_back(make());
  if (again) {
    EXPECT_FALSE(overlap(made.back().address(), made[made.size() - 2].address())) << "freed twice";
  }
}

TEST_P(FreedArrays, are_refused_by_graphs_that_work_on_them) {
  Array<float> x = zeros<float>(device(), 8), y = zeros<float>(device(), 8);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(add_one, 8, y);
    launch(add_one, 8, x);
    node = captured_launch();
    expect_contains(error_of([&] { y.free(); }), "an array is freed while a graph is captured");
  });
  graph.launch();
  EXPECT_EQ(x.at(7), 1);
  x.free();
  for (int k = 0; k < 2; ++k)
    expect_contains(error_of([&] { graph.launch(); }),
                    "in kernel \"add one\": a graph works on an array that was freed since it was made, argument 1: ");
  Array<float> z = zeros<float>(device(), 8);
  graph.set(node, add_one, z);
  expect_contains(error_of([&] { graph.launch(); }),
                  "that was freed since it was made, argument 1 as captured: capture");
  EXPECT_EQ(y.at(7), 1) << "a part of the graph ran";
  expect_contains(error_of([&] { graph.set(node, add_one, x); }), "is an array that was freed");
  // A node can be set again after the array that it was set to was freed.
  const Graph set = capture(device(), [&] {
    launch(add_one, 8, y);
    node = captured_launch();
  });
  set.set(node, add_one, z);
  z.free();
  expect_contains(error_of([&] { set.launch(); }),
                  "in kernel \"add one\": a graph works on an array that was freed since it was set, argument 1: set() "
                  "the node again");
  z = zeros<float>(device(), 8);
  set.set(node, add_one, z);
  set.launch();
  EXPECT_EQ(z.at(7), 1);
  // A kernel of the library's own, and one that does not touch the array, are not named.
  const auto ignores = kernel("ignores", [](Arr<float>, Arr<float> y) { y[tid()] = 1; });
  Array<float> w = zeros<float>(device(), 8);
  const std::function<void()> works[] = {[&] { w.fill(3), launch(ignores, 8, w, y); },
                                         [&] { launch(add_one, 8, y), radix_sort(w); },
                                         [&] { y.slice(0, 8, 2).copy_from(w.slice(0, 8, 2)); }};
  for (const auto& work : works) {
    const Graph graph = capture(device(), work);
    w.free();
    const std::string error = error_of([&] { graph.launch(); });
    expect_contains(error, "a graph works on an array that was freed since it was made: capture again");
    EXPECT_EQ(error.find("in kernel"), std::string::npos) << error;
    w = zeros<float>(device(), 8);
  }
  // The device continues to work, and so does a graph on other memory.
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
  // One fill() with an element that holds another array also suffices.
  b.free();
  Array<float> c = full<float>(device(), 4, 4);
  held.fill(Held{c});
  launch(add_held, 4, held, to);
  EXPECT_EQ(to.at(3), 7);
  EXPECT_EQ(held.at(0).values.at(0), 4);
  // A refused call leaves no trace of its arguments.
  Array<float> e = full<float>(device(), 4, 5);
  expect_contains(error_of([&] { held.assign(std::vector<Held>(2, Held{e})); }), "2 elements are given");
  e.free();
  EXPECT_EQ(held.at(0).values.at(0), 4);
}

TEST_P(FreedArrays, that_a_graph_would_bring_are_refused_before_it_begins) {
  Array<float> a = full<float>(device(), 4, 1), b = full<float>(device(), 4, 2), to = zeros<float>(device(), 4);
  Array<Held> held(device(), {Held{b}}), other(device(), {Held{b}});
  const Graph graph = capture(device(), [&] {
    other.assign(std::vector<Held>{Held{b}});
    held.assign(std::vector<Held>{Held{a}});
  });
  a.free();
  expect_contains(error_of([&] { graph.launch(); }), "capture again");
  held.assign(std::vector<Held>{Held{b}});
  launch(add_held, 4, held, to);
  launch(add_held, 4, other, to);
  EXPECT_EQ(to.at(3), 4);
}

TEST_P(FreedArrays, leave_no_trace_in_elements_that_refused_work_would_have_written) {
  Array<float> a = full<float>(device(), 4, 1), b = full<float>(device(), 4, 2), d = full<float>(device(), 4, 4);
  Array<float> to = zeros<float>(device(), 4);
  // The source of this copy cannot be read, because one of its elements holds an array that was freed.
  Array<Held> held(device(), {Held{a}, Held{d}, Held{d}, Held{d}}), other(device(), {Held{d}, Held{d}});
  a.free();
  expect_contains(error_of([&] { other.copy_from(held.slice(0, 4, 2)); }), "freed");
  launch(add_held, 4, other, to);
  EXPECT_EQ(other.at(1).values.at(0), 4);
  // This graph would bring b, and is refused for another reason.
  Array<float> c = full<float>(device(), 4, 3);
  Array<Held> read(device(), {Held{d}}), brought(device(), {Held{d}});
  const Graph graph = capture(device(), [&] {
    brought.assign(std::vector<Held>{Held{b}});
    launch(add_held, 4, read, to);
  });
  read.assign(std::vector<Held>{Held{c}});
  brought.assign(std::vector<Held>{Held{d}});
  c.free();
  expect_contains(error_of([&] { graph.launch(); }),
                  "elements of an array that a graph works on hold other arrays than when it was made");
  b.free();
  EXPECT_EQ(brought.at(0).values.at(0), 4);
  launch(add_held, 4, brought, to);
  EXPECT_EQ(to.at(3), 8);
  // The target of this copy was freed; the array that it would hold is released with its last handle.
  Array<Held> source(device(), {Held{full<float>(device(), 4, 5)}}), gone(device(), {Held{}, Held{}});
  const std::weak_ptr<detail::Storage> inside = source.at(0).values.storage();
  gone.free();
  expect_contains(error_of([&] { indexed(gone, Array<int>(device(), {1})).copy_from(source); }), "freed");
  source = {};
  EXPECT_TRUE(inside.expired());
}

TEST_P(FreedArrays, behind_two_arrays_of_structs_are_refused_before_anything_is_noted) {
  Array<float> good = full<float>(device(), 4, 2), bad = full<float>(device(), 4, 3), to = zeros<float>(device(), 4);
  const Array<Held> inner(device(), {Held{good}}), gone(device(), {Held{bad}});
  Array<Outer> outer(device(), std::vector<Outer>(4, Outer{inner}));
  const auto add = kernel("add what is held twice", [](Arr<const Outer> from, Arr<float> to) {
    Int i = tid();
    to[i] += from[i].held[0].values[i];
  });
  bad.free();
  expect_contains(error_of([&] { outer.fill(Outer{gone}); }), "assign all of them anew");
  expect_contains(error_of([&] { outer.slice(0, 4, 2).assign(std::vector<Outer>(2, Outer{gone})); }), "anew");
  launch(add, 4, outer, to);
  EXPECT_EQ(to.at(3), 2);
  // One fill() replaces the elements.
  outer.assign(std::vector<Outer>(4, Outer{gone}));
  expect_contains(error_of([&] { launch(add, 4, outer, to); }), "an array was freed that the elements");
  outer.fill(Outer{inner});
  launch(add, 4, outer, to);
  EXPECT_EQ(to.at(3), 4);
}

TEST_P(FreedArrays, are_forgotten_by_elements_that_others_without_arrays_replace) {
  Array<float> a = full<float>(device(), 4, 1), b = full<float>(device(), 4, 2), to = zeros<float>(device(), 4);
  Array<Held> held(device(), {Held{a}}), none(device(), {Held{}});
  a.free();
  held.copy_from(none);
  EXPECT_TRUE(held.at(0).values.is_null());
  held.copy_from(Array<Held>(device(), {Held{b}}));
  launch(add_held, 4, held, to);
  EXPECT_EQ(to.at(3), 2);
}

// An array that a failed write has brought is held, whatever failed.
TEST_P(FreedArrays, are_told_from_arrays_that_a_failed_write_has_brought) {
  Array<float> to = zeros<float>(device(), 4);
  Array<Held> held(device(), {Held{}, Held{}});
  {
    const Array<Held> source(device(), std::vector<Held>(3, Held{full<float>(device(), 4, 7)}));
    expect_contains(error_of([&] {
                      indexed(held, Array<int>(device(), {0, 1, 1000000000})).copy_from(source);
                      device().synchronize();
                    }),
                    "outside");
  }
  launch(add_held, 4, held, to);
  EXPECT_EQ(to.at(3), 7);
}

TEST_P(FreedArrays, in_elements_refuse_a_launch_before_a_mesh_is_told_that_it_changes) {
  Array<int> corners(device(), {0, 1, 2});
  Mesh mesh(Array<vec3>(device(), std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}}), corners);
  Array<float> found = zeros<float>(device(), 1), a = full<float>(device(), 4, 1);
  Array<Held> held(device(), {Held{a}});
  const auto distance = kernel("distance", [](UInt64 id, Arr<float> to) {
    to[0] = mesh_query_point(id, vec3{0.2f, 0.2f, 3.f}, 10.f).distance;
  });
  const auto change =
      kernel("change corners", [](Arr<int> to, Arr<const Held> from) { to[tid()] = cast<int>(from[0].values[0]); });
  a.free();
  expect_contains(error_of([&] { launch(change, 1, corners, held); }), "an array was freed that the elements");
  launch(distance, 1, mesh.id(), found);
  EXPECT_EQ(found.at(0), 3);
}

TEST_P(FreedArrays, are_refused_by_structures_which_stay_as_they_were) {
  const std::vector<vec3> low{{0, 0, 0}, {2, 0, 0}}, high{{1, 1, 1}, {3, 1, 1}};
  Array<vec3> lowers(device(), low), uppers(device(), high), gone(device(), low);
  Array<int> found = zeros<int>(device(), 1), flag = full<int>(device(), 1, 1);
  const auto count = kernel("count", [](UInt64 boxes, UInt64 grid, Arr<int> n) {
    for ([[maybe_unused]] auto k : bvh_query_aabb(boxes, vec3{-9, -9, -9}, vec3{9, 9, 9})) n[0] += 1;
    for ([[maybe_unused]] auto k : hash_grid_query(grid, vec3{1, 0, 0}, 1.5f)) n[0] += 10;
  });
  Bvh bvh(device(), lowers, uppers);
  HashGrid grid(device(), 4, 4, 4);
  grid.build(lowers, 1.5f);
  launch(count, 1, bvh.id(), grid.id(), found);
  const int once = found.at(0);
  EXPECT_GT(once, 2);
  gone.free();
  Array<int> keys(device(), {2}), values(device(), {1});
  values.free();
  Array<int> gone_flag = flag.clone();
  gone_flag.free();
  const std::vector<std::function<void()>> uses = {
      [&] { bvh.refit(gone, uppers); },
      [&] { bvh.rebuild(lowers, gone); },
      [&] { Bvh(device(), gone, uppers); },
      [&] { grid.build(gone, 1.5f); },
      [&] { grid.build(gone.slice(0, 0), 1.5f); },
      [&] { radix_sort_pairs(keys, values); },
      [&] {
        Mesh(gone, Array<int>(device(), {0, 1, 0}));
      },
      [&] { (void)capture(device(), [&] { graph_if(gone_flag, [] {}); }); },
  };
  for (std::size_t k = 0; k < uses.size(); ++k) {
    SCOPED_TRACE(k);
    expect_contains(error_of(uses[k]), "freed");
  }
  launch(count, 1, bvh.id(), grid.id(), found);
  EXPECT_EQ(found.at(0), 2 * once);
}

TEST_P(FreedArrays, under_a_mesh_are_refused_by_its_queries_and_refits) {
  Array<vec3> points(device(), std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  Array<int> corners(device(), {0, 1, 2});
  Array<float> found = zeros<float>(device(), 1);
  const auto distance = kernel("distance", [](UInt64 mesh, Arr<float> to) {
    to[0] = mesh_query_point(mesh, vec3{0.2f, 0.2f, 3.f}, 10.f).distance;
  });
  {
    const bool shared = device().native().info().host_visible;
    DLManagedTensorVersioned* const tensor = shared ? to_dlpack(corners) : nullptr;
    Mesh mesh(points, corners);
    launch(distance, 1, mesh.id(), found);
    EXPECT_NEAR(found.at(0), 3, 1e-6);
    // A refused call changes nothing.
    if (tensor) {
      expect_contains(error_of([&] { corners.free(); }), "others still work on");
      launch(distance, 1, mesh.id(), found);
      tensor->deleter(tensor);
    }
    points.free();
    const std::string asked = error_of([&] { launch(distance, 1, mesh.id(), found); });
    expect_contains(asked, "stands on which kernels find by its handle");
    expect_contains(asked, "kernel \"distance\"");
    expect_contains(error_of([&] { mesh.refit(); }), "freed");
    expect_contains(error_of([&] { mesh.rebuild(); }), "freed");
  }
  {
    const Array<vec3> moved(device(), std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
    Array<int> other = corners.clone();
    Mesh mesh(moved, other);
    other.free();
    expect_contains(error_of([&] { mesh.refit(); }), "an array of a mesh was freed");
    expect_contains(error_of([&] { mesh.rebuild(); }), "an array of a mesh was freed");
  }
  // After the end of the mesh, kernels may use handles again.
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
  // These boxes may well lie where the freed ones did.
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

TEST_P(FreedArrays, stay_while_a_tape_has_recorded_work_on_them) {
  Array<float> x = full<float>(device(), 3, 3).requires_grad(), y = zeros<float>(device(), 3);
  Array<float> scratch = zeros<float>(device(), 3), factor = full<float>(device(), 3, 5);
  const auto scale = kernel("scale", [](Arr<float> y, Arr<const float> by) {
    Int i = tid();
    y[i] *= by[i];
  });
  Array<float> gradient = x.grad();
  Tape tape;
  scratch.free();
  tape.record([&] {
    launch(square, 3, x, y);
    launch(scale, 3, y, factor);
    expect_contains(error_of([&] { y.free(); }), "an array is freed while a tape records");
    // Refused work is not recorded.
    expect_contains(error_of([&] { scratch.fill(1); }), "freed");
    expect_contains(error_of([&] { scratch.copy_from(x); }), "freed");
    expect_contains(error_of([&] { launch(square, 3, x, scratch); }), "freed");
    for (int k = 0; k < 2; ++k)
      expect_contains(error_of([&] { tape.record_func([] { FAIL(); }, x, scratch); }), "freed");
  });
  for (Array<float>* a : {&x, &y, &factor})
    expect_contains(error_of([&] { a->free(); }), "others still work on: a tape that has recorded work on it");
  const Array<float> seed = full<float>(device(), 3, 1);
  tape.backward({{y, seed}});
  EXPECT_EQ(gradient.at(2), 30);
  tape.reset();
  x.free(), y.free(), factor.free();
  // Gradients are arrays of their own, which stay; free() of another array does not free them.
  EXPECT_EQ(gradient.at(2), 30);
  expect_contains(error_of([&] { gradient.free(); }), "they go with their last handle");
  expect_contains(error_of([&] { (void)x.grad(); }), "freed");
}

// The tape knows only that a function of the caller's reads these arrays.
TEST_P(FreedArrays, are_refused_on_the_way_back_where_a_tape_does_not_know_them) {
  Array<float> x = full<float>(device(), 3, 3).requires_grad(), y = zeros<float>(device(), 3);
  Array<float> slope = full<float>(device(), 3, 2);
  Tape tape;
  tape.record([&] {
    launch(square, 3, x, y);
    tape.record_func([&] { launch(add_one, 3, slope); }, y);
  });
  slope.free();
  expect_contains(error_of([&] { tape.backward({{y, full<float>(device(), 3, 1)}}); }), "is an array that was freed");
}

TEST_P(FreedArrays, stay_where_another_library_has_them) {
  if (!device().native().info().host_visible) GTEST_SKIP() << "tensors are copies here";
  Array<float> x = full<float>(device(), 4, 2);
  DLManagedTensorVersioned* tensor = to_dlpack(x);
  expect_contains(error_of([&] { x.free(); }), "others still work on: a tensor of DLPack's; have it dropped first");
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
  // An owner that weft keeps is released.
  int deleted = 0;
  Array<float> taken = from_dlpack<float>(device(), test::Foreign<DLManagedTensorVersioned>::make({64}, deleted));
  const bool shared = taken.storage()->wrapped;
  EXPECT_EQ(deleted, shared ? 0 : 1);
  taken.free();
  EXPECT_EQ(deleted, 1);
  // Memory that was given away and came back belongs to no array once it is freed.
  to_dlpack_and_back(again);
  again.free();
  Array<float> third = wrap(device(), memory);
  to_dlpack_and_back(third);
  EXPECT_EQ(third.at(0), 2);
}

TEST_P(FreedArrays, stay_where_the_wait_for_them_ends_in_a_failure) {
  Array<float> x = full<float>(device(), 4, 2);
  launch(kernel("fail",
                [](Arr<float> x) {
                  x[tid()] += 1;
                  assert_(x[tid()] < 1.f, "too much");
                }),
         4, x);
  expect_contains(error_of([&] { x.free(); }), "too much");
  EXPECT_FALSE(x.is_freed());
  EXPECT_EQ(x.at(0), 3);
  x.free();
  EXPECT_TRUE(x.is_freed());
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
