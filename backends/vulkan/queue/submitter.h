// Gives the queue the work of all streams, on a thread of its own if nobody waits.
#pragma once
#include <volk.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "../commands/commands.h"
#include "semaphore_pool.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Work for the queue, with its wait and its signals. The thread that adds it fills it in, and leaves it alone until it
/// is over().
struct Submission {
  Commands::Rest first;              ///< is written and ended before the queue gets it; without a command buffer: none
  VkCommandBuffer second = nullptr;  ///< a finished one
  Point wait, signal;                ///< semaphores of others, or null
  Point ticket;                      ///< signalled when the work has run
  std::uint64_t place = 0;           ///< in the queue; set by add()

  /// Whether the queue has the work, or never will.
  bool over() const { return state.load(std::memory_order_acquire) != State::waits; }
  /// Whether the queue never will have it, because the device is lost.
  bool failed() const { return state.load(std::memory_order_acquire) == State::failed; }

  enum class State : std::uint8_t { waits, given, failed };
  std::atomic<State> state{State::given};
  VkResult written = VK_SUCCESS;  ///< result of writing `first`
  VkCommandBuffer ended = nullptr;
  Submission* next = nullptr;  ///< in the list
};

/// A list of submissions that reach the queue in the order in which they were added.
///
/// For a launch, a driver's writing and submitting of commands costs several times as much as weft's part (an H200:
/// 1.05 us for a barrier and a dispatch). If there is much of it, a thread of the submitter's does that while the
/// stream's thread goes on. If there is little, or somebody waits for it, the caller does it, because waking a thread
/// takes tens of microseconds; a waiting caller also makes the submissions before its own that nobody has begun.
///
/// No thread is used on software devices, which compute on the same processors; on adopted devices, whose owners' locks
/// would be called on it; if the thread that opens the device may use only one processor; and with WEFT_SUBMIT_THREAD=0
/// in the environment. Then add() does all the work. Thread-safe.
class Submitter {
 public:
  enum class Urgency {
    much,    ///< for the thread
    little,  ///< for the caller, unless earlier submissions are still in the list
    now      ///< for the caller
  };

  explicit Submitter(VulkanDevice& device) : device_(device) {}
  ~Submitter();
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  /// \param lock, unlock  called around each use of the queue, if set
  void open(VkQueue queue, bool with_thread, std::function<void()> lock, std::function<void()> unlock);
  /// Allows or forbids the thread. For tests and benchmarks: no stream may be in use.
  void use_thread(bool on);
  bool uses_thread() const { return with_thread_.load(std::memory_order_relaxed); }

  void add(Submission& work, Urgency urgency);
  /// Returns when all submissions up to a place are over.
  void finish(std::uint64_t place);
  /// Submits at once, after everything that was added before.
  VkResult submit(const VkSubmitInfo& info);

  /// The last place given out; places grow. Other threads may be adding.
  std::uint64_t last_place() const { return last_place_.load(); }
  /// Submissions that the thread made. For tests.
  std::uint64_t made_by_thread() const { return made_by_thread_.load(); }
  /// For tests: the thread takes nothing from the list.
  void hold_thread(bool on);
  /// For tests: the queue answers the next submission with VK_ERROR_DEVICE_LOST.
  void lose_next() { lose_.store(true); }

 private:
  void work();
  bool make_next(std::uint64_t place);
  void write(Submission& s) noexcept;
  void make(Submission& s) noexcept;
  VkResult submit_locked(const VkSubmitInfo& info);
  class Turn;

  VulkanDevice& device_;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::function<void()> lock_, unlock_;
  std::atomic<bool> with_thread_{false};

  // Held while a submission is made. The thread that takes the next one from the list holds it, so that submissions
  // stay in order.
  std::mutex queue_mutex_;
  std::atomic<int> callers_{0};         // that want it, or have it: the thread makes way for them
  std::atomic<std::uint64_t> over_{0};  // the place up to which all are over

  std::mutex list_mutex_;  // guards the members below; taken within queue_mutex_
  Submission *first_ = nullptr, *last_ = nullptr;
  std::atomic<std::uint64_t> last_place_{0};
  bool sleeps_ = false, ends_ = false, held_ = false;
  std::condition_variable wake_;
  std::thread thread_;

  std::atomic<std::uint64_t> made_by_thread_{0};
  std::atomic<bool> lose_{false};
};

}  // namespace weft::backend::vulkan
