// The software Vulkan device by its own name: "cpu" is the native device, where there is an LLVM.
#pragma once
#include <string>

#include "../../backends/vulkan/vulkan.h"

namespace weft::test {

/// "vulkan:N" of the first software adapter; "vulkan:0" if there is none, which then does not open.
inline std::string software_vulkan() {
  for (const backend::DeviceInfo& info : backend::list_vulkan_devices())
    if (info.software) return info.name;
  return "vulkan:0";
}

}  // namespace weft::test
