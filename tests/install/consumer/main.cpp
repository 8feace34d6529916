// A user's program: one kernel on the reference device, from an installed copy.
#include <weft/runtime/array.h>
#include <weft/vulkan.h>
#include <weft/weft.h>

#include <cstdio>
#include <vector>

using namespace weft;

int main() {
  auto axpy = kernel("axpy", [](Arr<float> y, Arr<const float> x, Float a) {
    Int i = tid();
    y[i] = a * x[i] + y[i];
  });
  Device device("reference");
  Array<float> x(device, std::vector<float>{1, 2, 3, 4});
  Array<float> y(device, std::vector<float>{1, 1, 1, 1});
  launch(axpy, 4, y, x, 2.0f);
  if (y.to_vector() != std::vector<float>{3, 5, 7, 9}) {
    std::puts("wrong result");
    return 1;
  }
  // The interface for renderers needs nothing that is not installed.
  bool refused = false;
  try {
    export_memory(x);
  } catch (const Error&) {
    refused = true;
  }
  if (!refused) {
    std::puts("the reference device shares memory");
    return 1;
  }
  std::puts("right result");
}
