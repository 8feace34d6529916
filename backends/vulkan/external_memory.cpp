// Memory that others own, or that they are given a share of.
#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "memory.h"

namespace weft::backend::vulkan {

Allocation Memory::wrap(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, VkBufferUsageFlags usage) {
  const auto invalid = [](const std::string& message) { throw Error(ErrorKind::invalid_argument, message); };
  if (!buffer) invalid("a null VkBuffer is wrapped");
  struct Flag {
    VkBufferUsageFlags bit;
    const char* name;
  };
  for (const Flag& f : {Flag{VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT"},
                        Flag{VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"},
                        Flag{VK_BUFFER_USAGE_TRANSFER_DST_BIT, "VK_BUFFER_USAGE_TRANSFER_DST_BIT"}})
    if (!(usage & f.bit))
      invalid(fmt::format("a VkBuffer is wrapped that was made without {}: kernels and copies need it", f.name));
  if (offset % 4 || bytes % 4)
    invalid(fmt::format("{} bytes at offset {} of a VkBuffer are wrapped: both must be multiples of 4", bytes, offset));
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = buffer;
  auto page = std::make_unique<Page>();
  page->buffer = buffer;
  page->address = vk_.vkGetBufferDeviceAddress(device_, &info) + offset;
  page->bytes = bytes;
  page->group = kWrapped;
  page->offset = offset;
  page->usage = usage;
  page->others = true;
  std::lock_guard lock(mutex_);
  // Two arrays on the same memory would not know of each other's work.
  auto after = by_address_.upper_bound(page->address);
  if (after != by_address_.begin()) {
    const auto before = std::prev(after);
    if (page->address - before->first < before->second->bytes) after = before;
  }
  if (after != by_address_.end() && after->first < page->address + bytes)
    invalid(fmt::format("{} bytes at offset {} of a VkBuffer are wrapped, a part of which is memory of {} already",
                        bytes, offset, adapter_.info.name));
  by_address_[page->address] = page.get();
  return hand_out_own(kWrapped, std::move(page), bytes);
}

}  // namespace weft::backend::vulkan
