// What the main functions of the test programs share.
#pragma once

namespace weft::test {

/// To be called after the last test: devices report what they still have to say.
void close_devices();

}  // namespace weft::test
