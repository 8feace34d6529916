// Reuse of freed blocks: the best fit is taken, and the block that was freed first goes when there are too many.
#include "large_blocks.h"

#include <new>

#include "../../frontend/support/platform.h"

namespace weft::backend {

LargeBlocks::~LargeBlocks() {
  for (const Block& block : kept_) platform::unmap_large_pages(block.memory, block.bytes);
}

LargeBlocks::Block LargeBlocks::take(std::uint64_t bytes) {
  auto best = kept_.end();
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    const bool fits = at->bytes >= bytes && at->bytes - bytes <= bytes / kWaste;
    if (fits && (best == kept_.end() || at->bytes <= best->bytes)) best = at;
  }
  if (best != kept_.end()) {
    const Block found = *best;
    kept_bytes_ -= found.bytes;
    kept_.erase(best);
    return found;
  }
  if (std::byte* const memory = platform::map_large_pages(bytes)) return {memory, bytes};
  if (kept_.empty()) return {};
  for (const Block& block : kept_) platform::unmap_large_pages(block.memory, block.bytes);
  kept_.clear();
  kept_bytes_ = 0;
  std::byte* const memory = platform::map_large_pages(bytes);
  return {memory, memory ? bytes : 0};
}

// Destructors give blocks back, so nothing may be thrown: a block for which there is no room goes to the system.
void LargeBlocks::give_back(Block block) {
  try {
    kept_.push_back(block);
  } catch (const std::bad_alloc&) {
    return platform::unmap_large_pages(block.memory, block.bytes);
  }
  kept_bytes_ += block.bytes;
  std::size_t leave = 0;
  for (; kept_bytes_ > kMostKept; ++leave) {
    kept_bytes_ -= kept_[leave].bytes;
    platform::unmap_large_pages(kept_[leave].memory, kept_[leave].bytes);
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(leave));
}

}  // namespace weft::backend
