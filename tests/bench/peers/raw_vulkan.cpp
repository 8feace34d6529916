// Plain Vulkan on the device that weft opened.
#include "raw_vulkan.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "../../../backends/vulkan/device.h"
#include "../../common/compute_pipeline.h"
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
  VkCommandPool kept_pool = VK_NULL_HANDLE;
  VkCommandBuffer kept = VK_NULL_HANDLE;  ///< that of record()
  std::uint64_t value = 0;
  int next = 0;

  void make(VkCommandPool& pool, VkCommandBuffer& commands, VkCommandPoolCreateFlags flags) {
    VkCommandPoolCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    create.flags = flags;
    create.queueFamilyIndex = device.queue_family();
    check_vulkan(vk.vkCreateCommandPool(device.handle(), &create, nullptr, &pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    allocate.commandPool = pool;
    allocate.commandBufferCount = 1;
    check_vulkan(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &commands), "vkAllocateCommandBuffers");
  }

  void record(VkCommandBuffer commands, std::span<const std::byte> push, int count, VkCommandBufferUsageFlags usage) {
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    begin.flags = usage;
    check_vulkan(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
    pipeline.bind(commands);
    for (int k = 0; k < count; ++k) {
      VkMemoryBarrier barrier{};
      barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
      barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
      vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                              1, &barrier, 0, nullptr, 0, nullptr);
      pipeline.dispatch(commands, push.data(), 1);
    }
    check_vulkan(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  }

  void submit(VkCommandBuffer commands) {
    ++value;
    VkTimelineSemaphoreSubmitInfo timeline{};
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &value;
    VkSubmitInfo submit{};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.pNext = &timeline;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    submit.signalSemaphoreCount = 1;
    submit.pSignalSemaphores = &semaphore;
    check_vulkan(device.submitter().submit(submit), "vkQueueSubmit");
  }

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
  for (int k = 0; k < State::kPools; ++k) s.make(s.pools[k], s.commands[k], VK_COMMAND_POOL_CREATE_TRANSIENT_BIT);
}

RawDispatches::~RawDispatches() {
  State& s = *state_;
  s.vk.vkDeviceWaitIdle(s.device.handle());
  for (const VkCommandPool pool : s.pools) s.vk.vkDestroyCommandPool(s.device.handle(), pool, nullptr);
  s.vk.vkDestroyCommandPool(s.device.handle(), s.kept_pool, nullptr);
  s.vk.vkDestroySemaphore(s.device.handle(), s.semaphore, nullptr);
}

void RawDispatches::run(std::span<const std::byte> push, int count, int batch) {
  State& s = *state_;
  for (int done = 0; done < count; done += batch) {
    const int pool = s.next++ % State::kPools;
    s.wait_for(s.ends[pool]);
    check_vulkan(s.vk.vkResetCommandPool(s.device.handle(), s.pools[pool], 0), "vkResetCommandPool");
    s.record(s.commands[pool], push, std::min(batch, count - done), VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    s.submit(s.commands[pool]);
    s.ends[pool] = s.value;
  }
}

void RawDispatches::record(std::span<const std::byte> push, int count) {
  State& s = *state_;
  s.wait_for(s.value);
  if (s.kept_pool)
    check_vulkan(s.vk.vkResetCommandPool(s.device.handle(), s.kept_pool, 0), "vkResetCommandPool");
  else
    s.make(s.kept_pool, s.kept, 0);
  s.record(s.kept, push, count, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
}

void RawDispatches::replay() { state_->submit(state_->kept); }

void RawDispatches::wait() { state_->wait_for(state_->value); }

}  // namespace weft::bench
