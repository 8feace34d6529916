// Suite codegen, ladders: many early returns in a row against as many guarded stores.
#include <stdexcept>

#include "harness.h"

namespace weft::bench {

namespace {

constexpr int kRungs = 80;
constexpr std::int64_t kThreads = 1 << 20;

/// Each thread stores on one rung, or after the last one.
int rung(std::int64_t thread) { return int(thread * 7 % (kRungs + 3)); }

void early_returns(Run& run) {
  const Device& device = run.device();
  std::vector<int> rungs;
  for (std::int64_t i = 0; i < kThreads; ++i) rungs.push_back(rung(i));
  const Array<int> at(device, rungs);
  Array<int> out = Array<int>::empty(device, kThreads);

  auto returns = kernel("early_returns", [](Arr<const int> at, Arr<int> out) {
    Int i = tid(), mine = at[i];
    for (int k = 0; k < kRungs; ++k) {
      If (mine == k) {
        out[i] = k + 1;
        Return();
      }
    }
    out[i] = -1;
  });
  auto stores = kernel("guarded_stores", [](Arr<const int> at, Arr<int> out) {
    Int i = tid(), mine = at[i];
    for (int k = 0; k < kRungs; ++k) {
      If (mine == k) {
        out[i] = k + 1;
      }
    }
    If (mine >= kRungs) {
      out[i] = -1;
    }
  });

  const auto timed = [&](const auto& k) {
    return [&] {
      launch(k, kThreads, at, out);
      device.synchronize();
    };
  };
  for (const auto& work : {std::function<void()>(timed(returns)), std::function<void()>(timed(stores))}) {
    out.fill(0);
    work();
    const std::vector<int> values = out.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != (rungs[i] < kRungs ? rungs[i] + 1 : -1)) throw std::runtime_error("a ladder gives wrong values");
  }
  const auto timings = interleave({timed(returns), timed(stores)}, run.rounds());
  run.compare(timings[0], {"80 guarded stores", timings[1]}, "ms");
}

}  // namespace

void add_ladders(Harness& harness) { harness.add("codegen", "80 early returns 1M", early_returns); }

}  // namespace weft::bench
