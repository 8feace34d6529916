// Suite cpu: what launches cost beside the work of their kernels, and what the first use of a kernel costs.
#include <fmt/format.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include "../four_arrays.h"
#include "../harness.h"
#include "../large_kernel.h"
#include "contest_on_host.h"

namespace weft::bench {

namespace {

constexpr double kInline = 1e-6, kOnSleepers = 15e-6, kCached = 0.5e-3;

/// Kernels of 100 and 1000 operations, or a few more.
constexpr KernelSize kHundred{2, 2, 4}, kThousand{15, 4, 11};

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Launches a kernel that is worth no other thread, and waits.
void launch_inline(Run& run) {
  if (!needs_native(run)) return;
  constexpr int kLaunches = 1000;
  FourArrays work(run.device());
  Stream stream = run.device().stream();
  const Timing all = cost(
      "launch and wait",
      [&] {
        const auto start = Clock::now();
        for (int k = 0; k < kLaunches; ++k) {
          work.launch_one();
          stream.synchronize();
        }
        return since(start);
      },
      run.rounds());
  work.check();
  run.budget({all.seconds / kLaunches, all.spread}, kInline, "us", true);
}

/// Launches a kernel that has next to nothing to do, while earlier launches of it promise much: so it is shared among
/// threads, which sleep.
void launch_on_sleepers(Run& run) {
  if (!needs_native(run)) return;
  if (run.threads() == 1) return run.leave_out("one thread has none to wake");
  constexpr int n = 4096, kLong = 4000, kSamples = 201;
  const auto k = kernel("steps", [](Arr<float> x, Int steps) {
    Int i = tid();
    Float v = x[i];
    for ([[maybe_unused]] auto step : range(steps)) v = v * 0.999f + 1.0f;
    x[i] = v;
  });
  const Array<float> x = zeros<float>(run.device(), n);
  Stream stream = run.device().stream();
  std::vector<double> samples;
  for (int sample = 0; sample < kSamples; ++sample) {
    for (int again = 0; again < 6; ++again) launch(k, n, x, kLong);  // what a launch promises rises slowly
    stream.synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // far longer than threads look for work
    const auto start = Clock::now();
    launch(k, n, x, 1);
    stream.synchronize();
    samples.push_back(since(start));
  }
  if (!(x.at(n - 1) > 900)) throw std::runtime_error("the kernel gives wrong results");
  run.budget(summarise(std::move(samples)), kOnSleepers, "us", true);
}

/// Times a first use from trace to result. LLVM has been loaded, and no cache has the kernel.
void first_use(Run& run, KernelSize size, std::size_t operations, double budget) {
  if (!needs_native(run)) return;
  const ir::Module module = traced_large_kernel(size, operations);
  constexpr int n = 64, kMany = 256;
  const Array<float> x = full<float>(run.device(), kMany, 0.5f), y = zeros<float>(run.device(), kMany);
  std::mt19937 random{std::random_device()()};
  const auto once = [&] {
    const float salt = std::uniform_real_distribution<float>(1, 2)(random);
    const auto start = Clock::now();
    launch(large_kernel(size, salt), n, x, y, 0.75f, 2);
    (void)y.at(0);
    return since(start);
  };
  once();
  std::vector<double> samples;
  for (int k = 0; k < 11; ++k) samples.push_back(once());
  run.budget(summarise(std::move(samples)), budget, "ms", true);
  run.note(fmt::format("{} operations", operations_of(module)));
}

/// Times what the device does for a kernel that the cache on disk has: its key, reading the entry, its checks, loading
/// the code.
void from_cache(Run& run, KernelSize size, std::size_t operations) {
  if (!needs_native(run)) return;
  const ir::Module module = traced_large_kernel(size, operations);
  const detail::Hash128 hash = ir::hash(module);
  backend::Device& native = run.device().native();
  const auto loaded = [&] { return native.stats().loaded; };
  (void)native.compile(module, hash);
  const auto before = loaded();
  const Timing t = cost(
      "from cache",
      [&] {
        const auto start = Clock::now();
        const auto program = native.compile(module, hash);
        return since(start);
      },
      run.rounds());
  if (loaded() == before) return run.leave_out("there is no cache on disk");
  run.budget(t, kCached, "ms", true);
}

}  // namespace

void add_cpu_launch(Harness& harness) {
  harness.add("cpu", "launch a tiny kernel and wait, inline", launch_inline);
  harness.add("cpu", "launch a tiny kernel and wait, on sleeping threads", launch_on_sleepers);
  harness.add("cpu", "first use of 100 operations", [](Run& run) { first_use(run, kHundred, 100, 15e-3); });
  harness.add("cpu", "first use of 1000 operations", [](Run& run) { first_use(run, kThousand, 1000, 60e-3); });
  harness.add("cpu", "100 operations from the cache", [](Run& run) { from_cache(run, kHundred, 100); });
  harness.add("cpu", "1000 operations from the cache", [](Run& run) { from_cache(run, kThousand, 1000); });
}

}  // namespace weft::bench
