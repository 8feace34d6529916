// Vulkan devices of others' making, and what only Vulkan devices can do.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../backend.h"
#include "handles.h"
#include "shared_memory.h"

namespace weft {

/// What weft uses of an adapter where it is there, for a program that makes its VkDevice itself: see docs/embedding.md
/// for the list. Must live until vkCreateDevice has been called.
class VulkanRequirements {
 public:
  /// \param api_version  of the instance, as in VulkanHandles
  /// Errors: Error(no_device) naming what the adapter lacks of what weft cannot do without; Error(invalid_argument) for
  /// handles that are null or do not belong together; Error(unsupported) for an instance before 1.2.
  VulkanRequirements(VkInstance instance, VkPhysicalDevice physical_device, std::uint32_t api_version = 0);
  ~VulkanRequirements();
  VulkanRequirements(const VulkanRequirements&) = delete;
  VulkanRequirements& operator=(const VulkanRequirements&) = delete;

  /// Turns on the features in a chain: in the structs that it has, and in structs of this object's that are put behind
  /// its head. What is on stays on.
  void add_features(VkPhysicalDeviceFeatures2& chain);
  /// Appends the names of device extensions that are not in the list yet.
  void add_extensions(std::vector<const char*>& names) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace backend {

/// A device around one of another's making. It is not destroyed with the result.
/// Errors: see weft::Device::adopt().
std::unique_ptr<Device> adopt_vulkan(const VulkanHandles& handles);

/// A timeline semaphore of weft's: see weft::TimelineSemaphore.
class TimelineHandle {
 public:
  virtual ~TimelineHandle() = default;
  virtual VkSemaphore vk() const = 0;
  virtual std::uint64_t value() const = 0;
  virtual void signal(std::uint64_t value) = 0;
  virtual void wait(std::uint64_t value) const = 0;
  virtual FileDescriptor share() const = 0;
};

/// For Vulkan devices alone; the others are refused with Error(unsupported) that says "`what` on <the device>".
class VulkanAccess {
 public:
  VulkanAccess(Device& device, const char* what);
  /// Whether it is one.
  static bool fits(Device& device);

  /// VkPhysicalDeviceIDProperties::deviceUUID: the GPU, to all interfaces that it has.
  std::array<std::uint8_t, 16> device_uuid() const;
  bool adopted() const;
  /// All work must have run. Everything of weft's on the device goes; what is still called throws Error(device_lost).
  void detach() const;

  VulkanBuffer locate(std::uint64_t address, std::uint64_t bytes) const;
  /// A buffer as memory of the device. Freed as wrapped memory is: see Device::wrap(). The buffer stays the caller's.
  /// Errors: Error(invalid_argument) for a null buffer, usage that is missing, bytes that are memory already.
  Allocation wrap(const VulkanBuffer& buffer) const;

  /// Memory of its own that can be shared. Freed as wrapped memory is.
  Allocation allocate_shared(std::uint64_t bytes) const;
  SharedMemory share(std::uint64_t address) const;
  /// Takes the descriptor over when it succeeds. The allocation has as many bytes as the buffer. Errors: as
  /// import_memory(). \param array_bytes  that the buffer must have at least
  Allocation import_shared(SharedMemory&& memory, std::uint64_t array_bytes) const;

  /// Memory that another interface to the same GPU has exported. Freed as wrapped memory is.
  /// Errors: Error(unsupported) where the device cannot import memory, and for what it does not take.
  Allocation import_foreign(FileDescriptor&& fd, std::uint64_t bytes) const;
  /// What is attached to the page of an address: made at the first call, dropped before the page's memory is.
  /// Errors: Error(unsupported) for memory that cannot be exported; what `make` throws.
  PageAttachment attach(std::uint64_t address, const MakeAttachment& make) const;
  /// Whether memory at an address can be attached to.
  bool shares(std::uint64_t address) const;
  /// Whether the host reads mapped memory at an address fast, or, with 0, that which arrays have.
  bool host_reads_fast(std::uint64_t address) const;

  std::unique_ptr<TimelineHandle> create_timeline(std::uint64_t value, bool shareable) const;
  /// Takes the descriptor over when it succeeds.
  std::unique_ptr<TimelineHandle> import_timeline(FileDescriptor&& fd) const;
  /// A semaphore of the two above.
  bool owns(VkSemaphore semaphore) const;

  /// A stream that stands for what others submit: see the functions below. It must end before the device.
  std::unique_ptr<Stream> create_recordings() const;

 private:
  Device& device_;
};

/// The same for streams of Vulkan devices.
class VulkanStreamAccess {
 public:
  VulkanStreamAccess(Stream& stream, const char* what);
  /// What the stream is given from now on runs when the timeline semaphore has the value.
  Ticket await(VkSemaphore semaphore, std::uint64_t value) const;
  /// The semaphore gets the value when all has run that the stream was given.
  /// Errors: Error(invalid_argument) for a value that is not above those that it has and is to have.
  Ticket signal(VkSemaphore semaphore, std::uint64_t value) const;

 private:
  Stream& stream_;
};

/// Whether the queue has work of weft's that waits for a semaphore of another's: nothing that comes after ends before
/// somebody signals it, who may be the host. False for devices that are not Vulkan's.
bool held_up(Device& device);

struct Operations;
/// On a stream from create_recordings(): operations go into a command buffer that is being recorded, between barriers
/// against everything. They stay until end_vulkan().
Ticket record_vulkan(Stream& recordings, VkCommandBuffer commands, const Operations& operations);
/// The queue has the command buffer. It has run when the semaphore has the value, or, where that is null, when all has
/// run that the queue has.
/// \return the ticket of this submission
Ticket submitted_vulkan(Stream& recordings, Ticket recording, VkSemaphore semaphore, std::uint64_t value);
/// Before the queue is said to have it: see VulkanRecordings::goes_back().
std::uint64_t goes_back_vulkan(Stream& recordings, Ticket recording, VkSemaphore semaphore, std::uint64_t value);
/// The command buffer is about to be submitted again.
void prepared_vulkan(Stream& recordings, Ticket recording);
/// The commands will not run any more once the submission that was told of last has: waits for that.
void end_vulkan(Stream& recordings, Ticket recording);

}  // namespace backend
}  // namespace weft
