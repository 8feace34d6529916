// Refuses semaphore values that go backwards.
#include "signals.h"

#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../device.h"

namespace weft::backend::vulkan {

namespace {
std::uint64_t value_of(VulkanDevice& device, VkSemaphore semaphore) {
  std::uint64_t value = 0;
  device.check(device.vk().vkGetSemaphoreCounterValue(device.handle(), semaphore, &value),
               "vkGetSemaphoreCounterValue");
  return value;
}

[[noreturn]] void refuse(std::uint64_t value, const char* how, std::uint64_t known) {
  invalid("a semaphore is to be signalled with {}, and it {} {}: {}", value, how, known,
          value > known ? "wait for that first" : "the values of a timeline grow");
}
}  // namespace

// Signals that have happened are forgotten, because the handle of a destroyed semaphore may be reused. A stream's
// ticket may be reached a moment before or after its semaphore has the value; a semaphore that does not get the value
// within that moment is another one with the same handle.
std::vector<Signals::Pending>& Signals::pending_of(VkSemaphore semaphore) {
  const auto has_run = [&](const Pending& p) { return device_.retirement().reached(p.timeline, p.ticket); };
  std::uint64_t due = 0;
  for (const Pending& p : pending_[semaphore])
    if (has_run(p)) due = p.value;
  if (due > value_of(device_, semaphore)) {
    constexpr std::uint64_t kMoment = 1'000'000;  // nanoseconds
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &semaphore;
    wait.pValues = &due;
    device_.vk().vkWaitSemaphores(device_.handle(), &wait, kMoment);
  }
  const std::uint64_t now = value_of(device_, semaphore);
  for (auto& [key, list] : pending_)
    std::erase_if(list, [&](const Pending& p) {
      if (key == semaphore && p.value <= now) return true;
      return has_run(p) && (key != semaphore || p.value <= due);
    });
  std::erase_if(pending_, [&](const auto& item) { return item.second.empty() && item.first != semaphore; });
  return pending_[semaphore];
}

void Signals::check_now(VkSemaphore semaphore, std::uint64_t value) {
  if (const std::uint64_t now = value_of(device_, semaphore); value <= now) refuse(value, "has", now);
}

void Signals::signal(VkSemaphore semaphore, std::uint64_t value) {
  std::lock_guard lock(mutex_);
  const std::vector<Pending>& pending = pending_of(semaphore);
  check_now(semaphore, value);
  if (!pending.empty() && value >= pending.front().value) refuse(value, "is to have", pending.front().value);
  // Checked under the lock: of two threads with two values, the second is told of the first one's.
  VkSemaphoreSignalInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  info.semaphore = semaphore;
  info.value = value;
  device_.check(device_.vk().vkSignalSemaphore(device_.handle(), &info), "vkSignalSemaphore");
}

void Signals::own(VkSemaphore semaphore) {
  std::lock_guard lock(mutex_);
  own_.insert(semaphore);
}

void Signals::disown(VkSemaphore semaphore) {
  std::lock_guard lock(mutex_);
  own_.erase(semaphore);
}

bool Signals::owns(VkSemaphore semaphore) {
  std::lock_guard lock(mutex_);
  return own_.contains(semaphore);
}

void Signals::add(VkSemaphore semaphore, std::uint64_t value, const std::shared_ptr<Timeline>& timeline,
                  Ticket ticket) {
  std::lock_guard lock(mutex_);
  std::vector<Pending>& pending = pending_of(semaphore);
  if (!pending.empty() && value <= pending.back().value) refuse(value, "is to have", pending.back().value);
  check_now(semaphore, value);
  pending.push_back({value, timeline, ticket});
}

}  // namespace weft::backend::vulkan
