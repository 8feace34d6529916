// Freed memory that another interface may still be using. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../../backends/backend.h"

namespace weft::detail {

/// Another interface that works on a device's memory: a context of CUDA's.
struct OutsideUser {
  std::shared_ptr<const void> who;
  /// Waits for all work that `who` was given; false if that is impossible now. Called without a lock; must not throw.
  bool (*finish)(const void* who) = nullptr;
};

/// Allocations that no array has any more, kept until their users outside weft have finished. Thread-safe.
///
/// The thread that frees memory does not wait for these users, because it may be any thread, in the middle of anything.
class Parked {
 public:
  /// The bytes that may gather before make_room() waits for their users.
  static constexpr std::uint64_t kEnough = 64ull << 20;

  void add(const backend::Allocation& allocation, OutsideUser user);
  /// Waits for users and frees their allocations. Where a user cannot be waited for, its allocations stay.
  void free_finished(backend::Device& device);
  /// Frees allocations if many bytes are parked. Called before memory is allocated.
  void make_room(backend::Device& device) {
    if (bytes() >= kEnough) free_finished(device);
  }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Place {
    backend::Allocation allocation;
    OutsideUser user;
  };
  std::mutex finishing_;
  std::mutex mutex_;
  std::vector<Place> places_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace weft::detail
