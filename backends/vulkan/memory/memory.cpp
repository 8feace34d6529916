// Pages of device memory: their types, their sizes, and when they go back to the driver.
#include "memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../../../frontend/support/platform.h"

namespace weft::backend::vulkan {

namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + Suballocator::kAlignment - 1) / Suballocator::kAlignment * Suballocator::kAlignment;
}

// A handle is never 0: two bits of group, a bit for "a page of its own", and the index above them.
std::uint64_t make_handle(int group, bool own, std::uint32_t index) {
  return (std::uint64_t(index) + 1) << 3 | std::uint64_t(own) << 2 | std::uint64_t(group);
}

/// Whether so many bytes can be at an address. A driver that has run out may report success all the same, and return 0
/// or the system's error value: all ones.
bool can_be_memory(std::uint64_t address, std::uint64_t bytes) { return address != 0 && bytes <= ~address; }

}  // namespace

Memory::Memory(const Adapter& adapter, VkDevice device, const VolkDeviceTable& vk, const MemoryTuning& tuning)
    : adapter_(adapter),
      device_(device),
      vk_(vk),
      max_page_(tuning.page_bytes),
      share_pages_(adapter.shares_pages || (adapter.memory_fd && tuning.share_pages)) {
  // All pages are buffers of the same usage, so one small buffer tells which types they may use. Exportable buffers
  // have types of their own: on NVIDIA's devices none that the host maps.
  const auto usable = [&](VkExternalMemoryHandleTypeFlags handles) {
    Page probe{.bytes = Suballocator::kAlignment, .usage = adapter_.buffer_usage()};
    VkMemoryRequirements needs{};
    needs.memoryTypeBits = ~0u;
    if (make_buffer(probe, handles) == VK_SUCCESS) vk_.vkGetBufferMemoryRequirements(device_, probe.buffer, &needs);
    destroy(probe);
    return needs.memoryTypeBits;
  };
  choose_types(usable(0), usable(share_pages_ ? kShared : 0));
  groups_[kWrapped].host_visible = groups_[kWrapped].cached = true;
  Group& own = groups_[int(MemoryKind::device)];
  own.host_visible = own.host_visible && tuning.map_device;
  own.cached = own.cached && tuning.map_device && tuning.cache_device;
}

// Finds a type on a heap, or on any (-1); -1 if there is none.
int Memory::find_type(std::uint32_t usable, VkMemoryPropertyFlags wanted, int heap) const {
  // Types that a device extension must unlock, such as AMD's device-coherent memory, are not used.
  constexpr VkMemoryPropertyFlags kPlain = kLocal | kMapped | kCached;
  const VkPhysicalDeviceMemoryProperties& p = adapter_.memory;
  for (std::uint32_t i = 0; i < p.memoryTypeCount; ++i) {
    const VkMemoryType& type = p.memoryTypes[i];
    if ((usable >> i & 1) && (type.propertyFlags & wanted) == wanted && !(type.propertyFlags & ~kPlain) &&
        (heap < 0 || static_cast<int>(type.heapIndex) == heap))
      return static_cast<int>(i);
  }
  return -1;
}

