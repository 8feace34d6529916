// Which submissions wait for semaphores of others: they, and all that the queue has behind them, may need the host.
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

/// Knows the waits that weft's streams have submitted and that are not over. Those of a renderer on the same queue it
/// does not see. Thread-safe.
class Waits {
 public:
  explicit Waits(VulkanDevice& device) : device_(device) {}

  /// A submission waits that gets a place behind `after`; it is over with the ticket of a stream.
  void add(std::shared_ptr<Timeline> timeline, Ticket ticket, std::uint64_t after);
  /// Whether one stands at a place or before it.
  bool any_before(std::uint64_t place);
  bool any() { return any_before(~0ull); }
  /// Whether one may stand before some of the work.
  bool hold_up(std::span<const Need> work);

 private:
  struct Wait {
    std::shared_ptr<Timeline> timeline;
    Ticket ticket = 0;
    std::uint64_t after = 0;
    std::vector<Need> before;  ///< what the queue had of each stream
  };
  void forget();

  VulkanDevice& device_;
  std::mutex mutex_;
  std::deque<Wait> waits_;  // in the order of the queue
};

}  // namespace weft::backend::vulkan
