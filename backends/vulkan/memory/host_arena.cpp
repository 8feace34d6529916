// Blocks, and the allocations in them.
#include "host_arena.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

namespace weft::backend::vulkan {

struct HostArena::Block {
  std::size_t bytes = 0;
  std::size_t used = 0;  ///< bytes from the block's beginning, header included
  std::size_t live = 0;  ///< allocations that were not returned
};

namespace {
// The size of each allocation precedes it; only reallocation needs it.
constexpr std::size_t kPrefix = 16;
constexpr std::size_t kFirst = 64;

// Rounds up to a power of two, as all alignments are (Vulkan 1.2, 11.1).
std::size_t rounded(std::size_t value, std::size_t to) { return (value + to - 1) & ~(to - 1); }
}  // namespace

HostArena::HostArena() {
  callbacks_.pUserData = this;
  callbacks_.pfnAllocation = [](void* self, std::size_t bytes, std::size_t alignment,
                                VkSystemAllocationScope) -> void* {
    return static_cast<HostArena*>(self)->allocate(bytes, alignment);  // also 0 bytes, as malloc: drivers ask for it
  };
  callbacks_.pfnReallocation = [](void* self, void* old, std::size_t bytes, std::size_t alignment,
                                  VkSystemAllocationScope) -> void* {
    HostArena& arena = *static_cast<HostArena*>(self);
    void* const made = bytes ? arena.allocate(bytes, alignment) : nullptr;
    if (old && (made || bytes == 0)) {
      std::size_t before;
      std::memcpy(&before, static_cast<std::byte*>(old) - kPrefix, sizeof before);
      if (made) std::memcpy(made, old, std::min(before, bytes));
      arena.free(old);
    }
    return made;
  };
  callbacks_.pfnFree = [](void* self, void* memory) {
    if (memory) static_cast<HostArena*>(self)->free(memory);
  };
}

HostArena::~HostArena() {
  for (Block* block : blocks_) ::operator delete(block, std::align_val_t(kBlockBytes));
}

HostArena::Block* HostArena::block_of(void* memory) {
  return reinterpret_cast<Block*>(reinterpret_cast<std::uintptr_t>(memory) & ~std::uintptr_t(kBlockBytes - 1));
}

// Null if memory is exhausted: a callback must not throw.
HostArena::Block* HostArena::add_block(std::size_t bytes) {
  void* const memory = ::operator new(bytes, std::align_val_t(kBlockBytes), std::nothrow);
  if (!memory) return nullptr;
  Block* const block = new (memory) Block{bytes, kFirst, 0};
  try {
    blocks_.push_back(block);
    idle_.reserve(blocks_.size());  // so that free() never allocates
  } catch (const std::bad_alloc&) {
    if (!blocks_.empty() && blocks_.back() == block) blocks_.pop_back();
    ::operator delete(memory, std::align_val_t(kBlockBytes));
    return nullptr;
  }
  return block;
}

void* HostArena::allocate(std::size_t bytes, std::size_t alignment) {
  alignment = std::max(alignment, kPrefix);
  bytes =
      std::max<std::size_t>(bytes, 1);  // an empty allocation at the end of a block would seem to be in the next one
  // An allocation belongs to the block in whose first kBlockBytes it begins.
  if (alignment > kBlockBytes / 4 || bytes > SIZE_MAX / 2) return nullptr;
  const bool large = bytes > kBlockBytes / 4;
  Block* block = current_;
  if (large || !block || rounded(block->used + kPrefix, alignment) + bytes > block->bytes) {
    if (!large && !idle_.empty()) {
      block = idle_.back();
      idle_.pop_back();
    } else {
      block = add_block(large ? rounded(kFirst + kPrefix + alignment + bytes, kBlockBytes) : kBlockBytes);
      if (!block) return nullptr;
    }
    if (!large) {
      if (current_ && current_->live == 0) idle_.push_back(current_);
      current_ = block;
    }
  }
  const std::size_t at = rounded(block->used + kPrefix, alignment);
  std::byte* const memory = reinterpret_cast<std::byte*>(block) + at;
  std::memcpy(memory - kPrefix, &bytes, sizeof bytes);
  block->used = at + bytes;
  ++block->live;
  return memory;
}

void HostArena::free(void* memory) {
  Block* const block = block_of(memory);
  if (--block->live > 0) return;
  block->used = kFirst;
  if (block == current_) return;
  if (block->bytes == kBlockBytes) return idle_.push_back(block);
  std::erase(blocks_, block);
  ::operator delete(block, std::align_val_t(kBlockBytes));
}

}  // namespace weft::backend::vulkan
