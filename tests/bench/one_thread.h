// Launches whose whole cost is the launching thread's.
#pragma once
#include "../../backends/vulkan/device.h"
#include "../../runtime/device.h"

namespace weft::bench {

/// While it lives, the device's thread for submissions does nothing. No stream of the device is in use.
class OneThread {
 public:
  explicit OneThread(const Device& device) {
    auto* const vulkan = dynamic_cast<backend::vulkan::VulkanDevice*>(&device.native());
    if (!vulkan || !vulkan->submitter().uses_thread()) return;
    device.synchronize();
    submitter_ = &vulkan->submitter();
    submitter_->use_thread(false);
  }
  OneThread(const OneThread&) = delete;
  ~OneThread() {
    if (submitter_) submitter_->use_thread(true);
  }
  /// Whether it makes a difference on this device.
  bool changes() const { return submitter_ != nullptr; }

 private:
  backend::vulkan::Submitter* submitter_ = nullptr;
};

}  // namespace weft::bench
