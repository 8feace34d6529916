// A device whose driver compiles and does not run, and what was compiled on it.
#pragma once
#include <gtest/gtest.h>
#include <weft/weft.h>

namespace weft::test {

/// A test whose device compiles what it is given and never runs it: there are no results to look at. A kernel that the
/// driver refuses is an Error, and one that the driver cannot bear ends the program.
class CompileTest : public testing::Test {
 protected:
  CompileTest();
  /// The test's own device, for which nothing was compiled before.
  const Device& device() const { return device_; }
  /// Expects, at the end of a test, that this many kernels or more were given to the driver.
  void expect_compiled(std::uint64_t kernels) const;

 private:
  Device device_;
};

}  // namespace weft::test
