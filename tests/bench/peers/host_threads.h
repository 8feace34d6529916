// Threads of the host that share the work of a kernel by hand.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weft::bench {

/// Threads that are kept alive, as many as the run has. They look for work for a while after the last one, as OpenMP's
/// do, and then sleep.
class HostThreads {
 public:
  using Work = std::function<void(std::int64_t begin, std::int64_t end)>;
  /// \param threads  the calling one included
  explicit HostThreads(int threads);
  ~HostThreads();
  HostThreads(const HostThreads&) = delete;
  HostThreads& operator=(const HostThreads&) = delete;

  /// Runs 0 to n - 1, `chunk` at a time: each thread takes the next chunk that nobody has taken. Returns when all have
  /// run. One thread may call it at a time.
  void run(std::int64_t n, std::int64_t chunk, const Work& work);

 private:
  void take_chunks();
  void serve();

  const Work* work_ = nullptr;
  std::int64_t n_ = 0, chunk_ = 1;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint32_t> job_{0}, at_work_{0};
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weft::bench
