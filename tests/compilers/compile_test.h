// A device whose driver compiles and does not run, and what was compiled on it.
#pragma once
#include <gtest/gtest.h>
#include <weft/weft.h>

namespace weft::test {

/// What a test gives the device is compiled by its driver and never done: there are no results to look at. A kernel
/// that the driver refuses is an Error, and one that it cannot bear ends the program.
class CompileTest : public testing::Test {
 protected:
  static void SetUpTestSuite();
  const Device& device() const;
  /// At the end of a test: so many kernels or more have been compiled by then.
  void expect_compiled(std::uint64_t kernels);

 private:
  std::uint64_t before_ = device().compile_counts().compiled;
};

}  // namespace weft::test
