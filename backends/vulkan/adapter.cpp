// The capabilities of adapters, and of devices that others made on them.
#include "adapter.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::backend::vulkan {

namespace {

constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";
constexpr std::uint32_t kNoFamily = ~0u;

std::string hex(const std::uint8_t (&bytes)[VK_UUID_SIZE]) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The first requirement that an adapter does not meet.
std::string lacks(const Adapter& a) {
  if (a.api_version < VK_API_VERSION_1_2)
    return fmt::format("Vulkan 1.2 (its driver has {}.{})", VK_API_VERSION_MAJOR(a.properties.apiVersion),
                       VK_API_VERSION_MINOR(a.properties.apiVersion));
  if (const Feature f = first_missing(a.features); f != Feature::count) return name_of(f);
  if (a.queue_family == kNoFamily) return "a queue for compute";
  return {};
}

void fill_target(Adapter& a, const VkPhysicalDeviceVulkan11Properties& p11,
                 const VkPhysicalDeviceVulkan12Properties& p) {
  spirv::Target& t = a.target;
  t.of_device = true;
  const Features& has = a.features;
  const bool flow = has[Feature::subgroup_uniform_flow];
  t.int8 = has[Feature::shader_int8];
  t.int16 = has[Feature::shader_int16];
  t.int64 = has[Feature::shader_int64];
  t.float16 = has[Feature::shader_float16];
  t.float64 = has[Feature::shader_float64];
  t.storage8 = has[Feature::storage_buffer8];
  t.storage16 = has[Feature::storage_buffer16];
  t.push8 = has[Feature::push_constant8];
  t.push16 = has[Feature::push_constant16];
  t.float32_atomic_add = has[Feature::buffer_float32_atomic_add];
  t.float64_atomic_add = has[Feature::buffer_float64_atomic_add];
  t.float32_shared_atomic_add = has[Feature::shared_float32_atomic_add];
  t.float64_shared_atomic_add = has[Feature::shared_float64_atomic_add];
  t.int64_atomics = has[Feature::buffer_int64_atomics];
  t.int64_shared_atomics = has[Feature::shared_int64_atomics];
  t.memory_model = has[Feature::memory_model] && has[Feature::memory_model_device_scope];
  const VkSubgroupFeatureFlags subgroup = p11.subgroupSupportedOperations;
  t.subgroup_vote = subgroup & VK_SUBGROUP_FEATURE_VOTE_BIT;
  t.subgroup_arithmetic = subgroup & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  t.subgroup_ballot = subgroup & VK_SUBGROUP_FEATURE_BALLOT_BIT;
  t.subgroup_shuffle = subgroup & VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  t.subgroup_narrow_wide = has[Feature::subgroup_extended_types];
  t.subgroup_uniform_flow = flow;
  // llvmpipe runs a subgroup as one vector with a mask of its lanes: no lane can run ahead, with or without the
  // extension.
  t.lanes_in_step = p.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
  t.subgroups_meet_again = flow || t.lanes_in_step;
  t.subgroup_size = a.info.subgroup_size;
  t.pairs_in_words = t.int64 && a.info.software;
  // If the controls of different widths depend on each other, only the one that matters is requested, because a kernel
  // may use any set of them.
  const bool free32 = p.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  const bool free_all = p.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  t.round_even16 = free_all && p.shaderRoundingModeRTEFloat16;
  t.round_even32 = free32 && p.shaderRoundingModeRTEFloat32;
  t.round_even64 = free_all && p.shaderRoundingModeRTEFloat64;
  t.keep_nan16 = p.shaderSignedZeroInfNanPreserveFloat16;
  t.keep_nan32 = p.shaderSignedZeroInfNanPreserveFloat32;
  t.keep_nan64 = p.shaderSignedZeroInfNanPreserveFloat64;
  t.ray_query = a.ray_query;
  t.max_block = a.info.max_block;
}

// The driver's support for a kind of external handle to a buffer's memory.
VkExternalMemoryFeatureFlags external_memory(VkPhysicalDevice handle, VkBufferUsageFlags usage,
                                             VkExternalMemoryHandleTypeFlagBits type) {
  VkPhysicalDeviceExternalBufferInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  info.usage = usage;
  info.handleType = type;
  VkExternalBufferProperties found{};
  found.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
  vkGetPhysicalDeviceExternalBufferProperties(handle, &info, &found);
  return found.externalMemoryProperties.externalMemoryFeatures;
}

// Whether buffers can be placed in host memory that holds more than the buffer.
bool can_import_host_memory(VkPhysicalDevice handle, VkBufferUsageFlags usage) {
  const VkExternalMemoryFeatureFlags features =
      external_memory(handle, usage, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
  return (features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) &&
         !(features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

bool can_share_memory(VkPhysicalDevice handle, VkBufferUsageFlags usage) {
  constexpr VkExternalMemoryFeatureFlags kBoth =
      VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
  return (external_memory(handle, usage, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) & kBoth) == kBoth;
}

bool can_share_timelines(VkPhysicalDevice handle) {
  VkSemaphoreTypeCreateInfo timeline{};
  timeline.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  timeline.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkPhysicalDeviceExternalSemaphoreInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO;
  info.pNext = &timeline;
  info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkExternalSemaphoreProperties found{};
  found.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES;
  vkGetPhysicalDeviceExternalSemaphoreProperties(handle, &info, &found);
  constexpr VkExternalSemaphoreFeatureFlags kBoth =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  return (found.externalSemaphoreFeatures & kBoth) == kBoth;
}

}  // namespace

// The largest heap of the device's own, and whether the host sees all of its memory.
void describe_memory(Adapter& a) {
  DeviceInfo& info = a.info;
  std::uint32_t heap = VK_MAX_MEMORY_HEAPS;
  for (std::uint32_t i = 0; i < a.memory.memoryHeapCount; ++i)
    if ((a.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
        a.memory.memoryHeaps[i].size > info.memory_bytes) {
      heap = i;
      info.memory_bytes = a.memory.memoryHeaps[i].size;
    }
  for (std::uint32_t i = 0; i < a.memory.memoryTypeCount; ++i) {
    constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT |
                                              VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                              VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryType& type = a.memory.memoryTypes[i];
    info.host_visible = info.host_visible || (type.heapIndex == heap && (type.propertyFlags & kMapped) == kMapped);
  }
}

// What the extensions and features give together.
void describe_extensions(Adapter& a, VkPhysicalDevice handle) {
  const Features& features = a.features;
  const auto has = [&](const char* name) { return contains(a.extensions, name); };
  a.memory_budget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  a.portability_subset = has(kPortabilitySubset);
  a.info.ray_query = a.ray_query = features[Feature::acceleration_structure] && features[Feature::ray_query] &&
                                   has(VK_KHR_RAY_QUERY_EXTENSION_NAME) &&
                                   has(VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME) &&
                                   has(VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME);
  if (!a.ray_query) {
    a.features.set(Feature::acceleration_structure, false);
    a.features.set(Feature::ray_query, false);
  }
  a.memory_fd = has(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) && can_share_memory(handle, a.buffer_usage());
  a.semaphore_fd = has(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME) && can_share_timelines(handle);
}

Adapter describe(VkPhysicalDevice handle, std::uint32_t instance_version) {
  VkPhysicalDeviceProperties properties{};
  vkGetPhysicalDeviceProperties(handle, &properties);
  const std::uint32_t version = std::min(instance_version, properties.apiVersion);
  if (version < VK_API_VERSION_1_2) return describe(handle, version, {}, {}, kNoFamily);
  const std::vector<VkQueueFamilyProperties> families = queue_families(handle);
  const auto family = std::find_if(families.begin(), families.end(), [](const VkQueueFamilyProperties& f) {
    return (f.queueFlags & VK_QUEUE_COMPUTE_BIT) && f.queueCount > 0;
  });
  const Extensions extensions = device_extensions(handle);
  return describe(handle, version, extensions, Features::supported(handle, version, extensions),
                  family == families.end() ? kNoFamily : static_cast<std::uint32_t>(family - families.begin()));
}

std::vector<VkQueueFamilyProperties> queue_families(VkPhysicalDevice physical) {
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  return families;
}

double dispatch_budget_of(VkPhysicalDeviceType type, std::uint32_t timestamp_bits) {
  const bool is_gpu = type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  return is_gpu && timestamp_bits > 0 ? 0.5 : 0;
}

// In one piece: Vulkan's structs of properties point to each other until all of them are filled in.
Adapter describe(VkPhysicalDevice handle, std::uint32_t api_version, const Extensions& extensions,
                 const Features& features, std::uint32_t queue_family) {
  Adapter a;
  a.handle = handle;
  vkGetPhysicalDeviceProperties(handle, &a.properties);
  a.info.adapter = a.properties.deviceName;
  a.info.software = a.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  a.api_version = std::min(api_version, a.properties.apiVersion);
  a.features = features;
  a.extensions = extensions;
  a.queue_family = queue_family;
  if (const auto families = queue_families(handle); queue_family < families.size())
    a.timestamp_bits = families[queue_family].timestampValidBits;
  a.info.dispatch_budget = dispatch_budget_of(a.properties.deviceType, a.timestamp_bits);
  a.missing = lacks(a);
  if (a.api_version < VK_API_VERSION_1_2) return a;

  describe_extensions(a, handle);
  const auto has = [&](const char* name) { return contains(extensions, name); };
  VkPhysicalDeviceVulkan11Properties properties11{};
  properties11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties properties12{};
  properties12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  maintenance4.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &properties11, {}};
  properties11.pNext = &properties12;
  if (a.api_version >= VK_API_VERSION_1_3 || has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
    properties12.pNext = &maintenance4;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT external_host{};
  external_host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  const bool imports_host =
      has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) && can_import_host_memory(handle, a.buffer_usage());
  if (imports_host) {
    external_host.pNext = properties.pNext;
    properties.pNext = &external_host;
  }
  VkPhysicalDeviceAccelerationStructurePropertiesKHR structure{};
  structure.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_PROPERTIES_KHR;
  if (a.ray_query) {
    structure.pNext = properties.pNext;
    properties.pNext = &structure;
  }
  vkGetPhysicalDeviceProperties2(handle, &properties);
  if (a.ray_query)
    a.ray_scratch_alignment =
        std::max(a.ray_scratch_alignment, structure.minAccelerationStructureScratchOffsetAlignment);
  vkGetPhysicalDeviceMemoryProperties(handle, &a.memory);
  std::ranges::copy(properties11.deviceUUID, a.device_uuid.begin());
  std::ranges::copy(properties11.driverUUID, a.driver_uuid.begin());
  a.shares_pages = a.memory_fd && properties12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  a.host_import_alignment = external_host.minImportedHostPointerAlignment;

  const VkPhysicalDeviceLimits& limits = a.properties.limits;
  DeviceInfo& info = a.info;
  info.driver = fmt::format("{} {}", properties12.driverName, properties12.driverInfo);
  // The driver's version does not change with every build of Mesa; the UUID of its pipeline cache does.
  info.cache_key =
      fmt::format("{}-{:x}-{:x}-{:x}-{}-{}", hex(properties11.driverUUID), a.properties.vendorID, a.properties.deviceID,
                  a.properties.driverVersion, hex(a.properties.pipelineCacheUUID), properties12.driverInfo);
  describe_memory(a);
  info.wraps_host = a.host_import_alignment > 0;
  info.int64 = features[Feature::shader_int64];
  info.max_allocation = properties11.maxMemoryAllocationSize;
  if (maintenance4.maxBufferSize) info.max_allocation = std::min(info.max_allocation, maintenance4.maxBufferSize);
  info.max_block = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  info.max_groups = *std::min_element(limits.maxComputeWorkGroupCount, limits.maxComputeWorkGroupCount + 3);
  info.max_shared = limits.maxComputeSharedMemorySize;
  // Only full subgroups of one known size are used.
  const bool full = features[Feature::subgroup_size_control] && features[Feature::full_subgroups];
  const bool usable = full && (properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                      properties11.subgroupSize >= 4 && properties11.subgroupSize <= 128;
  info.subgroup_size = usable ? properties11.subgroupSize : 0;

  fill_target(a, properties11, properties12);
  return a;
}

std::vector<const char*> Adapter::used_extensions() const {
  std::vector<const char*> names = features.extensions(api_version);
  if (ray_query) names.push_back(VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME);
  if (host_import_alignment) names.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  if (memory_fd) names.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (semaphore_fd) names.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  for (const char* name : {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, kPortabilitySubset})
    if (contains(extensions, name)) names.push_back(name);
  return names;
}

}  // namespace weft::backend::vulkan
