// The smallest program: y = a x + y for a million elements, compared with the host.
#include <weft/weft.h>

#include <cstdio>
#include <vector>

using namespace weft;

const auto saxpy = kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) {
  Int i = tid();
  y[i] = a * x[i] + y[i];
});

int main() try {
  const Device device = Device::best();  // a GPU if there is one
  std::fprintf(stderr, "on %s\n", device.adapter().c_str());

  std::vector<float> x(1'000'000), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = float(i % 1000);
    y[i] = float(i % 7);
  }
  const Array<float> device_x(device, x), device_y(device, y);  // copies of the host's values
  launch(saxpy, device_x.size(), device_x, device_y, 0.5f);     // a thread for each element

  const std::vector<float> result = device_y.to_vector();  // waits for the launch
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += result[i] != 0.5f * x[i] + y[i];
  std::printf("%zu elements, %zu wrong, the last is %g\n", result.size(), wrong, result.back());
  return wrong ? 1 : 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
