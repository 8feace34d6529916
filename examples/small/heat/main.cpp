// A graph: captures the steps of a simulation once and launches them again and again, at far less cost for the host
// than single launches. Heat spreads along a rod that is kept warm at one end.
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <cmath>
#include <cstdio>

using namespace weft;

constexpr int kCells = 33;

const auto spread = kernel("spread", [](Arr<const float> from, Arr<float> to, Float rate) {
  Int i = tid();
  If (i == 0 || i == kCells - 1) {
    to[i] = from[i];
  }
  Else { to[i] = from[i] + rate * (from[i - 1] - 2 * from[i] + from[i + 1]); }
});

const auto set_end = kernel("set the end", [](Arr<float> x, Float value) { x[0] = value; });

int main() try {
  const Device device = Device::best();
  const Array<float> a = zeros<float>(device, kCells), b = zeros<float>(device, kCells);
  GraphNode end;
  // Two steps are captured, so that the second one writes what the first one reads: no handles are swapped.
  Graph two_steps = capture(device, [&] {
    launch(set_end, 1, a, 100.f);
    end = captured_launch();
    launch(spread, kCells, a, b, 0.4f);
    launch(spread, kCells, b, a, 0.4f);
  });
  const auto run = [&] {
    for (int k = 0; k < 1500; ++k) two_steps.launch();
    std::printf("%.1f in the middle, %.1f at a quarter\n", a.at(kCells / 2), a.at(kCells / 4));
  };
  run();                                 // 100 at one end, 0 at the other
  two_steps.set(end, set_end, a, 60.f);  // another argument, without a new capture
  run();
  return std::abs(a.at(kCells / 2) - 30) < 0.1f ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
