// Plain Vulkan on the device that weft opened.
#include "raw_vulkan.h"

#include <stdexcept>
#include <vector>

#include "../../backends/vulkan/device.h"
#include "../common/compute_pipeline.h"
#include "glsl.h"

namespace weft::bench {

using backend::vulkan::VulkanDevice;
using test::check_vulkan;

struct RawDispatches::State {
  static constexpr int kPools = 8;
  VulkanDevice& device;
  const VolkDeviceTable& vk;
  test::ComputePipeline pipeline;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  VkCommandPool pools[kPools] = {};
  VkCommandBuffer commands[kPools] = {};
  std::uint64_t ends[kPools] = {};  ///< value of the semaphore when the buffer has run
  std::uint64_t value = 0;
  int next = 0;

  void wait_for(std::uint64_t at) {
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &semaphore;
    wait.pValues = &at;
    check_vulkan(vk.vkWaitSemaphores(device.handle(), &wait, ~0ull), "vkWaitSemaphores");
  }
};

RawDispatches::RawDispatches(backend::Device& device, const std::string& glsl, std::uint32_t push_bytes) {
  auto* vulkan = dynamic_cast<VulkanDevice*>(&device);
  if (!vulkan) throw std::runtime_error("it is no Vulkan device");
  state_.reset(new State{
      *vulkan, vulkan->vk(), {vulkan->vk(), vulkan->handle(), compile_glsl("by hand", glsl), "main", push_bytes}});
  State& s = *state_;
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  check_vulkan(s.vk.vkCreateSemaphore(s.device.handle(), &semaphore, nullptr, &s.semaphore), "vkCreateSemaphore");
  for (int k = 0; k < State::kPools; ++k) {
    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    pool.queueFamilyIndex = s.device.queue_family();
    check_vulkan(s.vk.vkCreateCommandPool(s.device.handle(), &pool, nullptr, &s.pools[k]), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = s.pools[k];
    allocate.commandBufferCount = 1;
    check_vulkan(s.vk.vkAllocateCommandBuffers(s.device.handle(), &allocate, &s.commands[k]),
                 "vkAllocateCommandBuffers");
  }
}

RawDispatches::~RawDispatches() {
  State& s = *state_;
  s.vk.vkDeviceWaitIdle(s.device.handle());
  for (const VkCommandPool pool : s.pools) s.vk.vkDestroyCommandPool(s.device.handle(), pool, nullptr);
  s.vk.vkDestroySemaphore(s.device.handle(), s.semaphore, nullptr);
}

void RawDispatches::run(std::span<const std::byte> push, int count, int batch) {
  State& s = *state_;
  for (int done = 0; done < count;) {
    const int pool = s.next++ % State::kPools;
    s.wait_for(s.ends[pool]);
    check_vulkan(s.vk.vkResetCommandPool(s.device.handle(), s.pools[pool], 0), "vkResetCommandPool");
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    const VkCommandBuffer commands = s.commands[pool];
    check_vulkan(s.vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    s.pipeline.bind(commands);
    for (int k = 0; k < batch && done < count; ++k, ++done) {
      VkMemoryBarrier barrier{};
      barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
      barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
      s.vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                                1, &barrier, 0, nullptr, 0, nullptr);
      s.pipeline.dispatch(commands, push.data(), 1);
    }
    check_vulkan(s.vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    s.ends[pool] = ++s.value;
    VkTimelineSemaphoreSubmitInfo timeline{};
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &s.value;
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.pNext = &timeline;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    submit.signalSemaphoreCount = 1;
    submit.pSignalSemaphores = &s.semaphore;
    check_vulkan(s.device.submit(submit), "vkQueueSubmit");
  }
}

void RawDispatches::wait() { state_->wait_for(state_->value); }

}  // namespace weft::bench
