// Device memory: pages from the driver, cut into allocations.
#pragma once
#include <volk.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../../backend.h"
#include "../instance.h"
#include "../shared_memory.h"
#include "suballocator.h"

namespace weft::backend::vulkan {

/// An address as buffer and offset.
struct Place {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  std::byte* host = nullptr;  ///< mapped, or null
  bool cached = false;        ///< the host reads it fast
  VkBufferUsageFlags usage = 0;
};

/// See Tuning.
struct MemoryTuning {
  std::uint64_t page_bytes;  ///< the largest shared page: larger requests get a page of their own
  bool map_device;           ///< false: device memory is used as if the host could not reach it
  bool cache_device;         ///< false: mapped device memory is used as if the host did not cache it
  bool share_pages;          ///< makes pages exportable where the device can, as Adapter::shares_pages does
};

/// The memory of one device. Each page is one VkDeviceMemory and one VkBuffer with an address; host-visible ones stay
/// mapped. Thread-safe. Frees at once: deferring is up to the device.
class Memory {
 public:
  static constexpr std::uint64_t kPageBytes = 64ull << 20;

  Memory(const Adapter& adapter, VkDevice device, const VolkDeviceTable& vk, const MemoryTuning& tuning);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Allocates from existing pages.
  std::optional<Allocation> find(std::uint64_t bytes, MemoryKind kind);
  /// Allocates from a new page; nothing if the device has no room, even after empty pages were released.
  std::optional<Allocation> grow(std::uint64_t bytes, MemoryKind kind);
  /// Makes host memory a page of its own: a part of a buffer that spans whole host pages.
  /// Errors: Error(unsupported) if the device cannot use this memory, or any; Error(invalid_argument) if it overlaps
  /// memory of the device.
  Allocation wrap(std::byte* memory, std::uint64_t bytes);
  /// Makes a piece of another's buffer memory of the device. The buffer stays its owner's.
  /// Errors: Error(invalid_argument) if it overlaps memory of the device.
  Allocation wrap(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, VkBufferUsageFlags usage);
  /// Allocates memory in a page of its own that can be shared.
  /// Errors: Error(unsupported) where the device cannot share memory; Error(out_of_memory).
  Allocation allocate_shared(std::uint64_t bytes);
  SharedMemory share(std::uint64_t address);
  /// Imports a buffer. Takes over the descriptor if it succeeds.
  /// Errors: Error(unsupported); Error(invalid_argument) for what is not memory for this device, or a buffer of fewer
  /// bytes than an array needs.
  Allocation import_shared(SharedMemory&& memory, std::uint64_t array_bytes);
  /// Imports the first `bytes` of memory that another interface to the same GPU has exported. Takes over the descriptor
  /// if it succeeds. Errors: as import_shared().
  Allocation import_foreign(FileDescriptor&& fd, std::uint64_t bytes);
  /// The attachment of the page at an address, made by `make` if there is none. It is dropped before the page goes back
  /// to the driver. `make` is called without a lock; if two threads make one at once, one is kept.
  /// Errors: Error(unsupported) for memory that cannot be exported; whatever `make` throws.
  PageAttachment attach(std::uint64_t address, const MakeAttachment& make);
  /// Whether memory at an address can have an attachment.
  bool shares(std::uint64_t address);
  void free(std::uint64_t handle);
  /// Ends freed pages with attachments. Ending these is another interface's work and may wait, so the caller holds no
  /// lock that other threads need.
  void bury();
  static bool is_wrapped(std::uint64_t handle) { return handle != 0 && (handle & 3) == kWrapped; }

  /// The page and offset of an address.
  /// Errors: Error(invalid_argument) if the bytes are not in one page of this device.
  Place resolve(std::uint64_t address, std::uint64_t bytes);

  /// Bytes that the heap of this kind still has, as far as the driver tells.
  std::uint64_t available(MemoryKind kind);
  /// Throws Error(out_of_memory) for a request that cannot be met.
  [[noreturn]] void refuse(std::uint64_t bytes, MemoryKind kind);
  /// Whether memory of this kind is mapped.
  bool host_visible(MemoryKind kind) const { return groups_[int(kind)].host_visible; }
  /// Whether the host also reads it fast.
  bool cached(MemoryKind kind) const { return groups_[int(kind)].cached; }

