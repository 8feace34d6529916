// The release of dropped objects: it happens at the latest when somebody waits for everything.
#include <gtest/gtest.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/vulkan.h"
#include "../../../runtime/core/state.h"

namespace weft {
namespace {

class Releases : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::list_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan adapter";
    device_.emplace("vulkan:0");
    device_->state()->programs.keep_idle(0);
  }
  /// Whether a dropped object still exists though its work has run.
  bool keeps_anything() const {
    return dynamic_cast<backend::vulkan::VulkanDevice&>(*device_->state()->device).retirement().collect();
  }
  std::optional<Device> device_;
};

// Each kernel is dropped while its work is recorded.
TEST_F(Releases, OfKernelsComeWithSynchronize) {
  Array<float> x = zeros<float>(*device_, 64);
  for (int k = 0; k < 40; ++k) {
    const float by = float(k);
    launch(kernel("add", [by](Arr<float> x) { x[tid()] += by; }), 64, x);
  }
  EXPECT_EQ(device_->state()->programs.size(), 0u);
  device_->synchronize();
  EXPECT_FALSE(keeps_anything());
  EXPECT_EQ(x.at(63), 40 * 39 / 2);
}

TEST_F(Releases, OfMemoryAndGraphsComeWithSynchronize) {
  Array<float> x = zeros<float>(*device_, 64);
  const auto add = kernel("add", [](Arr<float> x, Arr<const float> y) { x[tid()] += y[tid()]; });
  for (int k = 0; k < 5; ++k) {
    const Array<float> y = full<float>(*device_, 64, 1);
    launch(add, 64, x, y);
    capture(*device_, [&] { launch(add, 64, x, y); }).launch();
  }
  device_->synchronize();
  EXPECT_FALSE(keeps_anything());
  EXPECT_EQ(x.at(63), 10);
}

TEST_F(Releases, ComeWithSynchronizeOfTheStreamThatUsedThem) {
  const auto fill = kernel("fill it", [](Arr<float> x) { x[tid()] = 1; });
  Stream stream = device_->create_stream();
  launch(stream, fill, 64, empty<float>(*device_, 64));
  stream.synchronize();
  EXPECT_FALSE(keeps_anything());
}

}  // namespace
}  // namespace weft
