// Timeline semaphores of streams, which outlive them.
#include "semaphore_pool.h"

#include "../device.h"

namespace weft::backend::vulkan {

Point SemaphorePool::take() {
  std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    const Point point = free_.back();
    free_.pop_back();
    return point;
  }
  free_.reserve(taken_ + 1);  // streams return theirs where nothing may fail
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  create.pNext = &type;
  Point point;
  device_.check_made(device_.vk().vkCreateSemaphore(device_.handle(), &create, nullptr, &point.semaphore),
                     point.semaphore, "vkCreateSemaphore");
  ++taken_;
  return point;
}

void SemaphorePool::give(const Point& point) {
  if (!point.semaphore) return;
  std::lock_guard lock(mutex_);
  // On a lost device nobody knows whether the value is reached, and no stream begins any more.
  free_.push_back(point);
}

void SemaphorePool::clear() {
  std::lock_guard lock(mutex_);
  for (const Point& point : free_) device_.vk().vkDestroySemaphore(device_.handle(), point.semaphore, nullptr);
  free_.clear();
}

}  // namespace weft::backend::vulkan
