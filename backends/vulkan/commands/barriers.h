// Barriers among the stages in which operations work.
#pragma once
#include <volk.h>

namespace weft::backend::vulkan {

class VulkanDevice;
struct Adapter;

inline constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                      kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT,
                                      kRayBuild = VK_PIPELINE_STAGE_ACCELERATION_STRUCTURE_BUILD_BIT_KHR;

/// In which work of the device happens.
VkPipelineStageFlags stages_of(const Adapter& adapter);
/// Writes of the stages, and all that they do with memory.
VkAccessFlags writes_in(VkPipelineStageFlags stages);
VkAccessFlags accesses_in(VkPipelineStageFlags stages);

/// For what stages write; `access` is what comes behind it.
void memory_barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkPipelineStageFlags to, VkAccessFlags access);
inline void memory_barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags among) {
  memory_barrier(vk, commands, among, among, accesses_in(among));
}

/// At the end of a command buffer: for the host, and on an adopted device for whatever the queue is given.
void barrier_for_others(const VulkanDevice& device, VkCommandBuffer commands);

}  // namespace weft::backend::vulkan