void Memory::choose_types(std::uint32_t usable, std::uint32_t usable_by_pages) {
  const VkPhysicalDeviceMemoryProperties& p = adapter_.memory;
  std::uint32_t local_heap = 0;
  std::uint64_t local_bytes = 0;
  for (std::uint32_t i = 0; i < p.memoryHeapCount; ++i)
    if ((p.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && p.memoryHeaps[i].size > local_bytes) {
      local_heap = i;
      local_bytes = p.memoryHeaps[i].size;
    }
  const auto find_local = [&](VkMemoryPropertyFlags wanted) {
    return find_type(usable_by_pages, wanted, static_cast<int>(local_heap));
  };
  const auto find = [&](VkMemoryPropertyFlags wanted) { return find_type(usable, wanted, -1); };
  const auto first = [](std::initializer_list<int> candidates) {
    for (const int c : candidates)
      if (c >= 0) return static_cast<std::uint32_t>(c);
    return 0u;
  };
  groups_[int(MemoryKind::device)].type =
      first({find_local(kLocal | kMapped | kCached), find_local(kLocal | kMapped), find_local(kLocal),
             find_type(usable_by_pages, kLocal, -1), find_type(usable_by_pages, 0, -1), find(0)});
  groups_[int(MemoryKind::upload)].type = first({find(kMapped)});
  groups_[int(MemoryKind::readback)].type = first({find(kMapped | kCached), find(kMapped)});
  for (int kind = 0; kind < 3; ++kind) {
    Group& group = groups_[kind];
    const VkMemoryType& type = p.memoryTypes[group.type];
    group.heap = type.heapIndex;
    group.host_visible = (type.propertyFlags & kMapped) == kMapped;
    group.cached = group.host_visible && (type.propertyFlags & kCached);
    // One page of each kind must not use up a small heap.
    const std::uint64_t share = std::max<std::uint64_t>(p.memoryHeaps[group.heap].size / 16, 1 << 20);
    group.page_bytes = std::min({max_page_, share, adapter_.info.max_allocation});
    group.page_bytes = group.page_bytes / Suballocator::kAlignment * Suballocator::kAlignment;
  }
  for (const MemoryKind kind : {MemoryKind::upload, MemoryKind::readback})
    if (!groups_[int(kind)].host_visible)
      throw Error(ErrorKind::no_device, fmt::format("{} ({}) has no memory that the host can reach", adapter_.info.name,
                                                    adapter_.info.adapter));
}

Memory::~Memory() {
  for (Group& group : groups_) {
    for (auto& page : group.shared) give_back(std::move(page));
    for (auto& page : group.own) give_back(std::move(page));
    give_back(std::move(group.spare_own));
  }
  bury();
}

Allocation Memory::hand_out(Group& group, MemoryKind kind, const Suballocator::Piece& piece, std::uint64_t bytes) {
  const Page& page = *group.shared[piece.region];
  if (piece.region == group.empty) group.empty = kNoRegion;
  return {page.address + piece.offset, bytes, page.host ? page.host + piece.offset : nullptr,
          make_handle(int(kind), false, piece.id)};
}

Allocation Memory::hand_out_own(int number, std::unique_ptr<Page> page, std::uint64_t bytes) {
  Group& group = groups_[number];
  std::uint32_t index = static_cast<std::uint32_t>(group.own.size());
  if (group.own_free.empty()) {
    group.own.emplace_back();
  } else {
    index = group.own_free.back();
    group.own_free.pop_back();
  }
  group.own[index] = std::move(page);
  return {group.own[index]->address, bytes, group.own[index]->host, make_handle(number, true, index)};
}

std::optional<Allocation> Memory::find(std::uint64_t bytes, MemoryKind kind) {
  std::lock_guard lock(mutex_);
  Group& group = groups_[int(kind)];
  if (bytes > group.page_bytes) {
    if (!group.spare_own || group.spare_own->bytes < bytes || group.spare_own->bytes - bytes > bytes / 4)
      return std::nullopt;
    return hand_out_own(int(kind), std::move(group.spare_own), bytes);
  }
  auto piece = group.pieces.allocate(bytes);
  if (!piece) return std::nullopt;
  return hand_out(group, kind, *piece, bytes);
}

std::optional<Allocation> Memory::grow(std::uint64_t bytes, MemoryKind kind) {
  if (round_up(bytes) < bytes || bytes > adapter_.info.max_allocation) return std::nullopt;
  for (bool again = true; again;) {
    bury();
    std::lock_guard lock(mutex_);
    if (auto made = grow_locked(groups_[int(kind)], kind, bytes)) return made;
    again = false;
    for (Group& other : groups_) again = give_back_empty(other) || again;
  }
  return std::nullopt;
}

std::optional<Allocation> Memory::grow_locked(Group& group, MemoryKind kind, std::uint64_t bytes) {
  const std::uint64_t least = round_up(bytes);
  const bool own = bytes > group.page_bytes;
  // A full heap may still have room for a page that is just large enough.
  for (std::uint64_t size = std::max(group.page_bytes, least);; size = std::max(size / 2, least)) {
    size = round_up(size);
    if (auto page = make_page(group, kind, own ? bytes : size)) {
      if (own) return hand_out_own(int(kind), std::move(page), bytes);
      const std::uint32_t region = group.pieces.add_region(page->bytes);
      if (region >= group.shared.size()) group.shared.resize(region + 1);
      group.shared[region] = std::move(page);
      return hand_out(group, kind, *group.pieces.allocate(bytes), bytes);
    }
    if (own || size == least) return std::nullopt;
  }
}

void Memory::free(std::uint64_t handle) {
  if (handle == 0) return;
  std::lock_guard lock(mutex_);
  Group& group = groups_[handle & 3];
  const std::uint32_t index = static_cast<std::uint32_t>((handle >> 3) - 1);
  if (handle >> 2 & 1) {
    if (index >= group.own.size() || !group.own[index]) internal_error("device memory is freed twice");
    group.own_free.push_back(index);
    if (is_wrapped(handle)) return give_back(std::move(group.own[index]));
    give_back(std::move(group.spare_own));
    group.spare_own = std::move(group.own[index]);
    return;
  }
  const std::uint32_t region = group.pieces.free(index);
  if (!group.pieces.empty(region)) return;
  // One empty page stays, so that a program that frees everything and allocates again does not call the driver each
  // time.
  if (group.empty == kNoRegion) {
    group.empty = region;
    return;
  }
  group.pieces.remove_region(region);
  give_back(std::move(group.shared[region]));
}

bool Memory::give_back_empty(Group& group) {
  bool any = false;
  if (group.spare_own) {
    give_back(std::move(group.spare_own));
    any = true;
  }
  if (group.empty != kNoRegion) {
    group.pieces.remove_region(group.empty);
    give_back(std::move(group.shared[group.empty]));
    group.empty = kNoRegion;
    any = true;
  }
  return any;
}

std::unique_ptr<Memory::Page> Memory::make_page(Group& group, MemoryKind kind, std::uint64_t bytes) {
  // Software drivers promise more memory than exists and fail when it is touched, so the budget is checked here.
  if (bytes > available_locked(group)) return nullptr;
  auto page = std::make_unique<Page>();
  page->group = int(kind);
  page->bytes = bytes;
  page->usage = adapter_.buffer_usage();
  // A software device's own memory would use the system's small pages.
  const bool share = kind == MemoryKind::device && share_pages_;
  const bool large = kind == MemoryKind::device && group.host_visible && adapter_.info.software &&
                     bytes >= platform::kLargePageBytes && adapter_.host_import_alignment > 0;
  const bool made = (share && make_own(*page, group, true)) || (!share && large && make_large(*page));
  if (!made && !make_own(*page, group, false)) return nullptr;
  if (overlapped(*page)) {  // no memory may have two owners
    destroy(*page);
    return nullptr;
  }
  held_[group.heap] += page->bytes;
  by_address_[page->address] = page.get();
  return page;
}

bool Memory::make_large(Page& page) {
  const std::uint64_t asked = page.bytes, align = adapter_.host_import_alignment;
  page.bytes = (asked + align - 1) / align * align;
  page.host = platform::map_large_pages(page.bytes);
  if (!page.host) return page.bytes = asked, false;
  page.large = true;
  if (import(page)) return true;
  destroy(page);
  page.bytes = asked;
  return false;
}

// Makes a page of the device's own memory. If that fails, the page is as it was.
bool Memory::make_own(Page& page, const Group& group, bool exportable) {
  page.dedicated = exportable;
  const auto type = [&](std::uint32_t) { return static_cast<int>(group.type); };
  const bool good = bind(page, exportable ? kShared : 0, nullptr, 0, type) == VK_SUCCESS && map(page, group);
  if (!good) destroy(page);
  return good;
}

VkResult Memory::make_buffer(Page& page, VkExternalMemoryHandleTypeFlags handles) {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = handles;
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.pNext = handles ? &external : nullptr;
  create.size = page.bytes;
  create.usage = page.usage;
  const VkResult result = vk_.vkCreateBuffer(device_, &create, nullptr, &page.buffer);
  return result == VK_SUCCESS && !page.buffer ? VK_ERROR_OUT_OF_HOST_MEMORY : result;
}

// Makes buffer and memory of a page. Memory with `handles` is imported as the structure `import` says, or exportable if
// that is null. `bytes` is the memory's size; 0 stands for what the buffer needs. If a step fails, what was made stays
// in the page.
VkResult Memory::bind(Page& page, VkExternalMemoryHandleTypeFlags handles, const void* import, std::uint64_t bytes,
                      const ChooseType& choose_type) {
  if (const VkResult r = make_buffer(page, handles); r != VK_SUCCESS) return r;
  VkMemoryRequirements needs{};
  vk_.vkGetBufferMemoryRequirements(device_, page.buffer, &needs);
  if (bytes == 0) bytes = needs.size;
  const int type = choose_type(needs.memoryTypeBits);
  if (type < 0 || type >= static_cast<int>(adapter_.memory.memoryTypeCount) || !(needs.memoryTypeBits >> type & 1) ||
      bytes < needs.size || (page.dedicated && bytes != needs.size))
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  page.type = static_cast<std::uint32_t>(type);
  if (handles == kShared) page.shared_bytes = bytes;
  VkExportMemoryAllocateInfo share{};
  share.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  share.handleTypes = handles;
  const void* const how = handles && !import ? &share : import;
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  dedicated.pNext = how;
  dedicated.buffer = page.buffer;
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.pNext = page.dedicated ? &dedicated : how;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &flags;
  allocate.allocationSize = bytes;
  allocate.memoryTypeIndex = page.type;
  if (const VkResult r = vk_.vkAllocateMemory(device_, &allocate, nullptr, &page.memory); r != VK_SUCCESS) return r;
  if (!page.memory) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (const VkResult r = vk_.vkBindBufferMemory(device_, page.buffer, page.memory, 0); r != VK_SUCCESS) return r;
  return locate(page) ? VK_SUCCESS : VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

bool Memory::map(Page& page, const Group& group) {
  if (!group.host_visible) return true;
  void* host = nullptr;
  if (vk_.vkMapMemory(device_, page.memory, 0, VK_WHOLE_SIZE, 0, &host) != VK_SUCCESS) return false;
  if (!can_be_memory(reinterpret_cast<std::uintptr_t>(host), page.bytes)) return false;
  page.host = static_cast<std::byte*>(host);
  return true;
}

// Queries the address of a page that begins at an offset of its buffer.
bool Memory::locate(Page& page, std::uint64_t from) {
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = page.buffer;
  const std::uint64_t address = vk_.vkGetBufferDeviceAddress(device_, &info);
  page.address = address + from;
  return can_be_memory(address, from) && can_be_memory(page.address, page.bytes);
}

void Memory::give_back(std::unique_ptr<Page> page) {
  if (!page) return;
  if (page->group != kWrapped) held_[groups_[page->group].heap] -= page->bytes;
  by_address_.erase(page->address);
  if (page->attached) {
    dead_.push_back(std::move(page));
    any_dead_.store(true);
  } else if (!page->others) {
    destroy(*page);
  }
}

void Memory::bury() {
  if (!any_dead_.load()) return;
  std::vector<std::unique_ptr<Page>> dead;
  {
    std::lock_guard lock(mutex_);
    dead.swap(dead_);
    any_dead_.store(false);
  }
  for (const auto& page : dead) {
    page->attached.reset();  // before the memory that it uses
    destroy(*page);
  }
}

void Memory::destroy(Page& page) {
  vk_.vkDestroyBuffer(device_, page.buffer, nullptr);
  vk_.vkFreeMemory(device_, page.memory, nullptr);
  if (page.large) platform::unmap_large_pages(page.host, page.bytes);
  page = Page{.bytes = page.bytes, .group = page.group, .usage = page.usage};  // so that it can be made another way
}

Place Memory::resolve(std::uint64_t address, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto it = by_address_.upper_bound(address);
  if (it != by_address_.begin()) {
    const Page& page = *(--it)->second;
    const std::uint64_t offset = address - page.address;
    if (offset <= page.bytes && bytes <= page.bytes - offset)
      return {page.buffer, page.offset + offset, page.host ? page.host + offset : nullptr, groups_[page.group].cached,
              page.others ? page.usage : adapter_.buffer_usage()};
  }
  invalid("{} bytes at address {:#x} are not memory of {}", bytes, address, adapter_.info.name);
}

std::uint64_t Memory::available_locked(const Group& group) {
  const std::uint64_t size = adapter_.memory.memoryHeaps[group.heap].size;
  if (!adapter_.memory_budget) return size - std::min(size, held_[group.heap]);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  properties.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(adapter_.handle, &properties);
  const std::uint64_t most = std::min(size, budget.heapBudget[group.heap]);
  // Some drivers count only memory that was touched; what this device holds is counted for certain.
  return most - std::min(most, std::max(budget.heapUsage[group.heap], held_[group.heap]));
}

std::uint64_t Memory::available(MemoryKind kind) {
  std::lock_guard lock(mutex_);
  return available_locked(groups_[int(kind)]);
}

void Memory::refuse(std::uint64_t bytes, MemoryKind kind) {
  const char* names[] = {"device", "upload", "readback"};
  std::string why = fmt::format("{} bytes of {} memory asked for", bytes, names[int(kind)]);
  if (bytes > adapter_.info.max_allocation)
    why += fmt::format("; {} ({}) gives at most {} bytes at once", adapter_.info.name, adapter_.info.adapter,
                       adapter_.info.max_allocation);
  else
    why += fmt::format("; {} ({}) has {} bytes, {} of them available", adapter_.info.name, adapter_.info.adapter,
                       adapter_.memory.memoryHeaps[groups_[int(kind)].heap].size, available(kind));
  throw Error(ErrorKind::out_of_memory, why);
}

int Memory::pages() {
  std::lock_guard lock(mutex_);
  return static_cast<int>(by_address_.size());
}

}  // namespace weft::backend::vulkan
