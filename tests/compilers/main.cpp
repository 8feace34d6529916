// Runs the tests on a device whose driver compiles and does not run: see run.sh and stand_in/hardware_layer.cpp.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cstdio>

#include "../../backends/backend.h"
#include "../../frontend/support/platform.h"

namespace {

// Whether there is such a device: 0 if there is, 3 if the layer is missing, otherwise the driver's own exit status.
int probe() {
  if (weft::Device::list().empty()) return 1;
  if (!weft::platform::environment("WEFT_HARDWARE_LAYER")) return 3;
  try {
    const weft::Device device("vulkan:0");
    std::printf("%s, subgroups of %u\n", device.adapter().c_str(), device.native().info().subgroup_size);
    return device.adapter().find("Null hardware") == std::string::npos;
  } catch (const weft::Error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Without the cache every kernel is compiled each time.
  weft::platform::set_environment("WEFT_CACHE", "0");
  if (argc == 2 && std::string(argv[1]) == "--probe") return probe();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
