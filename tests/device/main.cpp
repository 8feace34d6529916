// Runs the device tests under the validation layers; any message of theirs fails the run.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "../../backends/vulkan/vulkan.h"
#include "../../frontend/support/platform.h"
#include "device_test.h"

namespace weft::test {

namespace {
// Devices stay open for the whole run: opening one costs more than a test.
std::map<std::string, std::shared_ptr<Device>>& open_devices() {
  static std::map<std::string, std::shared_ptr<Device>> devices;
  return devices;
}

std::string name_of(const std::string& kind) {
  if (kind == "reference") return "reference";
  if (kind == "vulkan") return "cpu";
  for (const backend::DeviceInfo& info : backend::list_vulkan_devices())
    if (!info.software) return info.name;
  return {};
}
}  // namespace

void DeviceTest::SetUp() {
  const std::string name = name_of(GetParam());
  if (name.empty()) GTEST_SKIP() << "there is no GPU here";
  std::shared_ptr<Device>& known = open_devices()[name];
  if (!known) known = std::make_shared<Device>(name);
  device_ = known;
}

std::string& program_path() {
  static std::string path;
  return path;
}

void close_devices() { open_devices().clear(); }

}  // namespace weft::test

// What the test of a machine without a Vulkan loader runs as a process of its own.
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

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--report-devices") return report_devices();
  weft::test::program_path() = argv[0];
  testing::InitGoogleTest(&argc, argv);
  if (!weft::platform::environment("WEFT_VALIDATION")) weft::platform::set_environment("WEFT_VALIDATION", "1");
  int failed = RUN_ALL_TESTS();
  weft::test::close_devices();
  if (std::uint64_t messages = weft::backend::vulkan_message_count()) {
    std::fprintf(stderr, "%llu messages of the validation layers\n", static_cast<unsigned long long>(messages));
    failed = 1;
  }
  return failed;
}
