// Values that streams will signal on timeline semaphores of others: they must grow.
#pragma once
#include <volk.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "retirement.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// The signals requested of weft that have not happened. Signals by others are seen once they have happened.
/// Thread-safe.
class Signals {
 public:
  explicit Signals(VulkanDevice& device) : device_(device) {}

  /// Notes that a semaphore gets a value with a stream's ticket.
  /// Errors: Error(invalid_argument) if it has that value already, or gets it earlier.
  void add(VkSemaphore semaphore, std::uint64_t value, const std::shared_ptr<Timeline>& timeline, Ticket ticket);
  /// Signals from the host, now, before the pending signals.
  /// Errors: Error(invalid_argument) if the semaphore has that value already, or if a pending signal would not be above
  /// it.
  void signal(VkSemaphore semaphore, std::uint64_t value);

  /// Semaphores of weft's, which streams of devices that are not adopted accept.
  void own(VkSemaphore semaphore);
  void disown(VkSemaphore semaphore);
  bool owns(VkSemaphore semaphore);

 private:
  struct Pending {
    std::uint64_t value = 0;
    std::shared_ptr<Timeline> timeline;
    Ticket ticket = 0;
  };
  /// Forgets the signals that have happened.
  std::vector<Pending>& pending_of(VkSemaphore semaphore);
  void check_now(VkSemaphore semaphore, std::uint64_t value);

  VulkanDevice& device_;
  std::mutex mutex_;
  std::map<VkSemaphore, std::vector<Pending>> pending_;  // in order of their values
  std::set<VkSemaphore> own_;
};

}  // namespace weft::backend::vulkan
