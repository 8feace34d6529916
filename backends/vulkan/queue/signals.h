// Values that streams are to give timeline semaphores of others: they must grow.
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

/// Knows the signals that weft was asked for and that have not happened. Those of others it sees when they have.
/// Thread-safe.
class Signals {
 public:
  explicit Signals(VulkanDevice& device) : device_(device) {}

  /// Notes that a semaphore gets a value with a stream's ticket.
  /// Errors: Error(invalid_argument) when it has that value already, or is to have it before.
  void add(VkSemaphore semaphore, std::uint64_t value, const std::shared_ptr<Timeline>& timeline, Ticket ticket);
  /// By the host, now, before those that are waited for.
  /// Errors: Error(invalid_argument) when the semaphore has that value already, or when another signal that is to come
  /// would not be above it.
  void signal(VkSemaphore semaphore, std::uint64_t value);

  /// Semaphores that are weft's: those that streams of a device which is not adopted may be given.
  void own(VkSemaphore semaphore);
  void disown(VkSemaphore semaphore);
  bool owns(VkSemaphore semaphore);

 private:
  struct Pending {
    std::uint64_t value = 0;
    std::shared_ptr<Timeline> timeline;
    Ticket ticket = 0;
  };
  /// Forgets what has happened.
  std::vector<Pending>& pending_of(VkSemaphore semaphore);
  void check_now(VkSemaphore semaphore, std::uint64_t value);

  VulkanDevice& device_;
  std::mutex mutex_;
  std::map<VkSemaphore, std::vector<Pending>> pending_;  // in the order of their values
  std::set<VkSemaphore> own_;
};

}  // namespace weft::backend::vulkan
