// What becomes of devices when their process ends, and in the child of a fork. Internal.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace weft::detail {

struct DeviceState;

/// While a thread opens, closes or looks for devices, and so is in code of drivers and of the loader. A fork of another
/// thread does not wait for that, since what it waits for may wait for the fork: locks that the C library holds around
/// forks, or a fork of the driver's own. Its child cannot go on with what was half done, and opens no Vulkan device.
class InDriver {
 public:
  InDriver();
  ~InDriver();
  InDriver(const InDriver&) = delete;
};

/// The devices that are open under their names.
struct OpenDevices {
  std::mutex mutex = {};  ///< while a device is opened, too: two threads get the same
  std::map<std::string, std::weak_ptr<DeviceState>, std::less<>> by_name = {};
  OpenDevices* before = nullptr;  ///< that of the parent, which is never taken apart
};
/// Those of this process: with no lock that a thread of its parent's holds.
OpenDevices& open_devices();
/// Errors: Error(device_lost) in the child of a fork that another thread's opening or closing a device fell into.
void refuse_half_forked();

/// A device of this process's, which is waited for when that ends and left behind in the child of a fork.
std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device);
/// Of a thread that has devices: all that live are waited for when it ends the process, see platform::at_exit().
void end_with_process();

}  // namespace weft::detail
