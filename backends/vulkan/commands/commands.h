// Operations as commands: streams and graphs record them, with the barriers between them.
#pragma once
#include <volk.h>

#include <cstdint>
#include <span>

#include "../../backend.h"
#include "hazards.h"
#include "kept.h"

namespace weft::backend::vulkan {

class VulkanDevice;
class VulkanProgram;
class VulkanRayStructure;

inline constexpr std::uint64_t kGridBytes = 12;  ///< of a grid in memory

/// A command buffer in recording. Each operation names the memory that it accesses; Hazards decides which barrier it
/// needs. Launches, copies, fills and moments are first kept as data, see Kept.
class Commands {
 public:
  /// The readers for which a command buffer makes its writes available: weft's next command buffers on the queue; or
  /// also the host, and on an adopted device whatever the queue is given.
  enum class For { queue, everybody };
  /// The operations that a command buffer still lacks. Any thread may write them; until then nobody else uses the
  /// command buffer.
  struct Rest {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Kept kept;
    For whom = For::queue;

    VkResult finish(VulkanDevice& device);
  };

  explicit Commands(VulkanDevice& device);

  /// Begins with a barrier against everything that the queue was given before.
  void begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
  VkResult end(For whom);
  /// Ends recording, but leaves the last commands in `rest`.
  void end(For whom, Rest& rest);
  /// Continues in a command buffer that another is recording, and leaves it in recording. Full barriers come before and
  /// after.
  void enter(VkCommandBuffer commands);
  void leave();
  bool open() const { return commands_ != VK_NULL_HANDLE; }
  /// The command buffer, for commands of the caller's after everything recorded so far.
  VkCommandBuffer handle() {
    kept_.write(device_, commands_);
    return commands_;
  }

  /// Adds the barrier that a dispatch() on `ranges` needs. `grid_at` is the address of the grid if that is in memory,
  /// else 0.
  void order_launch(std::span<const MemoryRange> ranges, std::uint64_t grid_at = 0);
  /// Adds a full barrier before the next operation.
  void barrier();
  /// Call after each operation.
  void done() { barrier_due_ = always_; }

  /// Arguments of a launch that exceed the push constants are at `large`.
  void dispatch(const VulkanProgram& program, std::span<const std::byte> args, std::uint64_t large, const Grid& grid);
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  void fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern);
  /// Writes whole words when the commands run: `to` has room for the padding.
  void write(std::uint64_t to, std::span<const std::byte> bytes);
  void build(const VulkanRayStructure& structure, const RayTriangles& triangles);
  /// See Kept::moment(). If `to` is not null, the 16 bytes there receive both moments.
  void moment(VkQueryPool pool, std::uint32_t place, std::uint64_t to);

  void track_hazards(bool on);
  void barrier_always(bool on);
  /// Number of kept operations. For tests.
  std::size_t kept() const { return kept_.size(); }
  std::uint64_t memory_barriers() const { return memory_barriers_; }
  std::uint64_t execution_barriers() const { return execution_barriers_; }

 private:
  void order(std::span<const MemoryRange> ranges, VkPipelineStageFlags stage);
  void write_when_full();

  VulkanDevice& device_;
  const VkPipelineStageFlags stages_;  ///< all in which work happens
  VkPipelineStageFlags used_ = 0;      ///< by the command buffer so far
  VkPipelineStageFlags reached_ = 0;   ///< by its last barrier
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Kept kept_;
  Hazards hazards_;
  bool track_ = true, always_ = false, barrier_due_ = false;
  std::uint64_t memory_barriers_ = 0, execution_barriers_ = 0;
};

}  // namespace weft::backend::vulkan
