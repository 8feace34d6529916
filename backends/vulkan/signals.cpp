// Refusing values that go backwards.
#include "signals.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "device.h"

namespace weft::backend::vulkan {

namespace {
std::uint64_t value_of(VulkanDevice& device, VkSemaphore semaphore) {
  std::uint64_t value = 0;
  device.check(device.vk().vkGetSemaphoreCounterValue(device.handle(), semaphore, &value),
               "vkGetSemaphoreCounterValue");
  return value;
}
}  // namespace

void Signals::check_locked(VkSemaphore semaphore, std::uint64_t value) {
  const auto refuse = [&](std::uint64_t known, const char* how) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a semaphore is to be signalled with {}, and it {} {}: the values of a timeline grow",
                            value, how, known));
  };
  // The handle of a semaphore that is gone may come back for another: what has happened is forgotten.
  std::erase_if(pending_, [&](const auto& item) {
    return device_.retirement().reached(item.second.timeline, item.second.ticket);
  });
  if (const auto known = pending_.find(semaphore); known != pending_.end() && value <= known->second.value)
    refuse(known->second.value, "is to have");
  if (const std::uint64_t now = value_of(device_, semaphore); value <= now) refuse(now, "has");
}

void Signals::check(VkSemaphore semaphore, std::uint64_t value) {
  std::lock_guard lock(mutex_);
  check_locked(semaphore, value);
}

void Signals::add(VkSemaphore semaphore, std::uint64_t value, const std::shared_ptr<Timeline>& timeline,
                  Ticket ticket) {
  std::lock_guard lock(mutex_);
  check_locked(semaphore, value);
  pending_[semaphore] = {value, timeline, ticket};
}

}  // namespace weft::backend::vulkan
