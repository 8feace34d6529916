// The device that is not there, and the kernels that are counted.
#include "compile_test.h"

namespace weft::test {

// A device that stays to the end of the program: without any, the driver's library would be unloaded, and its leaks
// would be reported without a name. It is visible to other files, because compilers leave out a variable that nobody
// reads, and then it would be a leak itself.
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
