// Graphs as command buffers that are submitted again and again.
#pragma once
#include <volk.h>

#include <memory>
#include <vector>

#include "../operations.h"
#include "device_object.h"

namespace weft::backend::vulkan {

class VulkanDevice;
class VulkanProgram;

/// Operations in command buffers, recorded once with the barriers that they need. Rows of small launches are chains:
/// one dispatch each.
///
/// At first one buffer holds them all. A launch whose arguments are patched gets a buffer of its own, with barriers
/// against everything around it, as its arrays may change; a later patch records that one anew and nothing else. What
/// runs keeps the buffers that it was submitted with: those that are replaced go when it has run.
class VulkanGraph final : public Graph, private DeviceObject {
 public:
  VulkanGraph(VulkanDevice& device, std::unique_ptr<Operations> operations);
  ~VulkanGraph() override;
  VulkanGraph(const VulkanGraph&) = delete;
  VulkanGraph& operator=(const VulkanGraph&) = delete;

  std::size_t size() const override { return operations_->list.size(); }
  void patch(std::size_t operation, std::span<const std::byte> args) override;

  const VulkanDevice* device() const { return &device_; }
  /// What is submitted; records what patches have changed.
  std::span<const VkCommandBuffer> commands();

 private:
  void abandon() override;
  /// Operations [first, last) in one buffer.
  struct Segment {
    std::size_t first = 0, last = 0;
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::vector<Allocation> large{};  ///< arguments that are longer than push constants, and those of chains
    std::vector<std::shared_ptr<VulkanProgram>> chains{};
    bool changed = true;
  };
  void record(Segment& segment, bool is_last);
  void drop(Segment& segment);

  std::unique_ptr<Operations> operations_;
  std::vector<Segment> segments_;
  std::vector<VkCommandBuffer> commands_;
  std::vector<std::shared_ptr<VulkanProgram>> abandoned_;
  bool changed_ = true;
};

/// Of a Retired::handle: a pool with its buffers.
void destroy_commands(VulkanDevice& device, std::uint64_t pool);

}  // namespace weft::backend::vulkan
