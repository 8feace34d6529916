// A compute pipeline in plain Vulkan, for tests and benchmarks that launch without weft.
#pragma once
#include <volk.h>

#include <cstdint>
#include <span>

namespace weft::test {

/// A pipeline without descriptor sets: all the shader's inputs are push constants. Must be destroyed before the device.
class ComputePipeline {
 public:
  /// \param flags  those of the shader's stage
  /// Errors: std::runtime_error.
  ComputePipeline(const VolkDeviceTable& vk, VkDevice device, std::span<const std::uint32_t> words,
                  const char* entry_point, std::uint32_t push_bytes, VkPipelineShaderStageCreateFlags flags = 0);
  ~ComputePipeline() { destroy(); }
  ComputePipeline(const ComputePipeline&) = delete;
  ComputePipeline& operator=(const ComputePipeline&) = delete;

  /// Records a dispatch with these push constants.
  void dispatch(VkCommandBuffer commands, const void* push, std::uint32_t x, std::uint32_t y = 1,
                std::uint32_t z = 1) const;
  void bind(VkCommandBuffer commands) const {
    vk_.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  }

 private:
  void destroy();

  const VolkDeviceTable& vk_;
  VkDevice device_;
  std::uint32_t push_bytes_;
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
};

/// Errors: std::runtime_error unless it is VK_SUCCESS.
void check_vulkan(VkResult result, const char* call);

}  // namespace weft::test
