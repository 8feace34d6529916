// Barriers between the stages in which operations work.
#pragma once
#include <volk.h>

namespace weft::backend::vulkan {

class VulkanDevice;
struct Adapter;

inline constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                      kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT,
                                      kRayBuild = VK_PIPELINE_STAGE_ACCELERATION_STRUCTURE_BUILD_BIT_KHR;

/// The stages in which work of the device happens.
VkPipelineStageFlags stages_of(const Adapter& adapter);
/// The stages' writes, and all their accesses to memory.
VkAccessFlags writes_in(VkPipelineStageFlags stages);
VkAccessFlags accesses_in(VkPipelineStageFlags stages);

/// Makes the writes of `from` available; `access` is what follows in `to`.
void memory_barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags from,
                    VkPipelineStageFlags to, VkAccessFlags access);
inline void memory_barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags among) {
  memory_barrier(vk, commands, among, among, accesses_in(among));
}

/// Ends a command buffer: makes its writes available to the host, and on an adopted device to whatever the queue is
/// given.
void barrier_for_others(const VulkanDevice& device, VkCommandBuffer commands);

}  // namespace weft::backend::vulkan
