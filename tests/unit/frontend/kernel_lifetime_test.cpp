// Kernels that live to the end of the program.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <cstdlib>
#include <vector>

namespace {

// The container is destroyed after everything that is constructed later, including kernels of other files and the lists
// that keep account of them.
[[gnu::init_priority(200)]] std::vector<weft::Kernel<weft::Arr<float>>> kept;

TEST(KernelLifetimes, may_be_those_of_a_container_that_was_there_before_all_kernels) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto keep_and_leave = [] {
    for (int k = 0; k < 100; ++k)
      kept.push_back(weft::kernel("kept", [](weft::Arr<float> x) { x[weft::tid()] = 1.f; }));
    std::exit(0);
  };
  EXPECT_EXIT(keep_and_leave(), testing::ExitedWithCode(0), "");
}

}  // namespace
