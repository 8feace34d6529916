// Graphs as command buffers that are submitted repeatedly.
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

/// Operations in one command buffer, recorded once with the barriers that they need. Runs of small launches are chains:
/// one dispatch each.
///
/// Launches that are patched read their arguments from memory of the graph's, by a second form of their kernel.
/// Commands before the next replay write other arguments there, so that replays in progress keep their own. The graph
/// is recorded anew when a launch is first patched that nobody announced, and once more when a launch first gets other
/// arrays, because it is between full barriers from then on.
class VulkanGraph final : public Graph, private DeviceObject {
 public:
  VulkanGraph(VulkanDevice& device, std::unique_ptr<Operations> operations);
  ~VulkanGraph() override;
  VulkanGraph(const VulkanGraph&) = delete;
  VulkanGraph& operator=(const VulkanGraph&) = delete;

  const Operations& operations() const override { return *operations_; }
  void patch(std::size_t operation, std::span<const std::byte> args, std::span<const MemoryRange> arrays) override;

  const VulkanDevice* device() const { return &device_; }
  /// The command buffer to submit, or null if there is nothing; recorded anew if patches require it.
  VkCommandBuffer commands();
  /// Whether arguments are to be written before that, and the commands that write them.
  bool has_arguments() const { return !due_.empty(); }
  void write_arguments(Commands& commands) const;
  /// Notes that the commands of write_arguments() were submitted.
  void arguments_written();
  // Counts of recordings, and of barriers between operations. For tests.
  std::uint64_t recorded() const { return recorded_; }
  std::uint64_t memory_barriers() const { return memory_barriers_; }

 private:
  /// The arguments of a patched launch.
  struct Place {
    std::uint64_t address = 0;  ///< 0: they are push constants, or recorded with their present values
    bool due = false;           ///< they must still be written
  };
  void abandon() override;
  void record();
  void drop();
  /// The form of each operation.
  std::vector<LaunchForm> place_arguments(std::span<const Chain> chains);

  std::unique_ptr<Operations> operations_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  std::vector<Allocation> memory_;  ///< arguments that exceed push constants
  std::vector<std::shared_ptr<VulkanProgram>> chains_, abandoned_;
  std::vector<Place> places_;     ///< by operation
  std::vector<std::size_t> due_;  ///< operations whose arguments must be written
  bool changed_ = true;
  std::uint64_t recorded_ = 0, memory_barriers_ = 0;
};

/// Destroys a Retired::handle: a pool with its buffers.
void destroy_commands(VulkanDevice& device, std::uint64_t pool);

}  // namespace weft::backend::vulkan
