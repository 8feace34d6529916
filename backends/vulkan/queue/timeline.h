// Timeline semaphores of weft's own, for others to wait for and to signal.
#pragma once
#include <volk.h>

#include <cstdint>

#include "../device_object.h"
#include "../shared_memory.h"

namespace weft::backend::vulkan {

/// A timeline semaphore of weft's: see weft::TimelineSemaphore.
class VulkanTimeline final : private DeviceObject {
 public:
  /// Errors: Error(unsupported) if a shareable one is requested and the device has none.
  VulkanTimeline(VulkanDevice& device, std::uint64_t value, bool shareable);
  /// Takes over the descriptor if it succeeds. Errors: Error(unsupported), Error(invalid_argument) for a descriptor
  /// that the driver refuses.
  VulkanTimeline(VulkanDevice& device, FileDescriptor&& fd);
  ~VulkanTimeline() { abandon(); }

  VkSemaphore vk() const { return semaphore_; }
  std::uint64_t value() const;
  void signal(std::uint64_t value);
  void wait(std::uint64_t value) const;
  FileDescriptor share() const;

 private:
  void create(std::uint64_t value, bool shareable);
  void require_sharing() const;
  void abandon() override;

  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool shareable_ = false;
};

}  // namespace weft::backend::vulkan
