// What weft and a program with a Vulkan device of its own hand each other. Needs none of Vulkan's headers, and agrees
// with all of them, before or after it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

// Declared as vulkan_core.h declares them: handles that are not dispatched are integers on machines of 32 bits.
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

/// A Vulkan device that another part of the program has made, with what it was made with: Vulkan does not tell. All
/// pointers are read within the call that is given them.
struct VulkanHandles {
  VkInstance instance{};
  VkPhysicalDevice physical_device{};
  VkDevice device{};
  VkQueue queue{};                 ///< of a family with VK_QUEUE_COMPUTE_BIT
  std::uint32_t queue_family = 0;  ///< of `queue`
  /// VkApplicationInfo::apiVersion of the instance: at least 1.2, which 0 stands for.
  std::uint32_t api_version = 0;
  /// VkDeviceCreateInfo::ppEnabledExtensionNames. What is not named is not used.
  std::vector<const char*> extensions;
  /// VkDeviceCreateInfo::pNext: the chain with VkPhysicalDeviceFeatures2, VkPhysicalDeviceVulkan12Features, and so on,
  /// or structs of single features. What is not turned on here is not used.
  const void* features = nullptr;
  /// VkDeviceCreateInfo::pEnabledFeatures, where that was used.
  const VkPhysicalDeviceFeatures* core_features = nullptr;
  /// Called around each vkQueueSubmit of weft's, on any thread that uses the device. Without them nobody else may use
  /// the queue while a call of weft's is under way. They must not throw, and not be held by who calls weft.
  std::function<void()> lock, unlock;
};

/// A piece of a VkBuffer.
struct VulkanBuffer {
  VkBuffer buffer{};
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t address = 0;  ///< of the first byte, for shaders (vkGetBufferDeviceAddress + offset)
  std::uint32_t usage = 0;    ///< VkBufferUsageFlags that the buffer was made with
};

}  // namespace weft
