// Whether tests run at full sizes.
#pragma once
#include <cstdlib>

#include "device_test.h"

namespace weft::test {

/// Full sizes are for runs by hand, of minutes on a device and more than an hour on the interpreter: see
/// docs/CONTRIBUTING.md
inline bool full_sizes() { return std::getenv("WEFT_FULL_TESTS") != nullptr; }

/// A test of geometry: brief on the interpreter, unless full sizes are asked for.
class GeometryTest : public DeviceTest {
 protected:
  bool brief() const { return on_reference() && !full_sizes(); }
};

}  // namespace weft::test
