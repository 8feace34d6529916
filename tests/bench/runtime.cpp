// Suite runtime: launches against plain Vulkan, graphs, allocation.
#include <fmt/format.h>

#include <cstring>

#include "../../frontend/support/platform.h"
#include "../../runtime/graph.h"
#include "contest.h"
#include "elsewhere.h"
#include "harness.h"
#include "raw_vulkan.h"

namespace weft::bench {

namespace {

using platform::thread_seconds;

constexpr int kLaunches = 512, kBatch = 128;

struct FourArrays {
  explicit FourArrays(const Device& device)
      : a(full<float>(device, 32, 1)),
        b(full<float>(device, 32, 2)),
        c(full<float>(device, 32, 3)),
        out(zeros<float>(device, 32)) {}
  void launch_one() const { launch(k, 32, a, b, c, out, 0.5f, 2); }
  void check() const {
    if (out.to_vector() != std::vector<float>(32, 7.f)) throw std::runtime_error("the kernel gives wrong results");
  }
  Array<float> a, b, c, out;
  Kernel<Arr<const float>, Arr<const float>, Arr<const float>, Arr<float>, Float, Int> k =
      kernel("four arrays, two scalars",
             [](Arr<const float> a, Arr<const float> b, Arr<const float> c, Arr<float> out, Float s, Int m) {
               Int i = tid();
               out[i] = a[i] + b[i] + c[i] + s * Float(m);
             });
};

// The host's part alone, see suite launch: the stream is idle when the clock starts, and the clock stops before the
// wait. Both sides record a barrier before each dispatch and submit every 128.
void launch_by_hand(Run& run) {
  const FourArrays work(run.device());
  work.launch_one();
  work.check();
  const std::string text =
      glsl_kernel("local_size_x = 256",
                  "layout(push_constant) uniform A { uint n; float s; ConstFloats a, b, c; Floats o; "
                  "int m; };\n"
                  "void main() { uint i = gl_GlobalInvocationID.x; if (i < n) o.v[i] = a.v[i] + "
                  "b.v[i] + c.v[i] + s * float(m); }\n");
  struct Push {
    std::uint32_t n = 32;
    float s = 0.5f;
    std::uint64_t a, b, c, out;
    std::int32_t m = 2, padding = 0;
  } push{.a = work.a.address(), .b = work.b.address(), .c = work.c.address(), .out = work.out.address()};
  std::vector<std::byte> bytes(sizeof push);
  std::memcpy(bytes.data(), &push, sizeof push);
  RawDispatches raw(run.device().native(), text, sizeof push);
  Array<float> out = work.out;
  out.zero();
  run.device().synchronize();
  raw.run(bytes, 1, 1);
  raw.wait();
  work.check();
  Stream stream = run.device().stream();
  // Each side alone, in turns: the timer of the harness counts all of what it calls.
  std::vector<double> ours, theirs;
  for (int round = 0; round < 5 * run.rounds() + 3; ++round) {
    stream.synchronize();
    double start = thread_seconds();
    for (int k = 0; k < kLaunches; ++k) work.launch_one();
    if (round > 2) ours.push_back((thread_seconds() - start) / kLaunches);
    stream.synchronize();
    start = thread_seconds();
    raw.run(bytes, kLaunches, kBatch);
    if (round > 2) theirs.push_back((thread_seconds() - start) / kLaunches);
    raw.wait();
  }
  run.compare(summarise(ours), summarise(theirs), "Vulkan by hand", "us");
}

// Warp's CPU device runs the kernel in the launch, of 32 additions; weft's part is the host's alone.
void launch_beside_warp(Run& run) {
  const auto warp = ask_warp("launch.py", fmt::format("{} {}", run.rounds(), kLaunches), 2);
  if (!warp) return run.leave_out(kNoWarp);
  if ((*warp)[1] != 7) throw std::runtime_error("warp-lang's kernel gives wrong results");
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
        return thread_seconds() - start;
      },
      run.rounds());
  run.compare({one.seconds / kLaunches, one.spread}, {(*warp)[0], 0}, "warp-lang, CPU", "us");
}

void graph_node(Run& run) {
  const FourArrays work(run.device());
  const Graph graph = capture(run.device(), [&] {
    for (int k = 0; k < 1000; ++k) work.launch_one();
  });
  graph.launch();
  work.check();
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
  run.budget({one.seconds / 1000, one.spread}, 0.1e-6, "us", true);
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
  run.compare(times[0], times[1], "one by one", "ms");
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
  harness.add("runtime", "launch with 4 arrays and 2 scalars, warp", launch_beside_warp);
  harness.add("runtime", "node of a graph of 1,000 launches", graph_node);
  harness.add("runtime", "10,000 dependent launches by a graph", dependent_launches);
  harness.add("runtime", "allocation and free of 1 MB", allocation);
}

}  // namespace weft::bench
