// What becomes of devices when their process ends, and in the child of a fork. Internal.
#pragma once
#include <memory>

namespace weft::detail {

struct DeviceState;

/// A device of this process's, which is waited for when that ends and left behind in the child of a fork.
std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device);
/// Of a thread that has devices: all that live are waited for when it ends the process, see platform::at_exit().
void end_with_process();

}  // namespace weft::detail
