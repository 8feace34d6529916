// Suite runtime: launches against plain Vulkan, graphs, allocation.
#include <fmt/format.h>

#include <cstring>

#include "../../backends/vulkan/device.h"
#include "../../frontend/support/platform.h"
#include "../../runtime/graph.h"
#include "contest.h"
#include "four_arrays.h"
#include "harness.h"
#include "peers/elsewhere.h"
#include "peers/raw_vulkan.h"

namespace weft::bench {

namespace {

using platform::thread_seconds;

constexpr int kLaunches = 512, kBatch = 128;
constexpr int kNodes = 1000;  // of a graph

// One side: the work of the host, and what must end before the clock starts again.
struct HostWork {
  std::function<void()> work, settle;
};
// Times the processor time of this thread for each side, in turns, divided by `parts`. The harness's own timer does not
// serve: it counts all that its function does.
std::vector<Timing> in_turns(const Run& run, const std::vector<HostWork>& sides, int parts) {
  constexpr int kWarmUps = 3;
  std::vector<std::vector<double>> samples(sides.size());
  take_turns(sides.size(), 5 * run.rounds() + kWarmUps, [&](std::size_t k, int round) {
    // Each side runs once before, untimed, because the other side has left its data in the caches, and its threads look
    // for work for a while.
    sides[k].settle();
    sides[k].work();
    sides[k].settle();
    const double start = thread_seconds();
    sides[k].work();
    if (round >= kWarmUps) samples[k].push_back((thread_seconds() - start) / parts);
    sides[k].settle();
  });
  std::vector<Timing> timings;
  for (auto& s : samples) timings.push_back(summarise(std::move(s)));
  return timings;
}

// The kernel of FourArrays as dispatches of plain Vulkan.
struct ByHand {
  explicit ByHand(const FourArrays& work) : raw(work.out.device().native(), text(), sizeof(Push)), bytes(sizeof(Push)) {
    const Push push{.a = work.a.address(), .b = work.b.address(), .c = work.c.address(), .out = work.out.address()};
    std::memcpy(bytes.data(), &push, sizeof push);
  }
  struct Push {
    std::uint32_t n = 32;
    float s = 0.5f;
    std::uint64_t a, b, c, out;
    std::int32_t m = 2, padding = 0;
  };
  static std::string text() {
    return glsl_kernel("local_size_x = 256",
                       "layout(push_constant) uniform A { uint n; float s; ConstFloats a, b, c; Floats o; "
                       "int m; };\n"
                       "void main() { uint i = gl_GlobalInvocationID.x; if (i < n) o.v[i] = a.v[i] + "
                       "b.v[i] + c.v[i] + s * float(m); }\n");
  }
  RawDispatches raw;
  std::vector<std::byte> bytes;
};

// Checks the results of what `once` gives the device, from zeros.
void check(const FourArrays& work, ByHand& hand, const std::function<void()>& once) {
  Array<float> out = work.out;
  out.zero();
  out.device().synchronize();
  once();
  hand.raw.wait();
  work.check();
}

// Times the host's part alone, see suite launch: the stream is idle when the clock starts, and the clock stops before
// the wait. Both sides record a barrier before each dispatch. Plain Vulkan submits every 128 dispatches, on this
// thread; weft's batches begin small, and on GPUs another thread submits most of them.
void launch_by_hand(Run& run) {
  const FourArrays work(run.device());
  work.launch_one();
  work.check();
  ByHand hand(work);
  check(work, hand, [&] { hand.raw.run(hand.bytes, 1, 1); });
  Stream stream = run.device().stream();
  const auto timings = in_turns(run,
                                {{[&] {
                                    for (int k = 0; k < kLaunches; ++k) work.launch_one();
                                    stream.submit();
                                  },
                                  [&] { stream.synchronize(); }},
                                 {[&] { hand.raw.run(hand.bytes, kLaunches, kBatch); }, [&] { hand.raw.wait(); }}},
                                kLaunches);
  run.compare(timings[0], {"Vulkan by hand", timings[1]}, "us");
}

/// Keeps the device's thread for submissions idle during its life. No stream of the device may be in use.
class OneThread {
 public:
  explicit OneThread(const Device& device) {
    auto* const vulkan = dynamic_cast<backend::vulkan::VulkanDevice*>(&device.native());
    if (!vulkan || !vulkan->submitter().uses_thread()) return;
    device.synchronize();
    submitter_ = &vulkan->submitter();
    submitter_->use_thread(false);
  }
  OneThread(const OneThread&) = delete;
  ~OneThread() {
    if (submitter_) submitter_->use_thread(true);
  }
  /// Whether this makes a difference on the device.
  bool changes() const { return submitter_ != nullptr; }

