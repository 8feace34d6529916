// Runs the device tests under the validation layers; any message of theirs fails the run.
#include <gtest/gtest.h>

#include <cstdio>

#include "../../backends/vulkan/vulkan.h"
#include "../../frontend/support/platform.h"
#include "child_program.h"
#include "device_test.h"
#include "devices.h"

// Opens devices, in a process that the test of a machine without a Vulkan loader starts.
int report_devices() {
  try {
    weft::Device device("vulkan:0");
    std::printf("opened %s\n", device.name().c_str());
  } catch (const weft::Error& e) {
    std::printf("%s\n", e.what());
  }
  weft::Device reference("reference");
  std::printf("%s\n", weft::zeros<float>(reference, 3).at(2) == 0 ? "reference works" : "reference is broken");
  return 0;
}

// Makes the loader look for layers in the tests' folder, in addition to its usual places.
void add_layers() {
#ifdef WEFT_TEST_LAYERS
  using weft::platform::environment;
  const char* const variable = environment("VK_LAYER_PATH") ? "VK_LAYER_PATH" : "VK_ADD_LAYER_PATH";
  const std::string before = environment(variable).value_or("");
  if (before.find(WEFT_TEST_LAYERS) == std::string::npos)
    weft::platform::set_environment(variable,
                                    (before.empty() ? WEFT_TEST_LAYERS : before + ":" WEFT_TEST_LAYERS).c_str());
#endif
}

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--report-devices") return report_devices();
  if (int code = 0; weft::test::run_child_program(argc, argv, code)) return code;
  weft::test::program_path() = argv[0];
  testing::InitGoogleTest(&argc, argv);
  if (!weft::platform::environment("WEFT_VALIDATION")) weft::platform::set_environment("WEFT_VALIDATION", "1");
  add_layers();
  int failed = RUN_ALL_TESTS();
  weft::test::close_devices();
  if (std::uint64_t messages = weft::backend::vulkan_message_count()) {
    std::fprintf(stderr, "%llu messages of the validation layers\n", static_cast<unsigned long long>(messages));
    failed = 1;
  }
  return failed;
}
