// The devices of the process, and what is done with them at its end and around its forks.
#include "process.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "../frontend/support/platform.h"
#include "state.h"

namespace weft::detail {

namespace {

/// All devices that live. Never destroyed: static objects of a program may hold devices.
struct Known {
  std::mutex opening;                   ///< see hold_forks(); taken before `mutex`
  std::atomic<std::thread::id> opener;  ///< who holds it
  std::mutex mutex;
  std::vector<std::weak_ptr<DeviceState>> devices;
  std::vector<DeviceState*> left_behind;  ///< see forget()

  static Known& all() {
    static Known* const known = new Known;
    return *known;
  }
};

// In the child of a fork a device cannot be taken apart: its threads are missing, and some of its locks may be held by
// them for ever.
void forget(DeviceState* device) {
  if (!device->left_behind.load()) return void(delete device);
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

// Drivers fork too while they are opened (NVIDIA's, for a program that loads its module): on the thread that opens
// them.
bool is_opener() { return Known::all().opener.load() == std::this_thread::get_id(); }

void lock_known() {
  if (!is_opener()) Known::all().opening.lock();
  Known::all().mutex.lock();
}

void unlock_known() {
  Known::all().mutex.unlock();
  if (!is_opener()) Known::all().opening.unlock();
}

void leave_devices_behind() {
  for (const auto& device : Known::all().devices)
    if (const auto living = device.lock(); living && living->device->leave_behind()) living->left_behind.store(true);
  unlock_known();
}

}  // namespace

ForkHold::ForkHold() : lock_(Known::all().opening, std::defer_lock) {
  static const bool watched = (platform::around_forks(lock_known, unlock_known, leave_devices_behind), true);
  (void)watched;
  lock_.lock();
  Known::all().opener = std::this_thread::get_id();
}

ForkHold::~ForkHold() { Known::all().opener = std::thread::id(); }

std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device) {
  end_with_process();
  const std::shared_ptr<DeviceState> state(device.release(), forget);
  Known& known = Known::all();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.devices, [](const auto& d) { return d.expired(); });
  known.devices.push_back(state);
  return state;
}

void end_with_process() { platform::at_exit(end_devices); }

}  // namespace weft::detail
