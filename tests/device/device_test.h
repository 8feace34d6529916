// One test body, every device: the fixture, and what a device is in a test run.
#pragma once
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <string>

namespace weft::test {

/// A test that runs once per device. "reference", "native" ("cpu", which is to be no other device's name here) and
/// "vulkan" (the software device) are required: without one of them the test fails. "gpu" is skipped, and counted as
/// skipped, if there is none, and so is "native" on Windows.
class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  /// The device of this run.
  const Device& device() const { return *device_; }
  bool on_reference() const { return GetParam() == "reference"; }
  /// Whether it runs launches on the host, each before the call returns: no Vulkan, and nothing to wait for.
  bool on_host() const { return on_reference() || GetParam() == "native"; }
  bool on_gpu() const { return GetParam() == "gpu"; }

 private:
  std::shared_ptr<Device> device_;
};

/// The path of this program, which a test may run again in another environment.
std::string& program_path();

/// The message of the weft::Error that `f` throws; fails the test when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no weft::Error was thrown";
  return {};
}

/// The interpreter that rounds products and sums as the device does: see Device::fuses_float32().
inline Device interpreter_like(const Device& device) {
  if (device.fuses_float32()) return Device(device.fuses_float64() ? "reference" : "reference:split64");
  return Device(device.fuses_float64() ? "reference:split32" : "reference:split");
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace weft::test

/// DEVICE_TEST(Suite) once per file, then TEST_P(Suite, behaviour).
#define DEVICE_TEST(Suite)                          \
  class Suite : public ::weft::test::DeviceTest {}; \
  ON_EVERY_DEVICE(Suite)
/// Instantiates a class of the file's own, which has DeviceTest as its base, for every device.
#define ON_EVERY_DEVICE(Suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(On, Suite, ::testing::Values("reference", "native", "vulkan", "gpu"), \
                           [](const auto& info) { return std::string(info.param); })