 private:
  backend::vulkan::Submitter* submitter_ = nullptr;
};

// Times launches without weft's thread for submissions, which plain Vulkan does not have: the whole cost on one thread.
void launch_on_one_thread(Run& run) {
  const OneThread one_thread(run.device());
  if (!one_thread.changes()) return run.leave_out("this device's launches use no other thread");
  launch_by_hand(run);
}

// Times launches against Warp's CPU device, which runs the kernel, of 32 additions, in the launch; weft's time is the
// host's part alone.
void launch_beside_warp(Run& run) {
  const auto warp = ask_python("launch.py", fmt::format("{} {}", run.rounds(), kLaunches), 2);
  if (warp && (*warp)[1] != 7) throw std::runtime_error("warp-lang's kernel gives wrong results");
  const FourArrays work(run.device());
  work.launch_one();
  work.check();
  Stream stream = run.device().stream();
  const Timing one = cost(
      "launch",
      [&] {
        stream.synchronize();
        const double start = thread_seconds();
        for (int k = 0; k < kLaunches; ++k) work.launch_one();
        stream.submit();
        return thread_seconds() - start;
      },
      run.rounds());
  run.compare({one.seconds / kLaunches, one.spread}, warp_reference(warp, {0}), "us");
}

Graph graph_of_launches(const FourArrays& work) {
  const Graph graph = capture(work.out.device(), [&] {
    for (int k = 0; k < kNodes; ++k) work.launch_one();
  });
  graph.launch();
  work.check();
  return graph;
}

void graph_node(Run& run) {
  const FourArrays work(run.device());
  const Graph graph = graph_of_launches(work);
  Stream stream = run.device().stream();
  const Timing one = cost(
      "graph",
      [&] {
        stream.synchronize();
        const double start = thread_seconds();
        graph.launch();
        return thread_seconds() - start;
      },
      run.rounds());
  run.budget({one.seconds / kNodes, one.spread}, 0.1e-6, "us", true);
}

// Times a graph against a command buffer of the same dispatches and barriers, recorded once, submitted for each launch.
void graph_node_by_hand(Run& run) {
  const FourArrays work(run.device());
  const Graph graph = graph_of_launches(work);
  ByHand hand(work);
  hand.raw.record(hand.bytes, kNodes);
  check(work, hand, [&] { hand.raw.replay(); });
  Stream stream = run.device().stream();
  const auto timings = in_turns(run,
                                {{[&] { graph.launch(); }, [&] { stream.synchronize(); }},
                                 {[&] { hand.raw.replay(); }, [&] { hand.raw.wait(); }}},
                                kNodes);
  run.compare(timings[0], {"Vulkan by hand", timings[1]}, "us");
}

// Times two graphs: in one, one launch of each `every` is given another scalar before the graph is launched; the other
// stays as it was captured. Each launch adds its scalar, so that a lost one is seen.
void graph_with_changes(Run& run, int every) {
  const Array<int> x = zeros<int>(run.device(), 32);
  const auto add = kernel("add", [](Arr<int> x, Int s) { x[tid()] += s; });
  std::vector<GraphNode> changed;
  const auto of_launches = [&](bool keep) {
    return capture(run.device(), [&] {
      for (int k = 0; k < kNodes; ++k) {
        launch(add, 32, x, 1);
        if (keep && k % every == every / 2) changed.push_back(captured_launch());
      }
    });
  };
  const Graph graph = of_launches(true), same = of_launches(false);
  int scalar = 1;
  std::uint32_t sum = 0;  // wraps, as additions of the kernel do
  const auto change_and_launch = [&] {
    scalar = scalar % 7 + 1;
    for (const GraphNode& node : changed) graph.set(node, add, x, scalar);
    graph.launch();
    sum += std::uint32_t(kNodes - int(changed.size()) + scalar * int(changed.size()));
  };
  const auto launch_alone = [&] {
    same.launch();
    sum += kNodes;
  };
  Stream stream = run.device().stream();
  const auto settle = [&] { stream.synchronize(); };
  const auto host = in_turns(run, {{change_and_launch, settle}, {launch_alone, settle}}, 1);
  const auto whole = interleave({[&] {
                                   change_and_launch();
                                   settle();
                                 },
                                 [&] {
                                   launch_alone();
                                   settle();
                                 }},
                                run.rounds());
  if (x.to_vector() != std::vector<int>(32, int(sum))) throw std::runtime_error("launches or changes were lost");
  run.compare(host[0], {"no change", host[1]}, "us");
  run.note(fmt::format("until all has run: {:.4g} ms with changes, {:.4g} ms without", whole[0].seconds * 1e3,
                       whole[1].seconds * 1e3));
}

void dependent_launches(Run& run) {
  constexpr int kTiny = 10000;
  Array<int> x = zeros<int>(run.device(), 32);
  const auto k = kernel("add one", [](Arr<int> x) { x[tid()] += 1; });
  int times_all = 0;
  const auto one_by_one = [&] {
    for (int i = 0; i < kTiny; ++i) launch(k, 32, x);
    x.wait();
    ++times_all;
  };
  const Graph graph = capture(run.device(), [&] {
    for (int i = 0; i < kTiny; ++i) launch(k, 32, x);
  });
  const std::vector<Timing> times = interleave({[&] {
                                                  graph.launch();
                                                  x.wait();
                                                  ++times_all;
                                                },
                                                one_by_one},
                                               run.rounds());
  if (x.at(0) != kTiny * times_all) throw std::runtime_error("launches were lost");
  run.compare(times[0], {"one by one", times[1]}, "ms");
}

void allocation(Run& run) {
  const Timing all = cost(
      "allocation",
      [&] {
        const double start = thread_seconds();
        for (int k = 0; k < 1000; ++k) empty<float>(run.device(), 1 << 18);
        return thread_seconds() - start;
      },
      run.rounds());
  run.budget({all.seconds / 1000, all.spread}, 1e-6, "us", true);
}

}  // namespace

void add_runtime(Harness& harness) {
  harness.add("runtime", "launch with 4 arrays and 2 scalars", launch_by_hand);
  harness.add("runtime", "launch with 4 arrays and 2 scalars, one thread", launch_on_one_thread);
  harness.add("runtime", "launch with 4 arrays and 2 scalars, warp", launch_beside_warp);
  harness.add("runtime", "node of a graph of 1,000 launches", graph_node);
  harness.add("runtime", "node of a graph of 1,000 launches, by hand", graph_node_by_hand);
  harness.add("runtime", "graph of 1,000 launches, one set", [](Run& run) { graph_with_changes(run, kNodes); });
  harness.add("runtime", "graph of 1,000 launches, all set", [](Run& run) { graph_with_changes(run, 1); });
  harness.add("runtime", "10,000 dependent launches by a graph", dependent_launches);
  harness.add("runtime", "allocation and free of 1 MB", allocation);
}

}  // namespace weft::bench
