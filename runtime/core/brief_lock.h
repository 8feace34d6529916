// A lock that is held for a few instructions. Internal to the runtime.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

namespace weft::detail {

/// A mutex for std::lock_guard. A thread that finds it taken yields and tries again; later it sleeps between tries, so
/// that threads of lower priority run as well. Cost: one atomic exchange, where std::mutex has two, and a function call
/// for each. That matters because a launch takes the lock of each of its arrays.
class BriefLock {
 public:
  void lock() {
    if (!take()) [[unlikely]]
      wait();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void wait() {
    constexpr int kTries = 100;
    for (int k = 0; !take(); ++k)
      k < kTries ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  std::atomic<bool> taken_ = false;
};

}  // namespace weft::detail
