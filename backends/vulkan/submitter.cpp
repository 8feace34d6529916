// The list, its thread, and submissions.
#include "submitter.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "device.h"

namespace weft::backend::vulkan {

void Submitter::open(VkQueue queue, bool with_thread, std::function<void()> lock, std::function<void()> unlock) {
  queue_ = queue;
  lock_ = std::move(lock);
  unlock_ = std::move(unlock);
  use_thread(with_thread);
}

void Submitter::use_thread(bool on) { with_thread_.store(on && std::thread::hardware_concurrency() > 1); }

Submitter::~Submitter() {
  {
    std::lock_guard lock(list_mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Submitter::add(Submission& work, Urgency urgency) {
  work.state.store(Submission::State::waits, std::memory_order_relaxed);
  bool later = urgency == Urgency::later && uses_thread();
  std::uint64_t place = 0;
  bool wake = false;
  {
    std::lock_guard lock(list_mutex_);
    place = work.place = ++last_place_;
    list_.push_back(&work);
    if (later && !thread_.joinable()) try {
        thread_ = std::thread([this] { this->work(); });
      } catch (const std::system_error&) {  // the system has no more of them
        with_thread_.store(false);
        later = false;
      }
    wake = later && std::exchange(sleeps_, false);
  }
  if (wake) wake_.notify_one();
  if (!later) finish(place);
}

void Submitter::finish(std::uint64_t place) {
  if (over_.load(std::memory_order_acquire) >= place) return;
  std::lock_guard lock(queue_mutex_);
  while (make_next(place)) {
  }
}

VkResult Submitter::submit(const VkSubmitInfo& info) {
  std::lock_guard lock(queue_mutex_);
  while (make_next(~0ull)) {
  }
  return submit_locked(info);
}

// One at a time, so that who cannot wait takes its turn between two.
void Submitter::work() {
  std::unique_lock lock(list_mutex_);
  for (;;) {
    while (list_.empty() && !ends_) {
      sleeps_ = true;
      wake_.wait(lock);
      sleeps_ = false;
    }
    if (list_.empty()) return;
    lock.unlock();
    {
      std::lock_guard turn(queue_mutex_);
      if (make_next(~0ull)) ++made_by_thread_;
    }
    lock.lock();
  }
}

// With the queue's mutex held. \return false: nothing waits up to that place
bool Submitter::make_next(std::uint64_t place) {
  Submission* next = nullptr;
  {
    std::lock_guard lock(list_mutex_);
    if (list_.empty() || list_.front()->place > place) return false;
    next = list_.front();
    list_.pop_front();
  }
  const std::uint64_t at = next->place;
  make(*next);  // from then on it may be gone
  over_.store(at, std::memory_order_release);
  return true;
}

void Submitter::make(Submission& s) {
  VkCommandBuffer commands[2];
  std::uint32_t count = 0;
  VkResult result = device_.lost() ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
  if (s.first.commands) {
    if (result == VK_SUCCESS) result = s.first.finish(device_);
    commands[count++] = std::exchange(s.first.commands, nullptr);
  }
  if (s.second) commands[count++] = s.second;
  if (result == VK_SUCCESS) {
    // The other's first: where drivers signal one after the other, it has its value when the ticket is reached.
    const VkSemaphore semaphores[] = {s.signal.semaphore, s.ticket.semaphore};
    const std::uint64_t values[] = {s.signal.value, s.ticket.value};
    const std::uint32_t first = s.signal.semaphore ? 0 : 1;
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo timeline{};
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.waitSemaphoreValueCount = s.wait.semaphore ? 1 : 0;
    timeline.pWaitSemaphoreValues = &s.wait.value;
    timeline.signalSemaphoreValueCount = 2 - first;
    timeline.pSignalSemaphoreValues = values + first;
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.pNext = &timeline;
    info.commandBufferCount = count;
    info.pCommandBuffers = commands;
    info.waitSemaphoreCount = timeline.waitSemaphoreValueCount;
    info.pWaitSemaphores = &s.wait.semaphore;
    info.pWaitDstStageMask = &stages;
    info.signalSemaphoreCount = timeline.signalSemaphoreValueCount;
    info.pSignalSemaphores = semaphores + first;
    result = submit_locked(info);
  }
  // Its ticket can never be reached then: nothing that follows would be right.
  if (result != VK_SUCCESS) device_.mark_lost(fmt::format("vkQueueSubmit ({})", to_string(result)));
  s.state.store(result == VK_SUCCESS ? Submission::State::given : Submission::State::failed, std::memory_order_release);
}

VkResult Submitter::submit_locked(const VkSubmitInfo& info) {
  if (lose_.load(std::memory_order_relaxed)) return VK_ERROR_DEVICE_LOST;
  struct OwnersLock {
    Submitter& s;
    explicit OwnersLock(Submitter& s) : s(s) {
      if (s.lock_) s.lock_();
    }
    ~OwnersLock() {
      if (s.unlock_) s.unlock_();
    }
  } owners_lock(*this);
  return device_.vk().vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
}

}  // namespace weft::backend::vulkan
