// The requirements of a finished SPIR-V module on a Vulkan device, by their Vulkan names.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::spirv {

struct Requirements {
  std::vector<std::string> capabilities;      ///< OpCapability: "Shader", "Int64", ...
  std::vector<std::string> spirv_extensions;  ///< OpExtension: "SPV_KHR_ray_query", ...
  /// Members of feature structures to turn on: "bufferDeviceAddress", "shaderFloat64", ...
  std::vector<std::string> features;
  std::vector<std::string> device_extensions;  ///< to turn on: "VK_EXT_shader_atomic_float", ...
  /// Properties that must be true: "shaderRoundingModeRTEFloat32", "VK_SUBGROUP_FEATURE_VOTE_BIT", ...
  std::vector<std::string> properties;
};

/// Reads a module that emit() made.
/// Errors: internal_error() for a capability that is missing in the table here.
Requirements requirements(std::span<const std::uint32_t> words);

}  // namespace weft::spirv
