// Stages and accesses for the barriers between operations.
#include "barriers.h"

#include "../device.h"

namespace weft::backend::vulkan {

// The indirect stage is left out: grids that are read from memory have a barrier of their own, see Kept::write(). After
// a barrier for reading commands the device waits with everything that follows: on an H200, launches that wait for each
// other would then take 4.6 us each instead of 2.6.
VkPipelineStageFlags stages_of(const Adapter& adapter) {
  return kCompute | kTransfer | (adapter.ray_query ? kRayBuild : 0);
}

VkAccessFlags writes_in(VkPipelineStageFlags stages) {
  return (stages & kCompute ? VK_ACCESS_SHADER_WRITE_BIT : 0) |
         (stages & kTransfer ? VK_ACCESS_TRANSFER_WRITE_BIT : 0) |
         (stages & kRayBuild ? VK_ACCESS_ACCELERATION_STRUCTURE_WRITE_BIT_KHR : 0);
}

VkAccessFlags accesses_in(VkPipelineStageFlags stages) {
  return writes_in(stages) | (stages & kCompute ? VK_ACCESS_SHADER_READ_BIT : 0) |
         (stages & kTransfer ? VK_ACCESS_TRANSFER_READ_BIT : 0) |
         (stages & kRayBuild ? VK_ACCESS_ACCELERATION_STRUCTURE_READ_BIT_KHR : 0);
}

void memory_barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkPipelineStageFlags to, VkAccessFlags access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = writes_in(from);
  barrier.dstAccessMask = access;
  vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void barrier_for_others(const VulkanDevice& device, VkCommandBuffer commands) {
  const VkPipelineStageFlags stages = stages_of(device.adapter());
  if (device.adopted())
    memory_barrier(device.vk(), commands, stages, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                   VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT);
  else
    memory_barrier(device.vk(), commands, stages, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

}  // namespace weft::backend::vulkan
