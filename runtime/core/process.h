// The devices of a process: their end with it, and in the child of a fork. Internal.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace weft::detail {

struct DeviceState;

/// A scope in which a thread opens, closes or lists devices, and so is in code of drivers and of the loader. A fork by
/// another thread does not wait for its end, because the driver may wait for the fork: for locks that the C library
/// holds around forks, or for a fork of its own. The child of such a fork cannot finish what was half done, and opens
/// no Vulkan device.
class InDriver {
 public:
  InDriver();
  ~InDriver();
  InDriver(const InDriver&) = delete;
};

/// The devices that are open, by name.
struct OpenDevices {
  std::mutex mutex = {};  ///< held while a device is opened, too, so that two threads get the same one
  std::map<std::string, std::weak_ptr<DeviceState>, std::less<>> by_name = {};
  OpenDevices* before = nullptr;  ///< the list of the parent process, which is never destroyed
};
/// The open devices of this process. No thread of the parent process holds the mutex.
OpenDevices& open_devices();
/// Refuses to open a device in the child of a fork that came while another thread was opening or closing one.
/// Errors: Error(device_lost) in such a child.
void refuse_half_forked();

/// Makes a device known to the process, whose end waits for it. In the child of a fork it is left behind.
std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device);
/// Makes the end of the process wait for all living devices, if this thread ends it. Called by each thread that has
/// devices; see platform::at_exit().
void end_with_process();

}  // namespace weft::detail
