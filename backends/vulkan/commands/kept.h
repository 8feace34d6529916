// Operations that are yet to be written into a command buffer.
#pragma once
#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <variant>
#include <vector>

#include "../../backend.h"
#include "hazards.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Operations with the barriers before them, to be written into their command buffer many at a time. The driver's code
/// and weft's then do not take turns in a processor's caches, and another thread may write them. Not thread-safe. Cost:
/// allocates nothing once there is room for a batch, some 50 KB: see KeptPool.
class Kept {
 public:
  bool has_room() const { return operations_.capacity() != 0; }
  void make_room();

  /// Orders a barrier among `stages` before the next operation.
  void order(Barrier kind, VkPipelineStageFlags stages);
  /// If there is a grid buffer, the grid is read from it; `stages` may write it.
  void launch(VkPipeline pipeline, const Grid& grid, std::span<const std::byte> constants, VkBuffer grid_in,
              VkDeviceSize grid_at, VkPipelineStageFlags stages);
  void copy(VkBuffer to, VkBuffer from, const VkBufferCopy& region);
  void fill(VkBuffer buffer, VkDeviceSize at, VkDeviceSize bytes, std::uint32_t pattern);
  /// The pool's place gets the moment at which all earlier work has run. If there is a buffer, it gets the values of
  /// that place and the one before it, 8 bytes each.
  void moment(VkQueryPool pool, std::uint32_t place, VkBuffer to, VkDeviceSize at);

  std::size_t size() const { return operations_.size(); }
  /// Whether enough is kept to be written.
  bool full() const { return operations_.size() >= kMost; }
  /// Writes the kept operations into the command buffer, and a barrier that was ordered last. Afterwards nothing is
  /// kept.
  void write(VulkanDevice& device, VkCommandBuffer commands);
  /// Forgets everything: the next operations are for another command buffer.
  void clear();

  /// Exceeds a stream's batch, so that a batch is written whole. A measured operation counts three, with its moments.
  static constexpr std::size_t kMost = 400;

 private:
  struct Launch {
    VkPipeline pipeline = VK_NULL_HANDLE;
    Grid grid;
    VkBuffer grid_in = VK_NULL_HANDLE;
    VkDeviceSize grid_at = 0;
    VkPipelineStageFlags grid_from = 0;
    std::uint32_t first = 0, bytes = 0;  ///< position of its constants in constants_
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
  VkPipeline bound_ = VK_NULL_HANDLE;  ///< the pipeline bound in the command buffer by what was written
};

/// Memory for operations, which all streams of a device reuse as soon as these are written. Thread-safe.
class KeptPool {
 public:
  KeptPool() { free_.reserve(kMost); }
  /// Memory for a batch.
  Kept take();
  void give(Kept&& kept);

 private:
  static constexpr std::size_t kMost = 32;
  std::mutex mutex_;
  std::vector<Kept> free_;  // last in, first out: the last may still be in a processor's caches
};

}  // namespace weft::backend::vulkan
