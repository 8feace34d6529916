// Values that streams are to give timeline semaphores of others: they must grow.
#pragma once
#include <volk.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "retirement.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Knows the signals that weft was asked for and that have not happened. Those of others it sees when they have.
/// Thread-safe.
class Signals {
 public:
  explicit Signals(VulkanDevice& device) : device_(device) {}

  /// Notes that a semaphore gets a value with a stream's ticket.
  /// Errors: Error(invalid_argument) when it has that value already, or is to have it before.
  void add(VkSemaphore semaphore, std::uint64_t value, const std::shared_ptr<Timeline>& timeline, Ticket ticket);
  /// Errors: as add(), for a signal by the host.
  void check(VkSemaphore semaphore, std::uint64_t value);

 private:
  struct Pending {
    std::uint64_t value = 0;
    std::shared_ptr<Timeline> timeline;
    Ticket ticket = 0;
  };
  void check_locked(VkSemaphore semaphore, std::uint64_t value);

  VulkanDevice& device_;
  std::mutex mutex_;
  std::map<VkSemaphore, Pending> pending_;
};

}  // namespace weft::backend::vulkan
