// Timeline semaphores of streams, which outlive them.
#pragma once
#include <volk.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace weft::backend::vulkan {

class VulkanDevice;

/// A value of a timeline semaphore.
struct Point {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  std::uint64_t value = 0;
};

/// Semaphores that streams take when they begin and return when they end; the next stream counts on from the value that
/// the last one reached. They are destroyed with the device. Mesa's software devices touch a semaphore on a thread of
/// their own for a moment after it has the value that says the work is over; Vulkan lets it be destroyed then, and the
/// devices would crash. Thread-safe.
class SemaphorePool {
 public:
  explicit SemaphorePool(VulkanDevice& device) : device_(device) {}

  /// A semaphore that nobody waits for, and its value.
  Point take();
  /// Returns a semaphore that has reached its value, the last that was submitted.
  void give(const Point& point);
  /// Destroys the semaphores. No stream is left, and the queue is idle if the device is weft's own.
  void clear();

 private:
  VulkanDevice& device_;
  std::mutex mutex_;
  std::vector<Point> free_;  ///< has room for all that were taken
  std::size_t taken_ = 0;
};

}  // namespace weft::backend::vulkan
