// Giving a device's queue the work of all streams, by a thread of its own where nobody waits for that.
#pragma once
#include <volk.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "../commands/commands.h"
#include "semaphore_pool.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// Work for the queue, with what it waits for and signals. Who adds it fills it in, and leaves it alone until it is
/// over().
struct Submission {
  Commands::Rest first;              ///< is written and ended before the queue gets it; of no command buffer: none
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
  VkResult written = VK_SUCCESS;  ///< of `first`, once that is
  VkCommandBuffer ended = nullptr;
  Submission* next = nullptr;  ///< in the list
};

/// A list of submissions that reach the queue in the order in which they were added.
///
/// What a driver does for a launch, writing commands and submitting them, costs several times what weft does before
/// (an H200: 1.05 us for a barrier and a dispatch). Where the work is much, a thread of the submitter's own does that
/// while the stream's thread goes on. Where it is little, or somebody waits for it, the caller does it itself, for to
/// wake a thread takes tens of microseconds; who waits does also what stands before it in the list and has not been
/// begun.
///
/// No thread is used on software devices, which compute on the same processors, on adopted devices, whose owner's locks
/// and threads they are, where the thread that opens the device may use one processor alone, and with
/// WEFT_SUBMIT_THREAD=0 in the environment: then add() does all of it. Thread-safe.
class Submitter {
 public:
  enum class Urgency {
    much,    ///< for the thread
    little,  ///< for the caller, unless others come first that have not been given to the queue
    now      ///< for the caller
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
  void finish(std::uint64_t place);
  /// Behind all that was added before, at once.
  VkResult submit(const VkSubmitInfo& info);

  /// The last one given out: places grow. Others may be adding.
  std::uint64_t last_place() const { return last_place_.load(); }
  /// How many submissions the thread made. For tests.
  std::uint64_t made_by_thread() const { return made_by_thread_.load(); }
  /// For tests: the thread takes nothing from the list.
  void hold_thread(bool on);
  /// For tests: the queue answers the next submission with VK_ERROR_DEVICE_LOST.
  void lose_next() { lose_.store(true); }

  /// Room for a batch's operations, which is used again as soon as they are written.
  Kept room();
  void give_room(Kept&& room);

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

  // Held while a submission is made: whoever takes the next from the list has it, so that they stay in order.
  std::mutex queue_mutex_;
  std::atomic<int> callers_{0};         // that want it, or have it: the thread makes way for them
  std::atomic<std::uint64_t> over_{0};  // the place up to which all is over

  std::mutex list_mutex_;  // guards what follows; taken within queue_mutex_
  Submission *first_ = nullptr, *last_ = nullptr;
  std::atomic<std::uint64_t> last_place_{0};
  bool sleeps_ = false, ends_ = false, held_ = false;
  std::condition_variable wake_;
  std::thread thread_;

  std::mutex room_mutex_;
  std::vector<Kept> rooms_;  // the last one given is the first one taken: it may still be in a processor's caches

  std::atomic<std::uint64_t> made_by_thread_{0};
  std::atomic<bool> lose_{false};
};

}  // namespace weft::backend::vulkan
