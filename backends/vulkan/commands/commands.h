// Operations as commands: what streams and graphs record, with the barriers between them.
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

inline constexpr std::uint64_t kGridBytes = 12;  ///< of a grid that stands in memory

/// A command buffer that is being recorded. Each operation names what it touches; Hazards decides what must stand
/// before it. Launches, copies, fills and moments are kept first, see Kept.
class Commands {
 public:
  /// For whom a command buffer leaves what it wrote: for weft's next ones on the queue; or for the host as well, and on
  /// an adopted device for whatever the queue is given.
  enum class For { queue, everybody };
  /// What a command buffer still lacks. Any thread may finish it, and nobody else uses the command buffer until then.
  struct Rest {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Kept kept;
    For whom = For::queue;

    VkResult finish(VulkanDevice& device);
  };

  explicit Commands(VulkanDevice& device);

  /// Begins with a barrier against all that the queue was given before.
  void begin(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
  VkResult end(For whom);
  /// The same, but for what is left in `rest`.
  void end(For whom, Rest& rest);
  /// Goes on in a command buffer that is being recorded by another, and leaves it as such. Before and after stand
  /// barriers against everything.
  void enter(VkCommandBuffer commands);
  void leave();
  bool open() const { return commands_ != VK_NULL_HANDLE; }
  /// For commands of the caller's behind all that was recorded so far.
  VkCommandBuffer handle() {
    kept_.write(device_, commands_);
    return commands_;
  }

  /// Puts what is needed before a dispatch() on `ranges`, with a grid that stands in memory, or does not.
  void order_launch(std::span<const MemoryRange> ranges, std::uint64_t grid_at = 0);
  /// A barrier against everything, before what comes next.
  void barrier();
  /// After an operation.
  void done() { barrier_due_ = always_; }

  /// Arguments of a launch that are longer than push constants lie at `large`.
  void dispatch(const VulkanProgram& program, std::span<const std::byte> args, std::uint64_t large, const Grid& grid);
  void copy(std::uint64_t to, std::uint64_t from, std::size_t bytes);
  void fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern);
  /// As the commands run. Whole words: `to` has room for them.
  void write(std::uint64_t to, std::span<const std::byte> bytes);
  void build(const VulkanRayStructure& structure, const RayTriangles& triangles);
  /// See Kept::moment(). Where `to` is not null, 16 bytes there receive both.
  void moment(VkQueryPool pool, std::uint32_t place, std::uint64_t to);

  void track_hazards(bool on);
  void barrier_always(bool on);
  /// Operations that are kept. For tests.
  std::size_t kept() const { return kept_.size(); }
  std::uint64_t memory_barriers() const { return memory_barriers_; }
  std::uint64_t execution_barriers() const { return execution_barriers_; }

 private:
  void order(std::span<const MemoryRange> ranges, VkPipelineStageFlags stage);
  void write_when_full();

  VulkanDevice& device_;
  const VkPipelineStageFlags stages_;  ///< in which work happens
  VkPipelineStageFlags used_ = 0;      ///< by the command buffer so far
  VkPipelineStageFlags reached_ = 0;   ///< by its last barrier
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  Kept kept_;
  Hazards hazards_;
  bool track_ = true, always_ = false, barrier_due_ = false;
  std::uint64_t memory_barriers_ = 0, execution_barriers_ = 0;
};

}  // namespace weft::backend::vulkan
