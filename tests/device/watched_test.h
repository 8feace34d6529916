// A fixture for tests of waiting: a test that hangs fails by its name.
#pragma once
#include "../common/watchdog.h"
#include "device_test.h"

namespace weft::test {

class WatchedTest : public DeviceTest {
 private:
  const Watchdog watchdog_;
};

}  // namespace weft::test

/// Defines a suite like DEVICE_TEST.
#define WATCHED_TEST(Suite)                          \
  class Suite : public ::weft::test::WatchedTest {}; \
  ON_EVERY_DEVICE(Suite)
