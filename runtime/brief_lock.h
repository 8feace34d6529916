// A lock for what is held for some instructions. Internal to the runtime.
#pragma once
#include <atomic>
#include <thread>

namespace weft::detail {

/// As std::mutex, for std::lock_guard. Who finds it taken tries again, and lets others run meanwhile. Cost: one
/// exchange with other processors where a mutex has two and calls for each: a launch takes the lock of each of its
/// arrays.
class BriefLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_ = false;
};

}  // namespace weft::detail
