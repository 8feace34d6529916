// Elements that hold arrays: whoever writes them, and whatever is refused, what they hold lives as long as they do.
#include <weft/runtime/graph.h>
#include <weft/runtime/indexed_array.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../../../runtime/core/state.h"
#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(ElementReferences);

struct Holder {
  Array<float> values;
};
WEFT_STRUCT(Holder, values);

struct Node {
  Array<Node> children;
  float weight = 0;
};
WEFT_STRUCT(Node, children, weight);

const auto get_sizes = kernel("get sizes", [](Arr<const Holder> holders, Arr<int> sizes) {
  Int i = tid();
  sizes[i] = holders[i].values.shape(0);
});

Array<Holder> holding(const Device& device, const Array<float>& values) {
  return Array<Holder>(device, {Holder{values}});
}

/// Elements name on the host what they name on the device, and it is alive: arrays are as many as their elements say.
void expect_same(const Array<Holder>& holders) {
  const Array<int> sizes = zeros<int>(holders.device(), holders.size());
  launch(get_sizes, sizes.size(), holders, sizes);
  const std::vector<int> named = sizes.to_vector();
  const std::vector<Holder> held = holders.to_vector();
  for (std::size_t k = 0; k < held.size(); ++k) {
    const Array<float>& values = held[k].values;
    ASSERT_EQ(values.is_null() ? 0 : int(values.size()), named[k]) << "element " << k;
    if (named[k]) {
      ASSERT_EQ(values.at(named[k] - 1), float(named[k])) << "element " << k;
    }
  }
}

/// Launches a graph, unless elements hold other arrays than when it was captured.
bool launched(const Graph& graph) {
  try {
    graph.launch();
    return true;
  } catch (const Error& e) {
    expect_contains(e.what(), "hold other arrays than when it was made");
    return false;
  }
}

// ---- Programs that are made up

/// A few arrays, and work on them at random: at once, in graphs, in their conditions and loops, some of it refused.
class Program {
 public:
  Program(const Device& device, unsigned seed) : device_(device), random_(seed) {
    for (int k = 0; k < 5; ++k) holders_.emplace_back(device, std::vector<Holder>(kElements));
    for (int k = 0; k < 3; ++k) flags_.push_back(zeros<int>(device, 1));
  }

  void step() {
    const int kind = below(10);
    if (kind < 3)
      work(0);
    else if (kind < 5)
      capture_some();
    else if (kind < 6)
      flags_[std::size_t(below(3))].fill(below(2));
    else if (!graphs_.empty()) {
      launch_some(graphs_[std::size_t(below(int(graphs_.size())))]);
    }
    for (const Array<Holder>& h : holders_) expect_same(h);
  }

  int launches = 0;

 private:
  static constexpr int kElements = 3;

  int below(int n) { return int(random_() % unsigned(n)); }
  Array<Holder>& any() { return holders_[std::size_t(below(int(holders_.size())))]; }
  Holder make() {
    if (below(4) == 0) return {};
    ++size_;
    return {full<float>(device_, size_, float(size_))};
  }

  void capture_some() {
    struct GivenUp {};
    try {
      graphs_.push_back(capture(device_, [&] {
        for (int k = below(6); k >= 0; --k) work(1);
        if (below(6) == 0) throw GivenUp();
      }));
      for (int k = below(3); k >= 0; --k) launch_some(graphs_.back());
    } catch (GivenUp) {
    } catch (const Error& e) {  // elements that were copied in the capture are assigned others there
      EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    }
  }
  void launch_some(const Graph& graph) { launches += launched(graph); }

  /// \param depth  0: at once
  void work(int depth) {
    Array<Holder>&to = any(), &from = any();
    const int at = below(kElements), other = below(kElements);
    switch (below(depth ? 9 : 7)) {
      case 0: return to.assign(std::vector<Holder>{make(), make(), make()});
      case 1: return to.slice(at, at + 1).assign(std::vector<Holder>{make()});
      case 2: return to.copy_from(from);
      case 3: return to.slice(at, at + 1).copy_from(from.slice(other, other + 1));
      case 4: return to.slice(0, kElements, 2).copy_from(from.slice(0, kElements, 2));
      case 5: return to.fill(make());
      case 6: return to.copy_from(from.clone());
      case 7: return conditional(depth, [](const Array<int>& flag, const auto& body) { graph_if(flag, body); });
      default: return conditional(depth, [](const Array<int>& flag, const auto& body) { graph_while(flag, 3, body); });
    }
  }
  template <class F>
  void conditional(int depth, const F& make_it) {
    if (depth > 2) return;
    make_it(flags_[std::size_t(below(3))], std::function<void()>([&] {
              for (int k = below(4); k >= 0; --k) work(depth + 1);
            }));
  }

