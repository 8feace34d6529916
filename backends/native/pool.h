// Host threads that share the work of a launch.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace weft::backend::native {

/// A pool of host threads. A job is a range of units, cut into chunks; each thread has a part of neighbouring chunks of
/// its own, works through it from the front, and then takes chunks from the ends of others' parts.
///
/// The calling thread works too, and waits only for chunks that others have begun: a thread that wakes late, or never,
/// delays nothing. Threads start when a job first has a use for them. They look for the next job for some microseconds
/// and then sleep.
class Pool {
 public:
  /// Runs units `begin` to `end` - 1. The threads of a job have numbers below threads(), the calling one 0; each runs
  /// one chunk at a time.
  using Work = void (*)(void* what, int thread, std::int64_t begin, std::int64_t end) noexcept;

  /// \param threads  the most that work on a job, with the calling one; at least 1
  explicit Pool(int threads);
  /// Waits for the end of the threads. No job may be running.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  /// The threads that were started so far, the calling one included.
  int started() const { return started_.load(std::memory_order_relaxed) + 1; }

  /// Runs each unit below `units` once, and returns when all have run. Any number of host threads may call it at once:
  /// jobs that are shared run one after the other; one for a single thread (of one chunk, or with `most` 1) runs at
  /// once on the calling one, beside others. A job of a job runs on its own thread alone.
  /// \param chunk  units that a thread takes at a time, at least 1; a multiple of it where they are very many
  /// \param most   threads for which the job is large enough
  void run(std::int64_t units, std::int64_t chunk, int most, Work work, void* what);

  /// The same with a function object f(thread, begin, end) noexcept.
  template <class F>
  void run(std::int64_t units, std::int64_t chunk, int most, F&& f) {
    using Function = std::remove_reference_t<F>;
    const Work work = [](void* what, int thread, std::int64_t begin, std::int64_t end) noexcept {
      (*static_cast<Function*>(what))(thread, begin, end);
    };
    run(units, chunk, most, work, const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  // The chunks of a part that nobody has taken: the number of the job, the first chunk, the one after the last. A
  // thread that comes late from an earlier job finds another number, so that it takes nothing.
  struct alignas(64) Part {
    std::atomic<std::uint64_t> left = 0;
  };
  enum class Side { front, back };

  void live(int thread);
  std::uint32_t next_job(std::uint32_t seen);
  void publish(std::int64_t units, std::int64_t chunk, int parts, Work work, void* what);
  void call_threads(int wanted);
  void ring();
  void take_part(int thread, std::uint32_t job);
  static std::uint32_t take(Part& part, std::uint32_t job, Side side);
  void wait_for_begun();

  const int threads_;
  std::mutex turn_;  ///< held by the thread whose job runs
  std::atomic<std::uint32_t> job_ = 0;
  // The job. Threads that come late read these while the next job is written; what they read is used only if they then
  // get a chunk.
  std::atomic<Work> work_ = nullptr;
  std::atomic<void*> what_ = nullptr;
  std::atomic<std::int64_t> units_ = 0, chunk_ = 1;
  std::atomic<std::uint32_t> chunks_ = 0;
  std::atomic<int> num_parts_ = 0;
  std::unique_ptr<Part[]> parts_;  ///< by thread

  alignas(64) std::atomic<std::uint32_t> finished_ = 0;  ///< chunks
  alignas(64) std::atomic<int> awake_ = 0;               ///< threads of the pool that work, or look for a job
  std::atomic<int> to_wake_ = 0;                         ///< sleeping threads that the job still wants
  std::atomic<int> started_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace weft::backend::native
