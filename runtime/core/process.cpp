// The devices of the process, and what is done with them at its end and around its forks.
#include "process.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "state.h"

namespace weft::detail {

namespace {

/// All devices that live. Never destroyed: static objects of a program may hold devices.
struct Known {
  std::mutex mutex;
  std::vector<std::weak_ptr<DeviceState>> devices;
  std::vector<DeviceState*> left_behind;  ///< see forget()
  std::atomic<int> in_driver = 0;         ///< threads, see InDriver
  std::atomic<bool> half_forked = false;  ///< see refuse_half_forked()
  std::atomic<OpenDevices*> open = new OpenDevices;

  static Known& all() {
    static Known* const known = new Known;
    return *known;
  }
};

// In the child of a fork a device cannot be taken apart: its threads are missing, and some of its locks may be held by
// them for ever.
void forget(DeviceState* device) {
  if (!device->left_behind.load()) {
    const InDriver closing;
    return void(delete device);
  }
  Known& known = Known::all();
  std::lock_guard lock(known.mutex);
  known.left_behind.push_back(device);
}

// Drivers have static objects and threads. What still runs when the former are destroyed crashes; what waits for the
// latter when they are gone waits for ever.
void end_devices() {
  std::vector<std::shared_ptr<DeviceState>> devices;
  {
    Known& known = Known::all();
    std::lock_guard lock(known.mutex);
    for (const auto& device : known.devices)
      if (auto living = device.lock()) devices.push_back(std::move(living));
  }
  for (const auto& device : devices) {
    if (device->left_behind.load()) continue;
    for (StreamState* stream : device->all_streams()) stream->end();
    device->device->process_ends();
  }
}

void lock_known() { Known::all().mutex.lock(); }
void unlock_known() { Known::all().mutex.unlock(); }
void leave_devices_behind() {
  Known& known = Known::all();
  for (const auto& device : known.devices)
    if (const auto living = device.lock(); living && living->device->leave_behind()) living->left_behind.store(true);
  if (known.in_driver.exchange(0) > 0) known.half_forked = true;
  OpenDevices* const open = known.open;
  if (open->mutex.try_lock())
    open->mutex.unlock();
  else
    known.open = new OpenDevices{.before = open};  // locked for ever, by a thread that is not here
  unlock_known();
}

// When the library is loaded, since hardly any other thread forks then: in the child of a fork that falls into the
// making of a static object of a function, nobody would ever finish it. (To register waits for forks: it would often
// fall there.)
[[maybe_unused]] const bool watched =
    (platform::around_forks(lock_known, unlock_known, leave_devices_behind), Known::all(), true);

}  // namespace

InDriver::InDriver() { ++Known::all().in_driver; }

InDriver::~InDriver() {
  // In the child of a driver's own fork, nobody is counted.
  std::atomic<int>& in_driver = Known::all().in_driver;
  for (int n = in_driver; n > 0 && !in_driver.compare_exchange_weak(n, n - 1);) {
  }
}

OpenDevices& open_devices() { return *Known::all().open.load(); }

void refuse_half_forked() {
  if (Known::all().half_forked)
    throw Error(ErrorKind::device_lost,
                "this process was forked while another thread was opening or closing a device: fork before the first "
                "device is opened, or start another program in the child");
}

std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device) {
  end_with_process();
  const std::shared_ptr<DeviceState> state(device.release(), forget);
  Known& known = Known::all();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.devices, [](const auto& d) { return d.expired(); });
  known.devices.push_back(state);
  return state;
}

void end_with_process() {
  // A thread that is not here may hold the C library's lock of what exits call, for ever: exit() itself waits then.
  if (!Known::all().half_forked) platform::at_exit(end_devices);
}

}  // namespace weft::detail
