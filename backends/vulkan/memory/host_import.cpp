// Host memory as device memory, without a copy (VK_EXT_external_memory_host).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "memory.h"

namespace weft::backend::vulkan {

Allocation Memory::wrap(std::byte* memory, std::uint64_t bytes) {
  const std::uint64_t align = adapter_.host_import_alignment;
  if (align == 0) unsupported("{} ({}) lacks VK_EXT_external_memory_host", adapter_.info.name, adapter_.info.adapter);
  // Whole pages of the host are imported: the rest of them is the process's own, and no kernel has its address.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uint64_t before = begin % align;
  auto page = std::make_unique<Page>();
  page->group = kWrapped;
  page->usage = adapter_.buffer_usage();
  page->host = memory - before;
  if (bytes <= std::numeric_limits<std::uint64_t>::max() - 2 * align)
    page->bytes = (before + bytes + align - 1) / align * align;
  if (page->bytes == 0 || page->bytes > adapter_.info.max_allocation)
    unsupported("{} bytes of the host's memory; {} ({}) takes at most {} at once", bytes, adapter_.info.name,
                adapter_.info.adapter, adapter_.info.max_allocation);
  std::lock_guard lock(mutex_);
  const std::string what = fmt::format("{} bytes at address {:#x} are wrapped", bytes, begin);
  const auto shares = [&](const std::unique_ptr<Page>& own) {
    return own && own->host && memory < own->host + own->bytes && own->host < memory + bytes;
  };
  for (int kind = 0; kind < kWrapped; ++kind)
    if (const Group& g = groups_[kind];
        std::ranges::any_of(g.shared, shares) || std::ranges::any_of(g.own, shares) || shares(g.spare_own))
      refuse_twice(what);
  try {
    if (!import(*page))
      unsupported("{} ({}) cannot use the {} bytes of the host's memory at {:#x}", adapter_.info.name,
                  adapter_.info.adapter, bytes, begin);
    // Only the wrapped part of the buffer counts: what surrounds it in the same pages may be wrapped as well.
    page->offset = before;
    page->address += before;
    page->host = memory;
    page->bytes = bytes;
    enter(*page, what);
  } catch (...) {
    destroy(*page);
    throw;
  }
  return hand_out_own(kWrapped, std::move(page), bytes);
}

// Makes buffer and memory of a page whose host address is known. Whatever was made stays in the page.
bool Memory::import(Page& page) {
  constexpr VkExternalMemoryHandleTypeFlagBits kType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkImportMemoryHostPointerInfoEXT import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  import.handleType = kType;
  import.pHostPointer = page.host;
  const auto type = [&](std::uint32_t usable) {
    VkMemoryHostPointerPropertiesEXT pointer{};
    pointer.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
    if (vk_.vkGetMemoryHostPointerPropertiesEXT(device_, kType, page.host, &pointer) != VK_SUCCESS) return -1;
    constexpr VkMemoryPropertyFlags kMapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return find_type(usable & pointer.memoryTypeBits, kMapped, -1);
  };
  return bind(page, kType, &import, page.bytes, type) == VK_SUCCESS;
}

}  // namespace weft::backend::vulkan
