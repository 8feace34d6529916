// Memory in large pages for devices on the host, kept for a while when it is freed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::backend {

/// Blocks of memory in pages of 2 MiB, where the system has them. Freed blocks are kept up to a limit, because the
/// system clears each page that is touched for the first time, which takes about as long as a kernel that works on it.
/// One thread at a time.
class LargeBlocks {
 public:
  struct Block {
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;  ///< at least those asked for
  };

  LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;
  ~LargeBlocks();

  /// A block whose contents are undefined and whose address is a multiple of 2 MiB; without memory if there is none.
  Block take(std::uint64_t bytes);
  void give_back(Block block);

  /// The most bytes that are kept, and how much larger than what is asked for a kept block may be: a part in this many.
  static constexpr std::uint64_t kMostKept = 256ull << 20, kWaste = 8;

 private:
  std::vector<Block> kept_;  ///< the block that was freed last stands last
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace weft::backend