  Device device_;
  std::mt19937 random_;
  std::vector<Array<Holder>> holders_;
  std::vector<Array<int>> flags_;
  std::vector<Graph> graphs_;
  int size_ = 0;
};

TEST_P(ElementReferences, are_what_the_device_has_in_any_program) {
  int launches = 0;
  for (unsigned seed = 1; seed <= (on_reference() ? 600u : 30u); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program(device(), seed);
    for (int k = 0; k < 30; ++k) {
      program.step();
      ASSERT_FALSE(HasFatalFailure());
    }
    launches += program.launches;
  }
  EXPECT_GT(launches, on_reference() ? 1000 : 50);
}

// ---- Graphs

TEST_P(ElementReferences, of_a_graph_are_those_of_its_capture_after_each_launch) {
  const Array<float> x = full<float>(device(), 4, 4);
  for (const bool empty : {false, true}) {
    Array<Holder> from(device(), std::vector<Holder>(2, empty ? Holder{} : Holder{x})), to = from.clone();
    const Graph graph = capture(device(), [&] {
      to.copy_from(from);
      to.slice(0, 1).fill(Holder{x});
    });
    for (int k = 0; k < 3; ++k) {
      graph.launch();
      expect_same(to);
    }
    Array<float> given = full<float>(device(), 8, 8);
    to.slice(1, 2).fill(Holder{given});
    expect_contains(error_of([&] { graph.launch(); }), "hold other arrays than when it was made");
    expect_same(to);
  }
}

// ---- What is refused leaves nothing

/// The second holds the first by a third: what a copy of it into the first would bring is a circle.
struct Circle {
  Array<Node> inner, outer, middle;
  explicit Circle(const Device& device) : inner(device, {Node{{}, 2}}), outer(device, std::vector<Node>(1)) {
    middle = Array<Node>(device, {Node{inner, 3}});
    outer.assign(std::vector<Node>{Node{middle, 5}});
  }
};

TEST_P(ElementReferences, are_noted_by_no_copy_that_a_capture_has_refused) {
  Circle circle(device());
  Array<Node> a(device(), std::vector<Node>(1)), b = a.clone();
  const Graph graph = capture(device(), [&] {
    b.copy_from(a);
    circle.inner.copy_from(b);
    // It would be what the copies before bring in the next launch.
    expect_contains(error_of([&] { a.copy_from(circle.outer); }), "after that has copied them");
    expect_contains(error_of([&] { circle.inner.copy_from(circle.outer); }), "circle");
  });
  circle.middle.free();
  for (int k = 0; k < 2; ++k) graph.launch();
  EXPECT_EQ(circle.inner.at(0).children.size(), 0);
}

TEST_P(ElementReferences, are_noted_by_no_launch_that_is_refused) {
  Array<Node> leaf(device(), std::vector<Node>(4)), other = leaf.clone();
  Array<Node> a(device(), {Node{other, 1}}), c(device(), {Node{other, 1}});
  const Graph graph = capture(device(), [&] { c.copy_from(a); });
  a.fill(Node{leaf, 1});
  expect_contains(error_of([&] { graph.launch(); }), "hold other arrays than when it was made");
  a.fill(Node{other, 1});
  leaf.free();
  EXPECT_EQ(c.at(0).children.size(), 4) << "nothing of what was freed is in it";
  graph.launch();
}

TEST_P(ElementReferences, are_noted_by_no_write_that_a_capture_has_refused) {
  Array<float> x = full<float>(device(), 4, 3).requires_grad(), y = zeros<float>(device(), 4).requires_grad();
  const Array<Node> old = zeros<Node>(device(), 5);
  Array<Node> z = zeros<Node>(device(), 1);
  Array<Node> h(device(), std::vector<Node>(4, Node{old, 2}));
  Tape tape;
  tape.record([&] {
    launch(kernel("weigh",
                  [](Arr<const Node> a, Arr<const float> from, Arr<float> to) {
                    Int i = tid();
                    to[i] = a[i].weight * from[i];
                  }),
           4, h, x, y);
  });
  // The tape needs the weights.
  const Graph graph = capture(device(), [&] {
    expect_contains(error_of([&] { h.slice(0, 4, 2).assign(std::vector<Node>(2, Node{z, 7})); }), "still needs");
    expect_contains(error_of([&] { h.slice(0, 4, 2).fill(Node{z, 7}); }), "still needs");
  });
  graph.launch();
  z.free();
  for (const Node& held : h.to_vector()) EXPECT_EQ(held.children.size(), 5);
}

TEST_P(ElementReferences, are_noted_by_no_indexed_copy_from_another_device) {
  const Device other(on_reference() ? "cpu" : "reference");
  Array<float> there = full<float>(other, 8, 1);
  Array<Holder> c = holding(device(), full<float>(device(), 8, 8));
  {
    Array<Holder> packed = holding(other, there);
    const std::string said = error_of([&] { IndexedArray<Holder, 1>(c, {zeros<int>(device(), 1)}).copy_from(packed); });
    expect_contains(said, "device " + other.name());
    expect_contains(said, "device " + device().name());
  }
  there.free();
  expect_same(c);
}

