// Submissions that wait for semaphores of others: they, and everything after them in the queue, may need the host.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "retirement.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// The waits that weft's streams have submitted and that are not over. A renderer's own waits on the same queue are not
/// known. Thread-safe.
class Waits {
 public:
  explicit Waits(VulkanDevice& device) : device_(device) {}

  /// Adds a wait whose submission gets a place after `after`; it is over when the stream reaches the ticket.
  void add(std::shared_ptr<Timeline> timeline, Ticket ticket, std::uint64_t after);
  /// Whether there is a wait at a place or before it.
  bool any_before(std::uint64_t place);
  bool any() { return any_before(~0ull); }
  /// Whether some of the work may come after a wait.
  bool hold_up(std::span<const Need> work);

 private:
  struct Wait {
    std::shared_ptr<Timeline> timeline;
    Ticket ticket = 0;
    std::uint64_t after = 0;
    std::vector<Need> before;  ///< the queue's work of each stream before the wait
  };
  void forget();

  VulkanDevice& device_;
  std::mutex mutex_;
  std::deque<Wait> waits_;  // in the order of the queue
};

}  // namespace weft::backend::vulkan
