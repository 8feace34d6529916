// Vulkan handles that weft and a program with its own Vulkan device exchange. Needs none of Vulkan's headers, and may
// be included with any of them, before or after.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

// Declared as in vulkan_core.h: non-dispatchable handles are integers on 32-bit machines.
typedef struct VkInstance_T* VkInstance;
typedef struct VkPhysicalDevice_T* VkPhysicalDevice;
typedef struct VkDevice_T* VkDevice;
typedef struct VkQueue_T* VkQueue;
typedef struct VkCommandBuffer_T* VkCommandBuffer;
#if UINTPTR_MAX > 0xffffffff
typedef struct VkBuffer_T* VkBuffer;
typedef struct VkSemaphore_T* VkSemaphore;
#else
typedef std::uint64_t VkBuffer;
typedef std::uint64_t VkSemaphore;
#endif
struct VkPhysicalDeviceFeatures;
struct VkPhysicalDeviceFeatures2;

namespace weft {

/// A Vulkan device that another part of the program has made, and how it was made, which Vulkan cannot tell. All
/// pointers are read only within the call that gets them.
struct VulkanHandles {
  VkInstance instance{};
  VkPhysicalDevice physical_device{};
  VkDevice device{};
  VkQueue queue{};                 ///< its family has VK_QUEUE_COMPUTE_BIT
  std::uint32_t queue_family = 0;  ///< of `queue`
  /// VkApplicationInfo::apiVersion of the instance: at least 1.2, which 0 means.
  std::uint32_t api_version = 0;
  /// VkDeviceCreateInfo::ppEnabledExtensionNames. Extensions that are not named are not used.
  std::vector<const char*> extensions;
  /// VkDeviceCreateInfo::pNext: the chain with VkPhysicalDeviceFeatures2, VkPhysicalDeviceVulkan12Features, and so on,
  /// or structs of single features. Features that are not turned on here are not used.
  const void* features = nullptr;
  /// VkDeviceCreateInfo::pEnabledFeatures, if that was used.
  const VkPhysicalDeviceFeatures* core_features = nullptr;
  /// Called around each of weft's vkQueueSubmit, on any thread that uses the device. Without them nobody else may use
  /// the queue during a call of weft's. They must not throw, and weft's callers must not hold the lock.
  std::function<void()> lock, unlock;
};

/// A piece of a VkBuffer.
struct VulkanBuffer {
  VkBuffer buffer{};
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t address = 0;  ///< of the first byte, for shaders (vkGetBufferDeviceAddress + offset)
  std::uint32_t usage = 0;    ///< the VkBufferUsageFlags of the buffer
};

}  // namespace weft
