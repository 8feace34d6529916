// Runs a body for every size of subgroup that the reference device can have.
#pragma once
#include "../../frontend/support/platform.h"
#include "device_test.h"

namespace weft::test {

/// Runs the body on the device; if that is the reference, on one for each size of subgroup.
template <class F>
void on_all_sizes(const Device& device, bool reference, F body) {
  if (!reference) return body(device);
  for (int size : {4, 8, 16, 32, 64, 128}) {
    platform::set_environment("WEFT_SUBGROUP_SIZE", std::to_string(size).c_str());
    Device sized = Device::open("reference");
    platform::set_environment("WEFT_SUBGROUP_SIZE", nullptr);
    SCOPED_TRACE(size);
    body(sized);
  }
}

}  // namespace weft::test
