// Memory of the host in which a driver keeps the commands that it records.
#pragma once
#include <volk.h>

#include <cstddef>
#include <vector>

namespace weft::backend::vulkan {

/// Allocation callbacks for one command pool, in blocks that are used again and again.
///
/// Strategy: drivers that keep commands as a list (Mesa's software device does) ask for memory several times for each,
/// and give all of it back one by one when the pool is reset: on the host that is most of what a launch costs. Here an
/// allocation moves a pointer along a block, and a block whose last allocation has been given back is used anew. Blocks
/// begin at multiples of their size, so that the address alone says which block counts one less: nothing of what is
/// freed is read.
///
/// A driver calls them only while it is called itself (Vulkan 1.2, 11.1), and who calls it with a command pool sees to
/// it that nobody else does: there are no locks. Must outlive its pool.
class HostArena {
 public:
  HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;
  ~HostArena();

  const VkAllocationCallbacks* callbacks() const { return &callbacks_; }

  static constexpr std::size_t kBlockBytes = 64 << 10;
  /// Of blocks, those that wait for use among them.
  std::size_t blocks() const { return blocks_.size(); }

 private:
  struct Block;
  void* allocate(std::size_t bytes, std::size_t alignment);
  void free(void* memory);
  static Block* block_of(void* memory);
  Block* add_block(std::size_t bytes);

  VkAllocationCallbacks callbacks_{};
  std::vector<Block*> blocks_, idle_;
  Block* current_ = nullptr;
};

}  // namespace weft::backend::vulkan
