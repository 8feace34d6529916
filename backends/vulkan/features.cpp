// The table of features, by which they are read and written.
#include "features.h"

#include <algorithm>
#include <cstring>

#include "../../frontend/support/error.h"

namespace weft::backend::vulkan {

namespace {

// The places of a feature: in a struct of its own extension, and in one of all features of a Vulkan version (0: none).
struct Row {
  Feature feature;
  const char* name;
  VkStructureType single;
  std::size_t single_at;
  VkStructureType whole;
  std::size_t whole_at;
};

constexpr VkStructureType kNone = VK_STRUCTURE_TYPE_MAX_ENUM;
#define WEFT_CORE(feature, member)                                           \
  {                                                                          \
    Feature::feature, #member, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, \
        offsetof(VkPhysicalDeviceFeatures2, features.member), kNone, 0       \
  }
#define WEFT_ROW(feature, member, Single, SINGLE, Whole, WHOLE)                                                        \
  {                                                                                                                    \
    Feature::feature, #member, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##SINGLE, offsetof(VkPhysicalDevice##Single, member), \
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##WHOLE, offsetof(VkPhysicalDevice##Whole, member)                           \
  }
#define WEFT_11(feature, member, Single, SINGLE) \
  WEFT_ROW(feature, member, Single, SINGLE, Vulkan11Features, VULKAN_1_1_FEATURES)
#define WEFT_12(feature, member, Single, SINGLE) \
  WEFT_ROW(feature, member, Single, SINGLE, Vulkan12Features, VULKAN_1_2_FEATURES)
#define WEFT_13(feature, member, Single, SINGLE) \
  WEFT_ROW(feature, member, Single, SINGLE, Vulkan13Features, VULKAN_1_3_FEATURES)
#define WEFT_EXTENSION(feature, member, Single, SINGLE)                                                                \
  {                                                                                                                    \
    Feature::feature, #member, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##SINGLE, offsetof(VkPhysicalDevice##Single, member), \
        kNone, 0                                                                                                       \
  }

constexpr Row kRows[] = {
    WEFT_CORE(shader_int16, shaderInt16),
    WEFT_CORE(shader_int64, shaderInt64),
    WEFT_CORE(shader_float64, shaderFloat64),
    WEFT_11(storage_buffer16, storageBuffer16BitAccess, 16BitStorageFeatures, 16BIT_STORAGE_FEATURES),
    WEFT_11(uniform_and_storage_buffer16, uniformAndStorageBuffer16BitAccess, 16BitStorageFeatures,
            16BIT_STORAGE_FEATURES),
    WEFT_11(push_constant16, storagePushConstant16, 16BitStorageFeatures, 16BIT_STORAGE_FEATURES),
    WEFT_11(variable_pointers_storage_buffer, variablePointersStorageBuffer, VariablePointersFeatures,
            VARIABLE_POINTERS_FEATURES),
    WEFT_11(variable_pointers, variablePointers, VariablePointersFeatures, VARIABLE_POINTERS_FEATURES),
    WEFT_12(buffer_device_address, bufferDeviceAddress, BufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES),
    WEFT_12(scalar_block_layout, scalarBlockLayout, ScalarBlockLayoutFeatures, SCALAR_BLOCK_LAYOUT_FEATURES),
    WEFT_12(timeline_semaphore, timelineSemaphore, TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES),
    WEFT_12(storage_buffer8, storageBuffer8BitAccess, 8BitStorageFeatures, 8BIT_STORAGE_FEATURES),
    WEFT_12(uniform_and_storage_buffer8, uniformAndStorageBuffer8BitAccess, 8BitStorageFeatures, 8BIT_STORAGE_FEATURES),
    WEFT_12(push_constant8, storagePushConstant8, 8BitStorageFeatures, 8BIT_STORAGE_FEATURES),
    WEFT_12(shader_float16, shaderFloat16, ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES),
    WEFT_12(shader_int8, shaderInt8, ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES),
    WEFT_12(buffer_int64_atomics, shaderBufferInt64Atomics, ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES),
    WEFT_12(shared_int64_atomics, shaderSharedInt64Atomics, ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES),
    WEFT_12(memory_model, vulkanMemoryModel, VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES),
    WEFT_12(memory_model_device_scope, vulkanMemoryModelDeviceScope, VulkanMemoryModelFeatures,
            VULKAN_MEMORY_MODEL_FEATURES),
    WEFT_12(subgroup_extended_types, shaderSubgroupExtendedTypes, ShaderSubgroupExtendedTypesFeatures,
            SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES),
    WEFT_EXTENSION(buffer_float32_atomic_add, shaderBufferFloat32AtomicAdd, ShaderAtomicFloatFeaturesEXT,
                   SHADER_ATOMIC_FLOAT_FEATURES_EXT),
    WEFT_EXTENSION(buffer_float64_atomic_add, shaderBufferFloat64AtomicAdd, ShaderAtomicFloatFeaturesEXT,
                   SHADER_ATOMIC_FLOAT_FEATURES_EXT),
    WEFT_EXTENSION(shared_float32_atomic_add, shaderSharedFloat32AtomicAdd, ShaderAtomicFloatFeaturesEXT,
                   SHADER_ATOMIC_FLOAT_FEATURES_EXT),
    WEFT_EXTENSION(shared_float64_atomic_add, shaderSharedFloat64AtomicAdd, ShaderAtomicFloatFeaturesEXT,
                   SHADER_ATOMIC_FLOAT_FEATURES_EXT),
    WEFT_13(subgroup_size_control, subgroupSizeControl, SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES),
    WEFT_13(full_subgroups, computeFullSubgroups, SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES),
    WEFT_EXTENSION(subgroup_uniform_flow, shaderSubgroupUniformControlFlow, ShaderSubgroupUniformControlFlowFeaturesKHR,
                   SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR),
    WEFT_EXTENSION(acceleration_structure, accelerationStructure, AccelerationStructureFeaturesKHR,
                   ACCELERATION_STRUCTURE_FEATURES_KHR),
    WEFT_EXTENSION(ray_query, rayQuery, RayQueryFeaturesKHR, RAY_QUERY_FEATURES_KHR),
};
static_assert(std::size(kRows) == std::size_t(Feature::count));

constexpr Feature kFloor[] = {Feature::buffer_device_address, Feature::scalar_block_layout, Feature::timeline_semaphore,
                              Feature::shader_int64};

// The extension that brings a struct if the version of Vulkan does not. Structs that are not listed are in every
// version that weft runs on.
struct Origin {
  VkStructureType type;
  const char* extension;
  std::uint32_t core_since;
};
constexpr std::uint32_t kNever = ~0u;
constexpr Origin kOrigins[] = {
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
     kNever},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
     VK_API_VERSION_1_3},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
     VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME, kNever},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR,
     VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME, kNever},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_QUERY_FEATURES_KHR, VK_KHR_RAY_QUERY_EXTENSION_NAME, kNever},
};

