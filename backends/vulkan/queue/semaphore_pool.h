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

/// Semaphores that streams take when they begin and give back when they end; the next stream counts on from the value
/// that the last one reached. They are destroyed with the device: software devices of Mesa touch a semaphore on a
/// thread of their own for a moment after it has the value that says the work is over, when Vulkan lets it be
/// destroyed, and crash if it was. Thread-safe.
class SemaphorePool {
 public:
  explicit SemaphorePool(VulkanDevice& device) : device_(device) {}

  /// A semaphore nobody waits for, and the value it has.
  Point take();
  /// Gives one back that has reached its value, the last that was submitted.
  void give(const Point& point);
  /// Destroys them: no stream is left, and where the device is weft's own, the queue is idle.
  void clear();

 private:
  VulkanDevice& device_;
  std::mutex mutex_;
  std::vector<Point> free_;  ///< with room for all that were taken
  std::size_t taken_ = 0;
};

}  // namespace weft::backend::vulkan
