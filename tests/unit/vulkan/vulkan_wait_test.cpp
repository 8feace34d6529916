// How threads wait for a semaphore: they look for a while before they sleep.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "../../../backends/vulkan/device.h"
#include "../../../backends/vulkan/vulkan.h"

namespace weft::backend::vulkan {
namespace {

int sleeps = 0;             // in the driver, by any thread
std::uint64_t longest = 0;  // the limit of the last sleep
PFN_vkWaitSemaphores wait_semaphores = nullptr;
VKAPI_ATTR VkResult VKAPI_CALL count_sleep(VkDevice device, const VkSemaphoreWaitInfo* info, std::uint64_t patience) {
  ++sleeps;
  longest = patience;
  return wait_semaphores(device, info, patience);
}

// Waits are as on GPUs: for a value that comes soon, for one that takes longer than a thread looks, and up to a limit.
TEST(VulkanWaits, LookBeforeTheySleep) {
  if (backend::list_vulkan_devices().empty()) GTEST_SKIP() << "no Vulkan adapter";
  const auto instance = Instance::get(false);
  const auto device =
      std::make_unique<VulkanDevice>(instance, instance->adapters().at(0), Tuning{.waits_as_on_gpus = true});
  VolkDeviceTable& vk = const_cast<VolkDeviceTable&>(device->vk());
  wait_semaphores = std::exchange(vk.vkWaitSemaphores, count_sleep);
  const Point point = device->semaphores().take();
  std::uint64_t value = point.value;
  const auto signal = [&] {
    VkSemaphoreSignalInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    info.semaphore = point.semaphore;
    info.value = value;
    EXPECT_EQ(vk.vkSignalSemaphore(device->handle(), &info), VK_SUCCESS);
  };
  const auto sleeps_in = [&](auto wait) {
    sleeps = 0;
    wait();
    return sleeps;
  };
  const auto wait = [&] { EXPECT_TRUE(device->wait_for(point.semaphore, value)); };
  EXPECT_EQ(sleeps_in(wait), 0) << "it is there";
  ++value;
  const auto start = std::chrono::steady_clock::now();
  const auto in_vain = [&] { EXPECT_FALSE(device->wait_for(point.semaphore, value, 100'000'000)); };
  EXPECT_EQ(sleeps_in(in_vain), 1);
  EXPECT_LE(longest, 99'000'000u) << "what it has looked for is no time to sleep";
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  for (int k = 0; k < 2; ++k) {
    std::jthread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      signal();
    });
    EXPECT_EQ(sleeps_in(wait), 1) << "it is longer than a thread looks";
    other.join();
    EXPECT_EQ(sleeps_in(wait), 0);
    ++value;
  }
  device->semaphores().give({point.semaphore, value - 1});
}

}  // namespace
}  // namespace weft::backend::vulkan
