// Kernels on any GPU with Vulkan 1.2: adapters, devices on them, and programs that bring their own SPIR-V.
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
  /// Enables the Khronos validation layer with synchronisation validation, as does WEFT_VALIDATION=1 in the
  /// environment.
  bool validation = false;
  /// If set, replaces the process-wide callback (see set_vulkan_message_callback).
  MessageCallback on_message;
};

/// The adapters that weft can use, in the order of their numbers: the first is "vulkan:0". Empty if there is no Vulkan
/// loader, no driver, or no suitable adapter; never throws for those reasons.
/// Errors: Error(device_lost) in a process that was forked from one with open Vulkan devices, as open_vulkan().
std::vector<DeviceInfo> list_vulkan_devices();

/// Opens a new device on an adapter. Several devices on one adapter are independent of each other.
/// Errors: Error(no_device) if there is no loader, no driver, no adapter of that number (listing those that exist), or
/// if the adapter lacks a feature, by name. Error(unsupported) if validation is requested and not installed.
std::unique_ptr<Device> open_vulkan(int adapter_index, const VulkanOptions& options = {});

/// A compute shader with the entry point "main".
///
/// Its arguments are push constants if they are at most spirv::kPushConstantBytes; otherwise the push constants are the
/// 64-bit address of a buffer that holds them.
struct SpirvDesc {
  std::string name;  ///< for messages
  std::span<const std::uint32_t> words;
  std::uint32_t args_bytes = 0;  ///< size of the argument block that each launch passes
};

/// Makes a program of SPIR-V from elsewhere. The caller is responsible for the shader's memory accesses.
/// Errors: Error(invalid_argument) if the device is not a Vulkan device or the validator refuses the words.
std::shared_ptr<Program> load_spirv(Device& device, const SpirvDesc& desc);

/// The capabilities that shaders for the device may use. Errors: Error(invalid_argument) if it is not a Vulkan device.
const spirv::Target& spirv_target(Device& device);

/// Sets the receiver of validation messages; an empty one means stderr.
void set_vulkan_message_callback(MessageCallback callback);

/// Validation messages so far, in the whole process: a test's main fails if there were any.
std::uint64_t vulkan_message_count();

}  // namespace weft::backend
