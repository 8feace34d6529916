// Kernels on any GPU that has Vulkan 1.2: the adapters, devices on them, and programs that bring their own SPIR-V.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../backend.h"

namespace weft::spirv {
struct Target;
}

namespace weft::backend {

/// Receives one message of the validation layers. May be called from any thread; must not call Vulkan.
using MessageCallback = std::function<void(const std::string&)>;

struct VulkanOptions {
  /// The Khronos validation layer with synchronisation validation. WEFT_VALIDATION=1 in the environment does the same.
  bool validation = false;
  /// When set, replaces the process-wide callback (see set_vulkan_message_callback).
  MessageCallback on_message;
};

/// The adapters that weft can use, in the order of their numbers: the first is "vulkan:0". Empty when there is no
/// Vulkan loader, no driver, or none that is good enough. Never throws for those reasons.
/// Errors: Error(device_lost) in a process that was forked from one with open Vulkan devices. So does open_vulkan().
std::vector<DeviceInfo> list_vulkan_devices();

/// A new device on an adapter. Several on one adapter are independent of each other.
/// Errors: Error(no_device) when there is no loader, no driver, no adapter of that number (listing those that exist),
/// or when the adapter lacks a feature, by name. Error(unsupported) when validation is asked for and not installed.
std::unique_ptr<Device> open_vulkan(int adapter_index, const VulkanOptions& options = {});

/// A compute shader with the entry point "main".
///
/// Its arguments are push constants when they are at most spirv::kPushConstantBytes; else the push constants are the
/// 64-bit address of a buffer that holds them.
struct SpirvDesc {
  std::string name;  ///< for messages
  std::span<const std::uint32_t> words;
  std::uint32_t args_bytes = 0;  ///< size of the argument block that each launch passes
};

/// Makes a program of SPIR-V from elsewhere. The caller answers for what the shader does to memory.
/// Errors: Error(invalid_argument) when the device is not a Vulkan device or the validator refuses the words.
std::shared_ptr<Program> load_spirv(Device& device, const SpirvDesc& desc);

/// What shaders for the device may use. Errors: Error(invalid_argument) for a device that is not Vulkan's.
const spirv::Target& spirv_target(Device& device);

/// Where the messages of validation go; an empty one means stderr.
void set_vulkan_message_callback(MessageCallback callback);

/// Messages of validation so far, in the whole process: a test's main fails when there were any.
std::uint64_t vulkan_message_count();

}  // namespace weft::backend
