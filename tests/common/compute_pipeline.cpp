// Makes module, layout and pipeline.
#include "compute_pipeline.h"

#include <stdexcept>
#include <string>

namespace weft::test {

void check_vulkan(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(call) + " failed: " + std::to_string(result));
}

ComputePipeline::ComputePipeline(const VolkDeviceTable& vk, VkDevice device, std::span<const std::uint32_t> words,
                                 const char* entry_point, std::uint32_t push_bytes,
                                 VkPipelineShaderStageCreateFlags flags)
    : vk_(vk), device_(device), push_bytes_(push_bytes) {
  try {
    VkShaderModuleCreateInfo module{};
    module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module.codeSize = words.size_bytes();
    module.pCode = words.data();
    check_vulkan(vk.vkCreateShaderModule(device, &module, nullptr, &shader_), "vkCreateShaderModule");
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
    VkPipelineLayoutCreateInfo layout{};
    layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    layout.pushConstantRangeCount = 1;
    layout.pPushConstantRanges = &range;
    check_vulkan(vk.vkCreatePipelineLayout(device, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
    VkComputePipelineCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.flags = flags;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = shader_;
    create.stage.pName = entry_point;
    create.layout = layout_;
    check_vulkan(vk.vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &create, nullptr, &pipeline_),
                 "vkCreateComputePipelines");
  } catch (...) {
    destroy();
    throw;
  }
}

void ComputePipeline::dispatch(VkCommandBuffer commands, const void* push, std::uint32_t x, std::uint32_t y,
                               std::uint32_t z) const {
  vk_.vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes_, push);
  vk_.vkCmdDispatch(commands, x, y, z);
}

void ComputePipeline::destroy() {
  vk_.vkDestroyPipeline(device_, pipeline_, nullptr);
  vk_.vkDestroyPipelineLayout(device_, layout_, nullptr);
  vk_.vkDestroyShaderModule(device_, shader_, nullptr);
}

}  // namespace weft::test
