// Runs the tests on a device whose driver compiles and does not run: see stand_in/hardware_layer.cpp.
#include <gtest/gtest.h>

#include "../../frontend/support/platform.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Everything is compiled each time.
  weft::platform::set_environment("WEFT_CACHE", "0");
  return RUN_ALL_TESTS();
}