TEST_P(ElementReferences, and_gradients_are_as_if_a_refused_write_had_not_been) {
  const auto scale = kernel("scale", [](Arr<const float> x, Arr<Node> a) { a[tid()].weight = x[tid()] * 2.f; });
  const auto weigh = kernel("weigh", [](Arr<const Node> a, Arr<float> out) { out[tid()] = a[tid()].weight * 3.f; });
  const Device other(on_reference() ? "cpu" : "reference");
  const std::function<void(Circle&)> refused[] = {
      [](Circle& c) {
        c.inner.assign(std::vector<Node>{Node{c.middle, 7}});
      },
      [](Circle& c) {
        c.inner.fill(Node{c.middle, 7});
      },
      [](Circle& c) { c.inner.copy_from(c.outer); },
      [&](Circle& c) { c.inner.copy_from(Circle(other).outer); },
  };
  for (const auto& write : refused) {
    SCOPED_TRACE(&write - refused);
    Circle circle(device());
    Array<Node>& written = circle.inner;
    written.requires_grad();
    Array<float> x = full<float>(device(), 1, 1).requires_grad(), out = zeros<float>(device(), 1).requires_grad();
    Tape tape;
    tape.record([&] {
      launch(scale, 1, x, written);
      EXPECT_NE(error_of([&] { write(circle); }), "");
      launch(weigh, 1, written, out);
    });
    tape.backward({{out, full<float>(device(), 1, 1)}});
    EXPECT_EQ(x.grad().at(0), 6);
  }
}

// ---- The array's own memory, and other threads

TEST_P(ElementReferences, of_copies_keep_the_array_that_its_own_elements_name) {
  Array<Node> d(device(), std::vector<Node>(1)), e = d.clone();
  {
    Array<Node> h(device(), {Node{{}, 1}, Node{{}, 2}, Node{{}, 3}});
    h.slice(0, 1).fill(Node{h, 1});
    d.copy_from(h.slice(0, 1));
    const Graph graph = capture(device(), [&] { e.copy_from(h.slice(0, 1)); });
    graph.launch();
  }
  std::vector<Array<Node>> others;  // in memory that was given back
  for (int k = 0; k < 200; ++k) others.emplace_back(device(), std::vector<Node>(3, Node{{}, 77}));
  for (const Array<Node>& copy : {d, e}) {
    ASSERT_FALSE(copy.at(0).children.is_null());
    EXPECT_EQ(copy.at(0).children.at(1).weight, 2);
  }
}

TEST_P(ElementReferences, to_arrays_that_have_changed_are_refused_on_the_way_back) {
  const auto weigh_child = kernel("weigh a child", [](Arr<const Node> nodes, Arr<const float> x, Arr<float> out) {
    Int i = tid();
    out[i] = x[i] * detach(nodes[i].children[1].weight);
  });
  for (const bool own : {false, true}) {
    SCOPED_TRACE(own);
    Array<Node> nodes(device(), {Node{{}, 3}, Node{{}, 5}}), others = nodes.clone();
    Array<Node>& children = own ? nodes : others;
    nodes.slice(0, 1).fill(Node{children, 3});
    Array<float> x = full<float>(device(), 1, 2).requires_grad(), out = zeros<float>(device(), 1).requires_grad();
    Tape tape;
    tape.record([&] { launch(weigh_child, 1, nodes, x, out); });
    const auto go_back = [&] { tape.backward({{out, full<float>(device(), 1, 1)}}); };
    go_back();
    EXPECT_EQ(x.grad().at(0), 5);
    children.slice(1, 2).fill(Node{{}, 7});
    expect_contains(error_of(go_back),
                    "in kernel \"weigh a child\": an array that elements of its arguments hold has changed");
    EXPECT_EQ(x.grad().at(0), 5);
  }
  // Where the kernel changes them, nobody would know which it has read.
  Array<Node> nodes(device(), {Node{{}, 3}, Node{{}, 5}});
  nodes.slice(0, 1).fill(Node{nodes, 3});
  Array<float> x = full<float>(device(), 1, 2).requires_grad();
  const auto change = kernel("change a weight", [](Arr<Node> to, Arr<const float> from) {
    to[0].weight = from[0] * detach(to[0].children[1].weight);
  });
  Tape tape;
  expect_contains(error_of([&] { tape.record([&] { launch(change, 1, nodes, x); }); }), "holds it too");
}

