// The list of submissions, the thread that makes them, and how they are made.
#include "submitter.h"

#include <utility>

#include "../../../frontend/support/platform.h"
#include "../device.h"

namespace weft::backend::vulkan {

/// A caller's lock of the queue's mutex.
class Submitter::Turn {
 public:
  explicit Turn(Submitter& s) : s_(s) {
    ++s.callers_;
    s.queue_mutex_.lock();
  }
  Turn(const Turn&) = delete;
  ~Turn() {
    s_.queue_mutex_.unlock();
    --s_.callers_;
  }

 private:
  Submitter& s_;
};

void Submitter::open(VkQueue queue, bool with_thread, std::function<void()> lock, std::function<void()> unlock) {
  queue_ = queue;
  lock_ = std::move(lock);
  unlock_ = std::move(unlock);
  use_thread(with_thread);
}

void Submitter::use_thread(bool on) {
  if (on && !thread_.joinable() && platform::processors() > 1) try {
      thread_ = platform::helper_thread("weft submits", [this] { work(); });
    } catch (const std::exception&) {
      // The system has no more threads.
    }
  with_thread_.store(on && thread_.joinable());
}

void Submitter::hold_thread(bool on) {
  {
    std::lock_guard lock(list_mutex_);
    held_ = on;
  }
  wake_.notify_one();
}

Submitter::~Submitter() {
  {
    std::lock_guard lock(list_mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Submitter::add(Submission& work, Urgency urgency) {
  const bool later =
      uses_thread() && (urgency == Urgency::much || (urgency == Urgency::little && last_place_.load() > over_.load()));
  work.state.store(Submission::State::waits, std::memory_order_relaxed);
  work.next = nullptr;
  if (!later) write(work);  // before the turn, which others may want
  std::uint64_t place = 0;
  bool wake = false;
  {
    std::lock_guard lock(list_mutex_);
    place = work.place = ++last_place_;
    (last_ ? last_->next : first_) = &work;
    last_ = &work;
    wake = later && std::exchange(sleeps_, false);
  }
  if (wake) wake_.notify_one();
  if (!later) finish(place);
}

void Submitter::finish(std::uint64_t place) {
  if (over_.load(std::memory_order_acquire) >= place) return;
  const Turn turn(*this);
  while (make_next(place)) {
  }
}

VkResult Submitter::submit(const VkSubmitInfo& info) {
  const Turn turn(*this);
  const std::uint64_t before = last_place();  // no further, however fast others add
  while (make_next(before)) {
  }
  return submit_locked(info);
}

void Submitter::work() {
  std::unique_lock lock(list_mutex_);
  for (;;) {
    while ((!first_ || held_) && !ends_) {
      sleeps_ = true;
      wake_.wait(lock);
      sleeps_ = false;
    }
    if (!first_) return;
    lock.unlock();
    // A mutex goes to a running thread, which is this one, and not to a thread that has waited for it. But callers that
    // keep coming must not have it for ever: submissions before theirs are this thread's work.
    constexpr int kMostYields = 16;
    for (int k = 0; k < kMostYields && callers_.load(std::memory_order_relaxed) > 0; ++k) std::this_thread::yield();
    {
      std::lock_guard turn(queue_mutex_);
      if (make_next(~0ull)) ++made_by_thread_;
    }
    lock.lock();
  }
}

// Called with the queue's mutex held. \return false: nothing waits up to that place
bool Submitter::make_next(std::uint64_t place) {
  Submission* s = nullptr;
  {
    std::lock_guard lock(list_mutex_);
    if (!first_ || first_->place > place) return false;
    s = first_;
    first_ = s->next;
    if (!first_) last_ = nullptr;
  }
  const std::uint64_t at = s->place;
  write(*s);
  make(*s);  // from then on it may be gone
  over_.store(at, std::memory_order_release);
  return true;
}

void Submitter::write(Submission& s) noexcept {
  if (!s.first.commands) return;
  s.ended = s.first.commands;
  if (device_.lost()) {
    s.written = VK_ERROR_DEVICE_LOST;
    s.first.commands = VK_NULL_HANDLE;
    return;
  }
  try {
    s.written = s.first.finish(device_);
  } catch (const std::exception&) {
    s.written = VK_ERROR_OUT_OF_HOST_MEMORY;
    s.first.commands = VK_NULL_HANDLE;
  }
}

void Submitter::make(Submission& s) noexcept {
  VkCommandBuffer commands[2];
  std::uint32_t count = 0;
  if (s.ended) commands[count++] = s.ended;
  if (s.second) commands[count++] = s.second;
  const char* const call = s.written != VK_SUCCESS ? "vkEndCommandBuffer" : "vkQueueSubmit";
  VkResult result = device_.lost() ? VK_ERROR_DEVICE_LOST : s.written;
  if (result == VK_SUCCESS) {
    // The other's semaphore comes first: if a driver signals one after the other, it has its value when the ticket is
    // reached.
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
  s.ended = VK_NULL_HANDLE;
  s.written = VK_SUCCESS;
  // Its ticket can never be reached then, and nothing that follows would be right.
  if (result != VK_SUCCESS) device_.mark_lost(call, result);
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
