// Functions that the main functions of the test programs share.
#pragma once

namespace weft::test {

/// Closes all devices, which report what they still have to say. To be called after the last test.
void close_devices();

}  // namespace weft::test
