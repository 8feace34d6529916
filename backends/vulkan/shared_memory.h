// Device memory in the form in which it is given to others.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "../../frontend/support/file_descriptor.h"

namespace weft {

/// Device memory that others on the same adapter can use: other devices, other processes, CUDA.
struct SharedMemory {
  FileDescriptor fd;                                          ///< VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
  std::uint64_t bytes = 0;                                    ///< VkMemoryAllocateInfo::allocationSize
  std::uint32_t memory_type = 0;                              ///< VkMemoryAllocateInfo::memoryTypeIndex
  std::uint64_t buffer_bytes = 0;                             ///< of the one VkBuffer in it, at offset 0
  std::uint32_t buffer_usage = 0;                             ///< VkBufferUsageFlags of that buffer
  bool dedicated = false;                                     ///< VkMemoryDedicatedAllocateInfo names that buffer
  std::array<std::uint8_t, 16> device_uuid{}, driver_uuid{};  ///< VkPhysicalDeviceIDProperties
};

namespace backend {

/// An object tied to a page of a device's memory, such as CUDA's mapping of it, which goes before the page.
struct PageAttachment {
  std::shared_ptr<void> thing;
  std::uint64_t page = 0;  ///< address of the page's first byte, which is that of its buffer
};
using MakeAttachment = std::function<std::shared_ptr<void>(SharedMemory&&)>;

}  // namespace backend
}  // namespace weft
