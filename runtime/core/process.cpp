// The devices of the process, which its end waits for and its forks leave behind.
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

/// All devices that live. The object is never destroyed, because static objects of a program may hold devices.
struct Known {
  std::mutex mutex;
  std::vector<std::weak_ptr<DeviceState>> devices;
  std::vector<DeviceState*> left_behind;  ///< see forget()
  std::atomic<int> in_driver = 0;         ///< number of threads in a scope InDriver
  std::atomic<bool> half_forked = false;  ///< see refuse_half_forked()
  std::atomic<OpenDevices*> open = new OpenDevices;

  static Known& all() {
    static Known* const known = new Known;
    return *known;
  }
};

// A device cannot be destroyed in the child of a fork: its threads are missing, and may hold some of its locks for
// ever.
void forget(DeviceState* device) {
  if (!device->left_behind.load()) {
    const InDriver closing;
    return void(delete device);
  }
  Known& known = Known::all();
  std::lock_guard lock(known.mutex);
  known.left_behind.push_back(device);
}

// Devices end before the static objects and threads of their drivers: work that still runs when the objects are
// destroyed crashes, and a wait for threads that are gone never ends.
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
    known.open = new OpenDevices{.before = open};  // the old one is locked for ever, by a thread of the parent
  unlock_known();
}

// The handlers are registered when the library is loaded, because hardly any other thread forks then. A fork during the
// initialisation of a function's static object would leave a child in which no thread ever finishes that. (Registering
// waits for forks, so they would often come just then.)
[[maybe_unused]] const bool watched =
    (platform::around_forks(lock_known, unlock_known, leave_devices_behind), Known::all(), true);

}  // namespace

InDriver::InDriver() { ++Known::all().in_driver; }

InDriver::~InDriver() {
  // The count never falls below zero: in the child of a driver's own fork no thread is counted.
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
  // A thread that the fork left behind may hold the C library's lock of exit handlers for ever. (Then exit() itself
  // waits, too.)
  if (!Known::all().half_forked) platform::at_exit(end_devices);
}

}  // namespace weft::detail