  /// Pages held, for tests.
  int pages();

 private:
  struct Page {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t address = 0, bytes = 0;
    std::byte* host = nullptr;
    bool large = false;  ///< process memory in large pages, see make_large()
    int group = 0;
    // Members of wrapped pages
    std::uint64_t offset = 0;  // in the buffer
    VkBufferUsageFlags usage = 0;
    bool others = false;               // others own the buffer and its memory
    std::uint64_t shared_bytes = 0;    // size of the memory, if it can be shared
    std::uint32_t type = 0;            // of the memory
    bool dedicated = false;            // the memory, to the buffer
    FileDescriptor imported{};         // duplicate of the descriptor of imported memory
    std::shared_ptr<void> attached{};  // see attach()
  };

  static constexpr std::uint32_t kNoRegion = ~0u;
  static constexpr VkExternalMemoryHandleTypeFlags kShared = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  // Chooses a memory type among those that a buffer may use, given as bits; -1 if there is none.
  using ChooseType = std::function<int(std::uint32_t usable)>;
  static constexpr int kWrapped = 3;  // the group after those of the kinds: memory that was not allocated here

  // All pages of one kind, or all that were not allocated here.
  struct Group {
    std::uint32_t type = 0, heap = 0;
    bool host_visible = false, cached = false;
    std::uint64_t page_bytes = 0;
    Suballocator pieces;
    std::vector<std::unique_ptr<Page>> shared;  // by the suballocator's region
    std::vector<std::unique_ptr<Page>> own;     // one allocation each; null: released
    std::vector<std::uint32_t> own_free;        // indices of nulls in `own`
    std::unique_ptr<Page> spare_own;            // the last that was freed, kept for the next request of its size
    std::uint32_t empty = kNoRegion;            // the one kept shared page without an allocation
  };

  void choose_types(std::uint32_t usable, std::uint32_t usable_by_pages);
  std::uint64_t available_locked(const Group& group);
  std::unique_ptr<Page> make_page(Group& group, MemoryKind kind, std::uint64_t bytes);
  bool make_large(Page& page);
  bool make_own(Page& page, const Group& group, bool exportable);
  VkResult make_buffer(Page& page, VkExternalMemoryHandleTypeFlags handles);
  VkResult bind(Page& page, VkExternalMemoryHandleTypeFlags handles, const void* import, std::uint64_t bytes,
                const ChooseType& choose_type);
  bool map(Page& page, const Group& group);
  bool locate(Page& page, std::uint64_t from = 0);
  const Page* overlapped(const Page& page) const;
  std::optional<Allocation> grow_locked(Group& group, MemoryKind kind, std::uint64_t bytes);
  void give_back(std::unique_ptr<Page> page);
  void destroy(Page& page);
  bool give_back_empty(Group& group);
  int find_type(std::uint32_t usable, VkMemoryPropertyFlags wanted, int heap) const;
  bool import(Page& page);
  [[noreturn]] void refuse_twice(const std::string& what) const;
  void enter(Page& page, const std::string& what);
  void require_sharing() const;
  Page* page_at(std::uint64_t address);
  VkResult import_descriptor(Page& page, FileDescriptor& fd, std::uint64_t bytes, const ChooseType& choose_type);
  void enter_import(Page& page, int fd);
  FileDescriptor descriptor_of(const Page& page);
  SharedMemory describe(const Page& page);
  Allocation hand_out(Group& group, MemoryKind kind, const Suballocator::Piece& piece, std::uint64_t bytes);
  Allocation hand_out_own(int group, std::unique_ptr<Page> page, std::uint64_t bytes);

  const Adapter& adapter_;
  VkDevice device_;
  const VolkDeviceTable& vk_;
  std::uint64_t max_page_;
  bool share_pages_;
  std::mutex mutex_;
  std::array<Group, 4> groups_;
  std::map<std::uint64_t, Page*> by_address_;
  std::vector<std::unique_ptr<Page>> dead_;  // see bury()
  std::atomic<bool> any_dead_{false};
  std::array<std::uint64_t, VK_MAX_MEMORY_HEAPS> held_{};  // bytes taken from each heap
};

}  // namespace weft::backend::vulkan
