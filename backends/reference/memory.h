// The reference device's memory: which bytes of the host belong to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <vector>

#include "../backend.h"

namespace weft::backend {

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
  explicit HostMemory(std::uint64_t limit) : limit_(limit) {}
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

  /// The allocation that holds the address, or that ends at it if no other begins there. O(log n).
  Extent find(std::uint64_t address) const;

  /// Work that may touch memory: blocks that are freed meanwhile outlive it.
  class Use {
   public:
    explicit Use(HostMemory& memory);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();

   private:
    HostMemory& memory_;
    std::uint64_t moment_;
  };

 private:
  struct Block {
    std::uint64_t bytes;
    bool freed;    ///< kept only for work that was running when it was freed
    bool wrapped;  ///< it belongs to the caller
  };
  struct Freed {
    std::uint64_t moment;  ///< uses that began before it keep the memory
    std::uint64_t address;
  };
  void release(std::uint64_t address);

  const std::uint64_t limit_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, Block> live_;  ///< by address
  std::uint64_t used_ = 0;
  std::uint64_t moment_ = 0;
  std::set<std::uint64_t> uses_;  ///< moments at which running work began
  std::vector<Freed> freed_;      ///< in order of their moments
};

}  // namespace weft::backend
