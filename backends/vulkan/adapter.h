// The capabilities of each adapter: what it has of the features, extensions and limits that weft asks for.
#pragma once
#include <volk.h>

#include <array>
#include <string>
#include <vector>

#include "../../spirv/emit.h"
#include "../backend.h"
#include "features.h"
#include "vulkan.h"

namespace weft::backend::vulkan {

/// The usage of each of weft's buffers, by weft and by renderers that draw from it; see Adapter::buffer_usage().
constexpr VkBufferUsageFlags kBufferUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
    VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_INDEX_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
    VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;

/// The further usage on devices with hardware ray queries.
constexpr VkBufferUsageFlags kRayUsage = VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_STORAGE_BIT_KHR |
                                         VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_BIT_KHR;

/// An adapter: all its capabilities, or those with which another's device on it was made.
struct Adapter {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::string missing;  ///< the first required feature that it lacks, or empty
  DeviceInfo info;
  spirv::Target target;
  std::uint32_t api_version = 0;  ///< the lower of the instance's and the driver's
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;  ///< of that family's clock; 0: it has none
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::array<std::uint8_t, VK_UUID_SIZE> device_uuid{}, driver_uuid{};
  Features features;           ///< only those that weft uses
  Extensions extensions;       ///< all of them; weft uses some
  bool memory_budget = false;  ///< VK_EXT_memory_budget
  bool portability_subset = false;
  bool ray_query = false;                     ///< VK_KHR_ray_query, with VK_KHR_acceleration_structure
  std::uint32_t ray_scratch_alignment = 256;  ///< minAccelerationStructureScratchOffsetAlignment
  /// VK_EXT_external_memory_host: alignment of host memory that is imported, at both ends; 0: not supported.
  std::uint64_t host_import_alignment = 0;
  bool memory_fd = false;  ///< VK_KHR_external_memory_fd: buffers can be exported and imported
  /// Every page is made exportable, because CUDA may be asked for it. The cost has not been measured. Drivers of GPUs
  /// that CUDA does not have need not pay it: some manage exported memory in other ways than their own.
  bool shares_pages = false;
  bool semaphore_fd = false;  ///< VK_KHR_external_semaphore_fd: timeline semaphores can

  /// The extensions to turn on when a device for weft is made.
  std::vector<const char*> used_extensions() const;

  VkBufferUsageFlags buffer_usage() const { return kBufferUsage | (ray_query ? kRayUsage : 0); }
};

/// The capabilities of a device made with these extensions and features, on a queue of this family.
Adapter describe(VkPhysicalDevice physical, std::uint32_t api_version, const Extensions& extensions,
                 const Features& features, std::uint32_t queue_family);
/// The capabilities of an adapter that weft can use. A version below 1.2 is named in `missing` and nothing else is
/// queried.
Adapter describe(VkPhysicalDevice physical, std::uint32_t instance_version);

std::vector<VkQueueFamilyProperties> queue_families(VkPhysicalDevice physical);

/// DeviceInfo::dispatch_budget: half a second for GPUs, a quarter of what Windows allows.
double dispatch_budget_of(VkPhysicalDeviceType type, std::uint32_t timestamp_bits);

}  // namespace weft::backend::vulkan
