// The base of all holders of a device's Vulkan objects: the device can take the objects from them.
#pragma once

namespace weft::backend::vulkan {

class VulkanDevice;

/// A holder of Vulkan objects of a device that may go first: see VulkanDevice::detach().
class DeviceObject {
 public:
  explicit DeviceObject(VulkanDevice& device);
  DeviceObject(const DeviceObject&) = delete;
  DeviceObject& operator=(const DeviceObject&) = delete;
  /// Releases the Vulkan objects; from then on the holder asks the device for nothing.
  virtual void abandon() = 0;

 protected:
  ~DeviceObject();
  VulkanDevice& device_;
};

}  // namespace weft::backend::vulkan
