// Giving a device's queue the work of all streams, by a thread of its own where nobody waits for that.
#pragma once
#include <volk.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "commands.h"
#include "semaphore_pool.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Work for the queue, with what it waits for and signals. Who adds it fills it in, and leaves it alone until it is
/// over().
struct Submission {
  Commands::Rest first;              ///< written and ended when its turn comes; of no command buffer: none
  VkCommandBuffer second = nullptr;  ///< one that is ready
  Point wait, signal;                ///< of others, or null
  Point ticket;                      ///< is signalled when it has run
  std::uint64_t place = 0;           ///< in the queue; given by add()

  /// Whether the queue has it, or never will.
  bool over() const { return state.load(std::memory_order_acquire) != State::waits; }
  /// Whether it never will: the device is lost.
  bool failed() const { return state.load(std::memory_order_acquire) == State::failed; }

  enum class State : std::uint8_t { waits, given, failed };
  std::atomic<State> state{State::given};
};

/// A list of submissions that reach the queue in the order in which they were added.
///
/// What a driver does for a launch, writing commands and submitting them, costs several times what weft does before
/// (an H200: 1.05 us for a barrier and a dispatch). Where the device is busy nobody needs that at once: a thread of the
/// submitter's own does it while the stream's thread goes on. Where the device is idle, or somebody waits for the work,
/// the caller does it itself, with all that stands before it in the list and has not been begun: to wake a thread takes
/// tens of microseconds.
///
/// No thread is used on software devices, which compute on the same processors, on adopted devices, whose owner's locks
/// and threads they are, on machines with one processor, and with WEFT_SUBMIT_THREAD=0 in the environment: then add()
/// does all of it. Thread-safe.
class Submitter {
 public:
  enum class Urgency {
    later,  ///< the device has other work
    now     ///< it is idle, or somebody waits
  };

  explicit Submitter(VulkanDevice& device) : device_(device) {}
  ~Submitter();
  Submitter(const Submitter&) = delete;
  Submitter& operator=(const Submitter&) = delete;

  /// \param lock, unlock  around each use of the queue, where they are set
  void open(VkQueue queue, bool with_thread, std::function<void()> lock, std::function<void()> unlock);
  /// Whether there may be a thread. For tests and benchmarks: no stream may be in use.
  void use_thread(bool on);
  bool uses_thread() const { return with_thread_.load(std::memory_order_relaxed); }

  void add(Submission& work, Urgency urgency);
  /// Returns when all up to a place is over.
  void finish(std::uint64_t place = ~0ull);
  /// Behind all that was added before, at once.
  VkResult submit(const VkSubmitInfo& info);

  /// The last one given out: places grow. Others may be adding.
  std::uint64_t last_place() const { return last_place_.load(); }
  /// How many submissions the thread made. For tests.
  std::uint64_t made_by_thread() const { return made_by_thread_.load(); }
  /// For tests: the queue answers the next submission with VK_ERROR_DEVICE_LOST.
  void lose_next() { lose_.store(true); }

 private:
  void work();
  bool make_next(std::uint64_t place);
  void make(Submission& s);
  VkResult submit_locked(const VkSubmitInfo& info);

  VulkanDevice& device_;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::function<void()> lock_, unlock_;
  std::atomic<bool> with_thread_{false};

  // Held while a submission is made: whoever takes the next from the list has it, so that they stay in order.
  std::mutex queue_mutex_;
  std::atomic<std::uint64_t> over_{0};  // the place up to which all is over

  std::mutex list_mutex_;  // guards what follows; taken within queue_mutex_
  std::deque<Submission*> list_;
  std::atomic<std::uint64_t> last_place_{0};
  bool sleeps_ = false, ends_ = false;
  std::condition_variable wake_;
  std::thread thread_;

  std::atomic<std::uint64_t> made_by_thread_{0};
  std::atomic<bool> lose_{false};
};

}  // namespace weft::backend::vulkan
