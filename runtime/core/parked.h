// Freed memory that others may still be using. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../../backends/backend.h"

namespace weft::detail {

/// Another interface that works on memory of a device's: a context of CUDA's.
struct OutsideUser {
  std::shared_ptr<const void> who;
  /// Waits for all that it was given. false: that cannot be waited for now. Called without a lock; must not throw.
  bool (*finish)(const void* who) = nullptr;
};

/// Allocations that no array has any more, until those who use them besides weft have finished. Thread-safe.
///
/// Nobody waits where memory is freed: that may be any thread, in the middle of anything.
class Parked {
 public:
  /// So many bytes wait for one wait.
  static constexpr std::uint64_t kEnough = 64ull << 20;

  void add(const backend::Allocation& allocation, OutsideUser user);
  /// Waits for their users and frees them. What cannot be waited for stays.
  void free_finished(backend::Device& device);
  /// Before memory is asked for.
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