// Null if the struct needs no extension.
const char* extension_of(VkStructureType type, std::uint32_t api_version) {
  for (const Origin& o : kOrigins)
    if (o.type == type) return api_version >= o.core_since ? nullptr : o.extension;
  return nullptr;
}

const VkBaseInStructure* find(const void* chain, VkStructureType type) {
  for (auto* at = static_cast<const VkBaseInStructure*>(chain); at; at = at->pNext)
    if (at->sType == type) return at;
  return nullptr;
}

bool is_set(const void* structure, std::size_t at) {
  VkBool32 value = VK_FALSE;
  std::memcpy(&value, static_cast<const std::byte*>(structure) + at, sizeof value);
  return value != VK_FALSE;
}

}  // namespace

bool contains(const Extensions& extensions, const char* name) {
  return std::ranges::find(extensions, name) != extensions.end();
}

Extensions device_extensions(VkPhysicalDevice physical) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> found;
  if (vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr) != VK_SUCCESS) return {};
  found.resize(count);
  if (vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, found.data()) < 0) count = 0;
  Extensions names;
  for (std::uint32_t k = 0; k < count; ++k) names.emplace_back(found[k].extensionName);
  return names;
}

const char* name_of(Feature feature) {
  for (const Row& row : kRows)
    if (row.feature == feature) return row.name;
  internal_error("a feature without a name");
}

Feature first_missing(const Features& features) {
  for (const Feature f : kFloor)
    if (!features[f]) return f;
  return Feature::count;
}

Features Features::supported(VkPhysicalDevice physical, std::uint32_t api_version, const Extensions& extensions) {
  VkPhysicalDeviceFeatures2 head{};
  head.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  FeatureStructs structs;
  for (const Row& row : kRows) {
    if (find(&head, row.single)) continue;
    const char* const extension = extension_of(row.single, api_version);
    if (!extension || contains(extensions, extension)) structs.add(row.single, head);
  }
  vkGetPhysicalDeviceFeatures2(physical, &head);
  return enabled(&head, nullptr);
}

Features Features::enabled(const void* chain, const VkPhysicalDeviceFeatures* core) {
  Features result;
  for (const Row& row : kRows) {
    const void* const single = find(chain, row.single);
    const void* const whole = row.whole == kNone ? nullptr : find(chain, row.whole);
    bool on = (single && is_set(single, row.single_at)) || (whole && is_set(whole, row.whole_at));
    if (core && row.single == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
      on = on || is_set(core, row.single_at - offsetof(VkPhysicalDeviceFeatures2, features));
    if (on) result.set(row.feature);
  }
  return result;
}

std::vector<const char*> Features::extensions(std::uint32_t api_version) const {
  std::vector<const char*> names;
  for (const Row& row : kRows) {
    const char* const name = (*this)[row.feature] ? extension_of(row.single, api_version) : nullptr;
    if (name && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

void* FeatureStructs::add(VkStructureType type, VkPhysicalDeviceFeatures2& head) {
  if (used_ == kMost) internal_error("more structs of features than there is room for");
  Block& block = blocks_[used_++];
  block = {};
  block.head.sType = type;
  block.head.pNext = static_cast<VkBaseOutStructure*>(head.pNext);
  head.pNext = &block;
  return &block;
}

void FeatureStructs::turn_on(const Features& features, VkPhysicalDeviceFeatures2& head) {
  for (const Row& row : kRows) {
    if (!features[row.feature]) continue;
    const void* found = find(&head, row.single);
    std::size_t at = row.single_at;
    if (!found && row.whole != kNone && (found = find(&head, row.whole))) at = row.whole_at;
    void* const structure = found ? const_cast<void*>(found) : add(row.single, head);
    const VkBool32 on = VK_TRUE;
    std::memcpy(static_cast<std::byte*>(structure) + at, &on, sizeof on);
  }
}

}  // namespace weft::backend::vulkan
