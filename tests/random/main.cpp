// Runs the random programs without the validation layers, which cost far more than the programs. The validator of
// SPIRV-Tools checks each program instead.
#include <gtest/gtest.h>

#include "../../frontend/support/platform.h"
#include "../device/devices.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Thousands of kernels that are never used again do not belong in a cache.
  weft::platform::set_environment("WEFT_CACHE", "0");
  const int failed = RUN_ALL_TESTS();
  weft::test::close_devices();
  return failed;
}
