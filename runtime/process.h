// What becomes of devices when their process ends, and in the child of a fork. Internal.
#pragma once
#include <memory>
#include <mutex>

namespace weft::detail {

struct DeviceState;

/// Held by who opens devices or asks a driver for them, one at a time: forks of other threads wait, since what a driver
/// has half done would stay so in the child.
class ForkHold {
 public:
  ForkHold();
  ~ForkHold();

 private:
  std::unique_lock<std::mutex> lock_;
};

/// A device of this process's, which is waited for when that ends and left behind in the child of a fork.
std::shared_ptr<DeviceState> make_known(std::unique_ptr<DeviceState> device);
/// Of a thread that has devices: all that live are waited for when it ends the process, see platform::at_exit().
void end_with_process();

}  // namespace weft::detail
