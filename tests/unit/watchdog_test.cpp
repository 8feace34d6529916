// The fate of a test that hangs.
#include "../common/watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using weft::test::Watchdog;

namespace {

TEST(Watchdogs, end_a_program_whose_test_hangs_and_name_the_test) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto hang = [] {
    const Watchdog watchdog(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(1),
              "Watchdogs.end_a_program_whose_test_hangs_and_name_the_test hangs: it has not ended after 0.01 s");
}

TEST(Watchdogs, go_with_their_test) {
  const auto begin = std::chrono::steady_clock::now();
  { const Watchdog watchdog; }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Watchdog::kPatience / 2);
}

}  // namespace
