// A device whose driver compiles and does not run, and what was compiled on it.
#pragma once
#include <gtest/gtest.h>
#include <weft/weft.h>

namespace weft::test {

/// What a test gives the device is compiled by its driver and never done: there are no results to look at. A kernel
/// that the driver refuses is an Error, and one that it cannot bear ends the program.
class CompileTest : public testing::Test {
 protected:
  CompileTest();
  /// This test's own, for which nothing was compiled before.
  const Device& device() const { return device_; }
  /// At the end: so many kernels or more were given to the driver.
  void expect_compiled(std::uint64_t kernels) const;

 private:
  Device device_;
};

}  // namespace weft::test
