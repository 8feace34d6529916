// Makes waiting tests fail by name, instead of hanging until somebody ends the program.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace weft::test {

/// Ends the program with a message that names the test, unless this object is destroyed in time. Nothing less ends a
/// hanging test, because the waiting threads hold what its end needs.
class Watchdog {
 public:
  static constexpr std::chrono::seconds kPatience{100};  ///< suffices for sanitizers on a busy machine, too

  explicit Watchdog(std::chrono::milliseconds patience = kPatience) {
    std::string name = "a part outside of all tests";
    if (const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info())
      name = std::string(test->test_suite_name()) + "." + test->name();
    thread_ = std::thread([this, patience, name] {
      std::unique_lock lock(mutex_);
      if (ended_.wait_for(lock, patience, [this] { return over_; })) return;
      std::fprintf(stderr, "%s hangs: it has not ended after %.3g s\n", name.c_str(), double(patience.count()) * 1e-3);
      std::fflush(nullptr);
      std::_Exit(1);
    });
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace weft::test
