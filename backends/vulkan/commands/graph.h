// Graphs as command buffers that are submitted again and again.
#pragma once
#include <volk.h>

#include <memory>
#include <span>
#include <vector>

#include "../../operations.h"
#include "../device_object.h"

namespace weft::backend::vulkan {

class Commands;
struct Chain;
struct LaunchForm;
class VulkanDevice;
class VulkanProgram;

/// Operations in one command buffer, recorded once with the barriers that they need. Rows of small launches are chains:
/// one dispatch each.
///
/// Launches that are patched find their arguments in memory of the graph's, by a second form of their kernel: other
/// arguments are written there by the commands in front of the next replay, so that what runs meanwhile keeps its own.
/// The whole is recorded anew when that begins for a launch that nobody said would be patched; and once more when one
/// is given other arrays for the first time, as it stands between barriers from then on.
class VulkanGraph final : public Graph, private DeviceObject {
 public:
  VulkanGraph(VulkanDevice& device, std::unique_ptr<Operations> operations);
  ~VulkanGraph() override;
  VulkanGraph(const VulkanGraph&) = delete;
  VulkanGraph& operator=(const VulkanGraph&) = delete;

  const Operations& operations() const override { return *operations_; }
  void patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) override;

  const VulkanDevice* device() const { return &device_; }
  /// What is submitted, or null where there is nothing; recorded anew where patches ask for it.
  VkCommandBuffer commands();
  /// Whether arguments are to be written in front of that, and the commands that do so.
  bool has_arguments() const { return !due_.empty(); }
  void write_arguments(Commands& commands) const;
  /// They were submitted.
  void arguments_written();
  // For tests: how often it was recorded, and with how many barriers between operations.
  std::uint64_t recorded() const { return recorded_; }
  std::uint64_t memory_barriers() const { return memory_barriers_; }

 private:
  /// Where a launch that is patched finds its arguments.
  struct Place {
    std::uint64_t address = 0;  ///< 0: in push constants, or it is recorded with what it has
    bool due = false;           ///< to be written
  };
  void abandon() override;
  void record();
  void drop();
  /// By operation.
  std::vector<LaunchForm> place_arguments(std::span<const Chain> chains);

  std::unique_ptr<Operations> operations_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<Allocation> memory_;  ///< arguments that are not push constants
  std::vector<std::shared_ptr<VulkanProgram>> chains_, abandoned_;
  std::vector<Place> places_;     ///< by operation
  std::vector<std::size_t> due_;  ///< operations whose arguments are to be written
  bool changed_ = true;
  std::uint64_t recorded_ = 0, memory_barriers_ = 0;
};

/// Of a Retired::handle: a pool with its buffers.
void destroy_commands(VulkanDevice& device, std::uint64_t pool);

}  // namespace weft::backend::vulkan
