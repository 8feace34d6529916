// The device that is not there, and the kernels that are counted.
#include "compile_test.h"

namespace weft::test {

// One stays to the end: with the last the driver's library would go, and what that has leaked would have no name. For
// others to see, as what nobody reads compilers leave out, and then this is a leak.
extern const Device* kept_device;
const Device* kept_device = nullptr;

CompileTest::CompileTest() : device_(Device::open("vulkan:0")) {
  if (!kept_device) kept_device = new Device(device_);
}

void CompileTest::expect_compiled(std::uint64_t kernels) const {
  device_.synchronize();
  EXPECT_GE(device_.compile_counts().compiled, kernels);
}

}  // namespace weft::test