TEST_P(ElementReferences, are_read_on_the_way_back_in_a_capture_though_another_tape_needs_them) {
  const auto weigh_child = kernel("weigh children", [](Arr<const Node> nodes, Arr<const float> x, Arr<float> out) {
    Int i = tid();
    out[i] = x[i] * detach(nodes[0].children[i].weight);
  });
  Array<Node> nodes(device(), std::vector<Node>(2, Node{{}, 3}));
  nodes.slice(0, 1).fill(Node{nodes, 3});
  Array<float> x = full<float>(device(), 2, 2).requires_grad(), out = zeros<float>(device(), 2).requires_grad();
  Tape tape, other;
  tape.record([&] { launch(weigh_child, 2, nodes, x, out); });
  other.record([&] { other.record_func([] {}, nodes); });
  const Array<float> ones = full<float>(device(), 2, 1);
  const Graph graph = capture(device(), [&] { tape.backward({{out, ones}}); });
  for (int k = 0; k < 2; ++k) graph.launch();
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{6, 6}));  // each launch adds
}

TEST_P(ElementReferences, are_not_fewer_where_another_thread_replaces_what_a_graph_copies) {
  Array<Holder> from = holding(device(), full<float>(device(), 3, 3));
  std::vector<Array<Holder>> to;
  for (int k = 0; k < (on_reference() ? 200 : 50); ++k) to.push_back(holding(device(), {}));
  const Graph graph = capture(device(), [&] {
    for (Array<Holder>& h : to) h.copy_from(from);
  });
  std::atomic<bool> ended = false, fills_may_begin = false;
  std::thread fills([&] {
    while (!fills_may_begin) std::this_thread::yield();
    for (int k = 0; !ended; ++k) {
      const int n = 1 + k % 40;
      from.fill(Holder{full<float>(device(), n, float(n))});
      if (!on_reference()) std::this_thread::yield();
    }
  });
  bool any = launched(graph);
  fills_may_begin = true;
  for (int round = 0; round < (on_reference() ? 60 : 5); ++round) {
    any |= launched(graph);
    for (const Array<Holder>& h : to) {
      expect_same(h);
      if (HasFatalFailure()) break;
    }
  }
  ended = true;
  fills.join();
  EXPECT_TRUE(any);
}

/// Whoever replaces all elements or one, or copies them: in any order, by several threads.
TEST_P(ElementReferences, are_not_fewer_where_threads_replace_what_others_copy) {
  constexpr int kElements = 200;
  Array<Holder> shared(device(), std::vector<Holder>(kElements));
  std::vector<Array<Holder>> copies;
  for (int k = 0; k < 3; ++k) copies.emplace_back(device(), std::vector<Holder>(kElements));
  const int rounds = on_reference() ? 150 : 30;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < rounds; ++k) {
        const int n = 1 + (3 * k + t) % 50, at = (7 * k + t) % kElements;
        const Holder next{full<float>(device(), n, float(n))};
        if (t < 2)
          shared.assign(std::vector<Holder>(kElements, next));
        else
          shared.slice(at, at + 1).fill(next);
      }
    });
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < rounds; ++k)
        if (t == 2 || k % 2)
          copies[std::size_t(t)].copy_from(shared);
        else
          copies[std::size_t(t)].slice(0, kElements, 2).copy_from(shared.slice(0, kElements, 2));
    });
  for (std::thread& t : threads) t.join();
  expect_same(shared);
  for (const Array<Holder>& copy : copies) expect_same(copy);
  // One more write of all elements, and nothing of all that is kept.
  const std::weak_ptr<detail::Storage> last = shared.at(0).values.storage();
  shared.zero();
  for (Array<Holder>& copy : copies) copy.zero();
  EXPECT_TRUE(last.expired());
}

TEST_P(ElementReferences, are_never_fewer_for_those_who_copy_while_a_graph_is_launched) {
  Array<Holder> a = holding(device(), full<float>(device(), 16, 16)), c = holding(device(), {});
  std::vector<Array<Holder>> between;
  for (int k = 0; k < 200; ++k) between.push_back(holding(device(), {}));
  const Graph graph = capture(device(), [&] {
    c.copy_from(a);
    for (Array<Holder>& h : between) h.copy_from(c);
    c.copy_from(a);
  });
  graph.launch();
  std::vector<Array<Holder>> copies;
  for (int k = 0; k < 1000; ++k) copies.push_back(holding(device(), {}));
  std::atomic<bool> ended = false;
  std::thread launches([&] {
    for (int k = 0; k < 30; ++k) graph.launch();
    ended = true;
  });
  std::size_t made = 0;
  for (; made < copies.size() && (made < 10 || !ended); ++made) {
    copies[made].copy_from(c);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  launches.join();
  for (std::size_t k = 0; k < made; ++k) {
    expect_same(copies[k]);
    ASSERT_FALSE(copies[k].at(0).values.is_null());
  }
}

}  // namespace
