// The Vulkan loader, and the instance that all devices share.
#pragma once
#include <volk.h>

#include <memory>
#include <string>
#include <vector>

#include "adapter.h"

namespace weft::backend::vulkan {

/// A VkInstance. All devices with the same need of validation share one. The plain one ends with the last of them; the
/// one with validation stays.
class Instance {
 public:
  /// The shared instance; with validation if requested here or in the environment.
  /// Errors: Error(no_device) without a loader or a driver; Error(unsupported) without the validation layer;
  /// Error(device_lost) for one that was opened before this process was forked.
  static std::shared_ptr<Instance> get(bool validation);

  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  VkInstance handle() const { return handle_; }
  /// Usable adapters come first, each group in the driver's order.
  const std::vector<Adapter>& adapters() const { return adapters_; }

 private:
  explicit Instance(bool validation);
  void find_adapters();

  const std::uint64_t process_;  ///< that opened it
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::uint32_t api_version_ = 0;
  std::vector<Adapter> adapters_;
};

/// Finds the loader and loads its functions, for an instance of any origin.
/// Errors: Error(no_device) without a loader.
void load_loader();
void load_functions(VkInstance instance);

/// "VK_ERROR_OUT_OF_DEVICE_MEMORY", ...
std::string to_string(VkResult result);

}  // namespace weft::backend::vulkan
