// The device that is not there, and the kernels that are counted.
#include "compile_test.h"

namespace weft::test {

namespace {
// It stays to the end: with it the driver's library would go, and what that has leaked would have no name.
const Device& the_device() {
  static const Device* const device = new Device("vulkan:0");
  return *device;
}
}  // namespace

void CompileTest::SetUpTestSuite() {
  // Any other device would run what is asked for here, of which some has no end without results.
  ASSERT_NE(the_device().adapter().find("Null hardware"), std::string::npos) << the_device().adapter();
}

const Device& CompileTest::device() const { return the_device(); }

void CompileTest::expect_compiled(std::uint64_t kernels) {
  device().synchronize();
  EXPECT_GE(device().compile_counts().compiled - before_, kernels);
}

}  // namespace weft::test
