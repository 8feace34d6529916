// The devices of a test run: opened at their first use, kept for all tests.
#include "devices.h"

#include <map>

#include "../../backends/vulkan/vulkan.h"
#include "../common/software_vulkan.h"
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
  if (kind == "vulkan") return software_vulkan();
  if (kind == "native") return "cpu";
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
#ifdef _WIN32
  if (GetParam() == "native" && known->name() != "cpu") GTEST_SKIP() << "there is no LLVM here";
#endif
  ASSERT_TRUE(GetParam() != "native" || known->name() == "cpu")
      << "\"cpu\" is " << known->name() << ": a line on the error output says why";
  device_ = known;
}

std::string& program_path() {
  static std::string path;
  return path;
}

void close_devices() { open_devices().clear(); }

}  // namespace weft::test
