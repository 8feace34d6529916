// The Vulkan features that weft uses, and their encoding in chains of structs.
#pragma once
#include <volk.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::backend::vulkan {

enum class Feature : std::uint8_t {
  shader_int16,
  shader_int64,
  shader_float64,
  storage_buffer16,
  uniform_and_storage_buffer16,
  push_constant16,
  variable_pointers_storage_buffer,
  variable_pointers,
  buffer_device_address,
  scalar_block_layout,
  timeline_semaphore,
  storage_buffer8,
  uniform_and_storage_buffer8,
  push_constant8,
  shader_float16,
  shader_int8,
  buffer_int64_atomics,
  shared_int64_atomics,
  memory_model,
  memory_model_device_scope,
  subgroup_extended_types,
  buffer_float32_atomic_add,
  buffer_float64_atomic_add,
  shared_float32_atomic_add,
  shared_float64_atomic_add,
  subgroup_size_control,
  full_subgroups,
  subgroup_uniform_flow,
  acceleration_structure,
  ray_query,
  count
};

/// Names of device extensions.
using Extensions = std::vector<std::string>;
bool contains(const Extensions& extensions, const char* name);
Extensions device_extensions(VkPhysicalDevice physical);

/// A set of features: those that exist, or those that are turned on.
class Features {
 public:
  bool operator[](Feature f) const { return on_[std::size_t(f)]; }
  void set(Feature f, bool on = true) { on_.set(std::size_t(f), on); }

  /// The features that the driver supports, given that their extensions are in the list.
  static Features supported(VkPhysicalDevice physical, std::uint32_t api_version, const Extensions& extensions);
  /// The features that a chain like VkDeviceCreateInfo's turns on, in structs of a single feature or of a whole
  /// version; `core` is VkDeviceCreateInfo::pEnabledFeatures, or null.
  static Features enabled(const void* chain, const VkPhysicalDeviceFeatures* core);

  /// The extensions that bring these features, without those that are part of the version.
  std::vector<const char*> extensions(std::uint32_t api_version) const;

 private:
  std::bitset<std::size_t(Feature::count)> on_;
};

/// The specification's name: "timelineSemaphore".
const char* name_of(Feature feature);
/// The first missing feature that weft requires, or Feature::count.
Feature first_missing(const Features& features);

/// Structs that turn features on, to be joined to a chain. Must not move while the chain is used.
class FeatureStructs {
 public:
  FeatureStructs() = default;
  FeatureStructs(const FeatureStructs&) = delete;
  FeatureStructs& operator=(const FeatureStructs&) = delete;

  /// Turns on all of `features`: in structs that the chain has already, otherwise in structs of a single feature, which
  /// are inserted after `head`.
  void turn_on(const Features& features, VkPhysicalDeviceFeatures2& head);

 private:
  // The layout of all feature structs: a head, then a VkBool32 per feature.
  struct Block {
    VkBaseOutStructure head{};
    std::array<VkBool32, 16> values{};
  };
  friend class Features;
  void* add(VkStructureType type, VkPhysicalDeviceFeatures2& head);
  static constexpr std::size_t kMost = 16;
  std::array<Block, kMost> blocks_{};
  std::size_t used_ = 0;
};

}  // namespace weft::backend::vulkan
