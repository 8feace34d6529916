// Memory that others own, or that is shared with them.
#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "memory.h"

namespace weft::backend::vulkan {

namespace {

// Kernels and copies access the buffer.
void check_usage(VkBufferUsageFlags usage, const char* what) {
  struct Flag {
    VkBufferUsageFlags bit;
    const char* name;
  };
  for (const Flag& f : {Flag{VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, "VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT"},
                        Flag{VK_BUFFER_USAGE_TRANSFER_SRC_BIT, "VK_BUFFER_USAGE_TRANSFER_SRC_BIT"},
                        Flag{VK_BUFFER_USAGE_TRANSFER_DST_BIT, "VK_BUFFER_USAGE_TRANSFER_DST_BIT"}})
    if (!(usage & f.bit)) invalid("{} was made without {}: kernels and copies need it", what, f.name);
}

// Vulkan leaves a refused descriptor to the caller; this driver closes it all the same.
bool closes_what_it_refuses(VkPhysicalDevice adapter) {
  VkPhysicalDeviceDriverProperties driver{};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &driver, {}};
  vkGetPhysicalDeviceProperties2(adapter, &properties);
  return driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

}  // namespace

Allocation Memory::wrap(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, VkBufferUsageFlags usage) {
  if (!buffer) invalid("a null VkBuffer is wrapped");
  check_usage(usage, "a VkBuffer is wrapped that");
  if (offset % 4 || bytes % 4)
    invalid("{} bytes at offset {} of a VkBuffer are wrapped: both must be multiples of 4", bytes, offset);
  VkMemoryRequirements whole{};  // its size is at least that of the buffer
  vk_.vkGetBufferMemoryRequirements(device_, buffer, &whole);
  if (offset > whole.size || bytes > whole.size - offset)
    invalid("{} bytes at offset {} of a VkBuffer are wrapped, which has {} at most", bytes, offset, whole.size);
  auto page = std::make_unique<Page>();
  page->buffer = buffer;
  page->bytes = bytes;
  page->group = kWrapped;
  page->offset = offset;
  page->usage = usage;
  page->others = true;
  if (!locate(*page, offset))
    unsupported("a VkBuffer is wrapped to which {} ({}) gives no address", adapter_.info.name, adapter_.info.adapter);
  std::lock_guard lock(mutex_);
  enter(*page, fmt::format("{} bytes at offset {} of a VkBuffer are wrapped", bytes, offset));
  return hand_out_own(kWrapped, std::move(page), bytes);
}

void Memory::refuse_twice(const std::string& what) const {
  throw Error(
      ErrorKind::invalid_argument,
      fmt::format("{}, a part of which is memory of {} already: bytes are wrapped once, and slice() and view_as() "
                  "give parts of them",
                  what, adapter_.info.name));
}

// Refuses overlapping pages: two arrays on the same memory would not know of each other's work, and commands on one
// would name the other's buffer.
void Memory::enter(Page& page, const std::string& what) {
  if (overlapped(page)) refuse_twice(what);
  by_address_[page.address] = &page;
}

// An existing page that overlaps this one, or null.
const Memory::Page* Memory::overlapped(const Page& page) const {
  auto after = by_address_.upper_bound(page.address);
  if (after != by_address_.begin()) {
    const auto before = std::prev(after);
    if (page.address - before->first < before->second->bytes) after = before;
  }
  return after != by_address_.end() && after->first < page.address + page.bytes ? after->second : nullptr;
}

void Memory::require_sharing() const {
  if (!adapter_.memory_fd)
    unsupported("{} ({}) does not share memory (VK_KHR_external_memory_fd)", adapter_.info.name, adapter_.info.adapter);
}

Allocation Memory::allocate_shared(std::uint64_t bytes) {
  require_sharing();
  auto page = std::make_unique<Page>();
  page->group = kWrapped;
  page->bytes = bytes;
  page->usage = adapter_.buffer_usage();
  page->dedicated = true;
  // Exportable memory may not be allowed in the type of other pages.
  const auto type = [&](std::uint32_t usable) {
    const std::uint32_t own = groups_[int(MemoryKind::device)].type;
    return usable >> own & 1 ? static_cast<int>(own) : find_type(usable, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, -1);
  };
  bury();
  std::lock_guard lock(mutex_);
  const bool fits = bytes <= adapter_.info.max_allocation && bytes <= available_locked(groups_[0]);
  VkResult result = fits ? bind(*page, kShared, nullptr, 0, type) : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (result == VK_SUCCESS && overlapped(*page)) result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (result != VK_SUCCESS) {
    destroy(*page);
    throw Error(ErrorKind::out_of_memory, fmt::format("{} bytes of memory to be shared, on {} ({}): {}", bytes,
                                                      adapter_.info.name, adapter_.info.adapter, to_string(result)));
  }
  by_address_[page->address] = page.get();
  return hand_out_own(kWrapped, std::move(page), bytes);
}

Memory::Page* Memory::page_at(std::uint64_t address) {
  const auto after = by_address_.upper_bound(address);
  Page* const page = after == by_address_.begin() ? nullptr : std::prev(after)->second;
  return page && address - page->address < page->bytes ? page : nullptr;
}

// A descriptor of local memory: from the driver, or a duplicate of the one with which it was imported. (Vulkan lets
// memory be imported and exported at once. NVIDIA's driver then makes new memory, and says nothing.)
FileDescriptor Memory::descriptor_of(const Page& page) {
  if (!page.imported.is_empty()) {
    FileDescriptor another = page.imported.duplicate();
    if (another.is_empty()) unsupported("memory is shared, and this process may open no more files");
    return another;
  }
  VkMemoryGetFdInfoKHR get{};
  get.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR;
  get.memory = page.memory;
  get.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  if (const VkResult result = vk_.vkGetMemoryFdKHR(device_, &get, &fd); result != VK_SUCCESS || fd < 0)
    unsupported("vkGetMemoryFdKHR on {} ({}) gave {}", adapter_.info.name, adapter_.info.adapter, to_string(result));
  return FileDescriptor(fd);
}

SharedMemory Memory::describe(const Page& page) {
  SharedMemory shared;
  shared.fd = descriptor_of(page);
  shared.bytes = page.shared_bytes;
  shared.memory_type = page.type;
  shared.buffer_bytes = page.bytes;
  shared.buffer_usage = page.usage;
  shared.dedicated = page.dedicated;
  shared.device_uuid = adapter_.device_uuid;
  shared.driver_uuid = adapter_.driver_uuid;
  return shared;
}

SharedMemory Memory::share(std::uint64_t address) {
  require_sharing();
  std::lock_guard lock(mutex_);
  const Page* const page = page_at(address);
  // A page of many arrays cannot be shared for one of them.
  if (!page || page->shared_bytes == 0 || page->group != kWrapped)
    invalid("memory is shared that was not made to be: arrays from shareable() and import_memory() can");
  return describe(*page);
}

PageAttachment Memory::attach(std::uint64_t address, const MakeAttachment& make) {
  require_sharing();
  const auto find = [&]() -> Page& {
    Page* const page = page_at(address);
    if (page && page->shared_bytes > 0) return *page;
    unsupported("memory of {} ({}) that was not made to be shared: arrays from shareable() are", adapter_.info.name,
                adapter_.info.adapter);
  };
  SharedMemory shared;
  {
    std::lock_guard lock(mutex_);
    const Page& page = find();
    if (page.attached) return {page.attached, page.address};
    shared = describe(page);
  }
  std::shared_ptr<void> made = make(std::move(shared));
  std::lock_guard lock(mutex_);
  Page& page = find();
  if (!page.attached)
    page.attached.swap(made);  // otherwise another thread's is there, and this one goes after the lock
  return {page.attached, page.address};
}

bool Memory::shares(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  const Page* const page = page_at(address);
  return adapter_.memory_fd && page && page->shared_bytes > 0;
}

// Imports memory. The driver owns the descriptor if it succeeds; whatever was made goes if a step fails.
VkResult Memory::import_descriptor(Page& page, FileDescriptor& fd, std::uint64_t bytes, const ChooseType& choose_type) {
  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = fd.get();
  const VkResult result =
      page.bytes ? bind(page, kShared, &import, bytes, choose_type) : VK_ERROR_INVALID_EXTERNAL_HANDLE;
  // Once the memory is made, the descriptor is the driver's.
  const bool asked = page.shared_bytes > 0;
  if (page.memory || (asked && result != VK_SUCCESS && closes_what_it_refuses(adapter_.handle))) fd.release();
  if (result != VK_SUCCESS) destroy(page);
  return result;
}

// Drivers may map the memory of two descriptors to one address.
void Memory::enter_import(Page& page, int fd) {
  try {
    enter(page, fmt::format("{} bytes of memory of file descriptor {} are imported", page.bytes, fd));
  } catch (...) {
    destroy(page);
    throw;
  }
}

Allocation Memory::import_foreign(FileDescriptor&& fd, std::uint64_t bytes) {
  require_sharing();
  auto page = std::make_unique<Page>();
  page->group = kWrapped;
  page->bytes = bytes;
  page->usage = adapter_.buffer_usage();
  const int number = fd.get();
  const auto type = [&](std::uint32_t usable) { return find_type(usable, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, -1); };
  std::lock_guard lock(mutex_);
  if (const VkResult result = import_descriptor(*page, fd, bytes, type); result != VK_SUCCESS)
    unsupported("{} bytes of memory of file descriptor {} are not memory for {} ({}): {}", bytes, number,
                adapter_.info.name, adapter_.info.adapter, to_string(result));
  page->shared_bytes = 0;  // only its owner may share it
  enter_import(*page, number);
  return hand_out_own(kWrapped, std::move(page), bytes);
}

Allocation Memory::import_shared(SharedMemory&& memory, std::uint64_t array_bytes) {
  require_sharing();
  if (array_bytes > memory.buffer_bytes)
    invalid("an array of {} bytes is imported from a buffer of {}", array_bytes, memory.buffer_bytes);
  if (memory.buffer_bytes % 4)
    invalid("a buffer of {} bytes is imported: devices work on words of 4", memory.buffer_bytes);
  if (memory.fd.is_empty()) invalid("memory is imported from an empty file descriptor");
  if (memory.device_uuid != adapter_.device_uuid || memory.driver_uuid != adapter_.driver_uuid)
    invalid("memory is imported that another adapter or driver than that of {} ({}) has shared", adapter_.info.name,
            adapter_.info.adapter);
  check_usage(memory.buffer_usage, "memory is imported whose buffer");
  // The buffer must be made with the exporter's usage.
  if (memory.buffer_usage & ~adapter_.buffer_usage() & kRayUsage)
    invalid("memory is imported whose buffer serves hardware ray queries, which {} ({}) has not turned on",
            adapter_.info.name, adapter_.info.adapter);
  auto page = std::make_unique<Page>();
  page->group = kWrapped;
  page->bytes = memory.buffer_bytes;
  page->usage = memory.buffer_usage;
  page->dedicated = memory.dedicated;
  const int fd = memory.fd.get();
  FileDescriptor kept = memory.fd.duplicate();
  const auto type = [&](std::uint32_t) { return static_cast<int>(memory.memory_type); };
  std::lock_guard lock(mutex_);
  // The driver refuses a descriptor that is not open.
  const VkResult result = import_descriptor(*page, memory.fd, memory.bytes, type);
  if (result != VK_SUCCESS)
    invalid("file descriptor {} with {} bytes of memory type {} is not memory for {} ({}): {}", fd, memory.bytes,
            memory.memory_type, adapter_.info.name, adapter_.info.adapter, to_string(result));
  if (kept.is_empty()) page->shared_bytes = 0;  // no duplicate could be opened for sharing it again
  page->imported = std::move(kept);
  enter_import(*page, fd);
  const std::uint64_t bytes = page->bytes;
  return hand_out_own(kWrapped, std::move(page), bytes);
}

}  // namespace weft::backend::vulkan
