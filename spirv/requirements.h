// What a finished SPIR-V module asks of a Vulkan device, by the names that Vulkan has for it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::spirv {

struct Requirements {
  std::vector<std::string> capabilities;      ///< OpCapability: "Shader", "Int64", ...
  std::vector<std::string> spirv_extensions;  ///< OpExtension: "SPV_KHR_ray_query", ...
  /// Of a device's feature structures, to be turned on: "bufferDeviceAddress", "shaderFloat64", ...
  std::vector<std::string> features;
  std::vector<std::string> device_extensions;  ///< to be turned on: "VK_EXT_shader_atomic_float", ...
  /// Of a device's properties, to be true: "shaderRoundingModeRTEFloat32", "VK_SUBGROUP_FEATURE_VOTE_BIT", ...
  std::vector<std::string> properties;
};

/// Reads a module that emit() made.
/// Errors: internal_error() for a capability without an entry in the table here.
Requirements requirements(std::span<const std::uint32_t> words);

}  // namespace weft::spirv
