// What all holders of a device's Vulkan objects have in common: the device can take the objects from them.
#pragma once

namespace weft::backend::vulkan {

class VulkanDevice;

/// Something that holds Vulkan objects of a device, which may go before it does: see VulkanDevice::detach().
class DeviceObject {
 public:
  explicit DeviceObject(VulkanDevice& device);
  DeviceObject(const DeviceObject&) = delete;
  DeviceObject& operator=(const DeviceObject&) = delete;
  /// Gives back the Vulkan objects, and asks the device for nothing from then on.
  virtual void abandon() = 0;

 protected:
  ~DeviceObject();
  VulkanDevice& device_;
};

}  // namespace weft::backend::vulkan
