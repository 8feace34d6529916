// Adopted Vulkan devices, and operations that only Vulkan devices have.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../backend.h"
#include "handles.h"
#include "shared_memory.h"

namespace weft {

/// The optional features and extensions that weft uses if an adapter has them, for a program that makes its own
/// VkDevice: docs/embedding.md has the list. Must live until vkCreateDevice has been called.
class VulkanRequirements {
 public:
  /// \param api_version  of the instance, as in VulkanHandles
  /// Errors: Error(no_device) naming a requirement of weft's that the adapter does not meet; Error(invalid_argument)
  /// for handles that are null or do not belong together; Error(unsupported) for an instance before 1.2.
  VulkanRequirements(VkInstance instance, VkPhysicalDevice physical_device, std::uint32_t api_version = 0);
  ~VulkanRequirements();
  VulkanRequirements(const VulkanRequirements&) = delete;
  VulkanRequirements& operator=(const VulkanRequirements&) = delete;

  /// Turns on the features in a chain: in its own structs, and in structs of this object's that are inserted after its
  /// head. Features that are on stay on.
  void add_features(VkPhysicalDeviceFeatures2& chain);
  /// Appends the device extensions that are not in the list yet.
  void add_extensions(std::vector<const char*>& names) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace backend {

/// Wraps a device that others made. It is not destroyed with the result.
/// Errors: see weft::Device::adopt().
std::unique_ptr<Device> adopt_vulkan(const VulkanHandles& handles);

namespace vulkan {
class Memory;
class VulkanDevice;
class VulkanTimeline;
}  // namespace vulkan

/// The Vulkan device that a device is. Others are refused with Error(unsupported) that says "`what` on <the device>".
vulkan::VulkanDevice& vulkan_device(Device& device, const char* what);

/// The memory of Vulkan devices, and what they are, for files that see no header of Vulkan. Others are refused
/// likewise.
class VulkanAccess {
 public:
  VulkanAccess(Device& device, const char* what) : device_(vulkan_device(device, what)) {}
  /// Whether the device is a Vulkan device.
  static bool fits(Device& device);

  /// VkPhysicalDeviceIDProperties::deviceUUID, which identifies the GPU to all its interfaces.
  std::array<std::uint8_t, 16> device_uuid() const;
  bool adopted() const;

  VulkanBuffer locate(std::uint64_t address, std::uint64_t bytes) const;
  /// Makes a buffer memory of the device. It is freed as wrapped memory is: see Device::wrap(). The buffer stays the
  /// caller's.
  /// Errors: Error(invalid_argument) for a null buffer, missing usage, or bytes that are memory of the device already.
  Allocation wrap(const VulkanBuffer& buffer) const;

  /// Allocates memory in a buffer of its own, which can be shared. It is freed as wrapped memory is.
  Allocation allocate_shared(std::uint64_t bytes) const;
  SharedMemory share(std::uint64_t address) const;
  /// Imports a buffer. Takes over the descriptor if it succeeds. The allocation is as large as the buffer.
  /// \param array_bytes  the least that the buffer must have
  /// Errors: as import_memory().
  Allocation import_shared(SharedMemory&& shared, std::uint64_t array_bytes) const;

  /// Imports memory that another interface to the same GPU has exported. It is freed as wrapped memory is.
  /// Errors: Error(unsupported) where the device cannot import memory, and for memory that it refuses.
  Allocation import_foreign(FileDescriptor&& fd, std::uint64_t bytes) const;
  /// The attachment of the page at an address: made by the first call, dropped before the page's memory.
  /// Errors: Error(unsupported) for memory that cannot be exported; whatever `make` throws.
  PageAttachment attach(std::uint64_t address, const MakeAttachment& make) const;
  /// Whether memory at an address can have an attachment.
  bool shares(std::uint64_t address) const;
  /// Whether the host reads mapped memory at an address fast; with 0, whether it does so for arrays' memory.
  bool host_reads_fast(std::uint64_t address) const;

 private:
  /// Errors: Error(device_lost).
  vulkan::Memory& memory() const;

  vulkan::VulkanDevice& device_;
};

/// Whether the queue has work of weft's that waits for a semaphore of another's: nothing after it ends before somebody,
/// perhaps the host, signals the semaphore. False for other devices.
bool held_up(Device& device);

}  // namespace backend
}  // namespace weft
