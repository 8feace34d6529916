// Host memory in which a driver keeps the commands that it records.
#pragma once
#include <volk.h>

#include <cstddef>
#include <vector>

namespace weft::backend::vulkan {

/// Allocation callbacks for one command pool, in blocks that are reused.
///
/// Strategy: drivers that keep commands as a list (as Mesa's software device does) allocate several times per command,
/// and free everything one by one when the pool is reset; on the host that is most of a launch's cost. Here an
/// allocation moves a pointer along a block, and a block whose last allocation has been freed is reused. Blocks begin
/// at multiples of their size, so the address alone tells which block counts one less: freed memory is not read.
///
/// A driver calls these only while it is called itself (Vulkan 1.2, 11.1), and calls with a command pool are externally
/// synchronised, so there are no locks. Must outlive its pool.
class HostArena {
 public:
  HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;
  ~HostArena();

  const VkAllocationCallbacks* callbacks() const { return &callbacks_; }

  static constexpr std::size_t kBlockBytes = 64 << 10;
  /// Number of blocks, idle ones included.
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
