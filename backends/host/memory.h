// The memory of a device on the host: which bytes of the host belong to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <string>
#include <vector>

#include "../backend.h"
#include "large_blocks.h"

namespace weft::backend {

/// The most bytes of a device on the host: the memory that the process may use. A host overcommits: what it grants
/// beyond may not exist. The limit turns a mistaken size into an error.
std::uint64_t host_memory_limit();

/// A live allocation; empty (bytes 0, address 0) when there is none.
struct Extent {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;

  /// Does not overflow, whatever the address.
  bool holds(std::uint64_t at, std::uint64_t count) const {
    return count <= bytes && at >= address && at - address <= bytes - count;
  }
};

/// All live allocations of one device. Thread-safe.
class HostMemory {
 public:
  enum class Pages { small, large };
  /// \param device  its name, for messages
  /// \param pages   large: allocations of 2 MiB and more are in pages of that size, where the system has them
  HostMemory(std::string device, std::uint64_t limit, Pages pages = Pages::small);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  /// Contents are undefined. Errors: Error(out_of_memory).
  Allocation allocate(std::size_t bytes);
  /// Adds memory of the caller's, which free() does not release. Errors: Error(invalid_argument) for memory of this
  /// device.
  Allocation wrap(std::byte* memory, std::size_t bytes);
  /// Frees at once, or when the work that is running at this moment has ended. The address 0 is ignored.
  /// Errors: Error(invalid_argument) when there is no such allocation.
  void free(const Allocation& allocation);

  /// Counts memory that the device itself needs as if it were allocated. Returns false if so much is not left.
  bool take_share(std::uint64_t bytes);
  void give_share(std::uint64_t bytes);

  /// The allocation that holds the address, or that ends at it if no other begins there. O(log n).
  Extent find(std::uint64_t address) const;

  /// Work that may touch memory: blocks that are freed meanwhile outlive it. A device runs one piece of work at a time,
  /// but a piece may consist of others.
  class Use {
   public:
    explicit Use(HostMemory& memory);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    HostMemory& memory_;
  };

 private:
  struct Block {
    std::uint64_t bytes;
    bool freed;           ///< kept only for work that was running when it was freed
    bool wrapped;         ///< it belongs to the caller
    std::uint64_t large;  ///< bytes of the block in large pages; 0: it is none
  };
  void release(std::uint64_t address);
  void give_back(std::uint64_t address, const Block& block);

  const std::string device_;
  const std::uint64_t limit_;
  const Pages pages_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Block> live_;  ///< by address
  LargeBlocks large_;
  std::uint64_t used_ = 0;
  int uses_ = 0;                      ///< pieces of work that run
  std::vector<std::uint64_t> freed_;  ///< addresses of blocks that wait for their end
};

}  // namespace weft::backend
