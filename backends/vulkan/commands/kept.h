// Operations that a command buffer is still to be given.
#pragma once
#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "../../backend.h"
#include "hazards.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Operations with the barriers before them, to be written into their command buffer many at a time: the driver's code
/// and what comes before it in a launch then do not take turns in a processor's caches, and another thread may write
/// them. Not thread-safe. Cost: nothing is allocated once there is room for a batch, some 50 KB: see Submitter::room().
class Kept {
 public:
  bool has_room() const { return operations_.capacity() != 0; }
  void make_room();

  /// A barrier among `stages` before the next operation.
  void order(Barrier kind, VkPipelineStageFlags stages);
  /// The grid is read from a buffer where there is one; `stages` may write it.
  void launch(VkPipeline pipeline, const Grid& grid, std::span<const std::byte> constants, VkBuffer grid_in,
              VkDeviceSize grid_at, VkPipelineStageFlags stages);
  void copy(VkBuffer to, VkBuffer from, const VkBufferCopy& region);
  void fill(VkBuffer buffer, VkDeviceSize at, VkDeviceSize bytes, std::uint32_t pattern);
  /// The pool's place gets the moment at which all before has run. Where there is a buffer, it gets what that place and
  /// the one before it hold, 8 bytes each.
  void moment(VkQueryPool pool, std::uint32_t place, VkBuffer to, VkDeviceSize at);

  std::size_t size() const { return operations_.size(); }
  /// So many that they should be written.
  bool full() const { return operations_.size() >= kMost; }
  /// Gives the command buffer what is kept, a barrier that was ordered last included; nothing is, then.
  void write(VulkanDevice& device, VkCommandBuffer commands);
  /// Forgets everything: what comes is for another command buffer.
  void clear();

  /// More than a batch of a stream has, so that it is written whole. A measured operation is three, with its moments.
  static constexpr std::size_t kMost = 400;

 private:
  struct Launch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    Grid grid;
    VkBuffer grid_in = VK_NULL_HANDLE;
    VkDeviceSize grid_at = 0;
    VkPipelineStageFlags grid_from = 0;
    std::uint32_t first = 0, bytes = 0;  ///< its constants, in constants_
  };
  struct Copy {
    VkBuffer to = VK_NULL_HANDLE, from = VK_NULL_HANDLE;
    VkBufferCopy region{};
  };
  struct Fill {
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceSize at = 0, bytes = 0;
    std::uint32_t pattern = 0;
  };
  struct Moment {
    VkQueryPool pool = VK_NULL_HANDLE;
    std::uint32_t place = 0;
    VkBuffer to = VK_NULL_HANDLE;
    VkDeviceSize at = 0;
  };
  struct Ordered {
    Barrier kind = Barrier::none;
    VkPipelineStageFlags among = 0;
  };
  struct Operation {
    Ordered before;
    std::variant<Launch, Copy, Fill, Moment> what;
  };

  class Writer;
  Ordered take_order();

  std::vector<Operation> operations_;
  std::vector<std::byte> constants_;
  Ordered next_;
  VkPipeline bound_ = VK_NULL_HANDLE;  ///< in the command buffer, by what was written
};

}  // namespace weft::backend::vulkan
