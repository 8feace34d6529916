// Adopted Vulkan devices, and operations that only Vulkan devices have.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../backend.h"
#include "handles.h"
#include "shared_memory.h"

namespace weft {

/// The optional features and extensions that weft uses if an adapter has them, for a program that makes its own
/// VkDevice: docs/embedding.md has the list. Must live until vkCreateDevice has been called.
class VulkanRequirements {
 public:
  /// \param api_version  of the instance, as in VulkanHandles
  /// Errors: Error(no_device) naming a requirement of weft's that the adapter does not meet; Error(invalid_argument)
  /// for handles that are null or do not belong together; Error(unsupported) for an instance before 1.2.
  VulkanRequirements(VkInstance instance, VkPhysicalDevice physical_device, std::uint32_t api_version = 0);
  ~VulkanRequirements();
  VulkanRequirements(const VulkanRequirements&) = delete;
  VulkanRequirements& operator=(const VulkanRequirements&) = delete;

  /// Turns on the features in a chain: in its own structs, and in structs of this object's that are inserted after its
  /// head. Features that are on stay on.
  void add_features(VkPhysicalDeviceFeatures2& chain);
  /// Appends the device extensions that are not in the list yet.
  void add_extensions(std::vector<const char*>& names) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace backend {

/// Wraps a device that others made. It is not destroyed with the result.
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

/// Operations of Vulkan devices. Others are refused with Error(unsupported) that says "`what` on <the device>".
class VulkanAccess {
 public:
  VulkanAccess(Device& device, const char* what);
  /// Whether the device is a Vulkan device.
  static bool fits(Device& device);

  /// VkPhysicalDeviceIDProperties::deviceUUID, which identifies the GPU to all its interfaces.
  std::array<std::uint8_t, 16> device_uuid() const;
  bool adopted() const;
  /// Destroys everything of weft's on the device. All work must have run; later calls throw Error(device_lost).
  void detach() const;

  VulkanBuffer locate(std::uint64_t address, std::uint64_t bytes) const;
  /// Makes a buffer memory of the device. It is freed as wrapped memory is: see Device::wrap(). The buffer stays the
  /// caller's.
  /// Errors: Error(invalid_argument) for a null buffer, missing usage, or bytes that are memory of the device already.
  Allocation wrap(const VulkanBuffer& buffer) const;

  /// Allocates memory in a buffer of its own, which can be shared. It is freed as wrapped memory is.
  Allocation allocate_shared(std::uint64_t bytes) const;
  SharedMemory share(std::uint64_t address) const;
  /// Imports a buffer. Takes over the descriptor if it succeeds. The allocation is as large as the buffer.
  /// \param array_bytes  the least that the buffer must have
  /// Errors: as import_memory().
  Allocation import_shared(SharedMemory&& memory, std::uint64_t array_bytes) const;

  /// Imports memory that another interface to the same GPU has exported. It is freed as wrapped memory is.
  /// Errors: Error(unsupported) where the device cannot import memory, and for memory that it refuses.
  Allocation import_foreign(FileDescriptor&& fd, std::uint64_t bytes) const;
  /// The attachment of the page at an address: made by the first call, dropped before the page's memory.
  /// Errors: Error(unsupported) for memory that cannot be exported; whatever `make` throws.
  PageAttachment attach(std::uint64_t address, const MakeAttachment& make) const;
  /// Whether memory at an address can have an attachment.
  bool shares(std::uint64_t address) const;
  /// Whether the host reads mapped memory at an address fast; with 0, whether it does so for arrays' memory.
  bool host_reads_fast(std::uint64_t address) const;

  std::unique_ptr<TimelineHandle> create_timeline(std::uint64_t value, bool shareable) const;
  /// Imports a timeline semaphore. Takes over the descriptor if it succeeds.
  std::unique_ptr<TimelineHandle> import_timeline(FileDescriptor&& fd) const;
  /// Whether create_timeline() or import_timeline() made the semaphore.
  bool owns(VkSemaphore semaphore) const;

  /// A stream that stands for work that others submit: see the functions below. It must end before the device.
  std::unique_ptr<Stream> create_recordings() const;

 private:
  Device& device_;
};

/// Operations of streams of Vulkan devices; others are refused likewise.
class VulkanStreamAccess {
 public:
  VulkanStreamAccess(Stream& stream, const char* what);
  /// Makes work that the stream is given from now on wait until the timeline semaphore has the value.
  Ticket await(VkSemaphore semaphore, std::uint64_t value) const;
  /// Sets the semaphore to the value when everything has run that the stream was given.
  /// Errors: Error(invalid_argument) for a value that is not above the present one and all pending ones.
  Ticket signal(VkSemaphore semaphore, std::uint64_t value) const;

 private:
  Stream& stream_;
};

/// Whether the queue has work of weft's that waits for a semaphore of another's: nothing after it ends before somebody,
/// perhaps the host, signals the semaphore. False for other devices.
bool held_up(Device& device);

struct Operations;
/// Records operations into a command buffer in recording, between full barriers, on a stream from create_recordings().
/// They stay until end_vulkan().
Ticket record_vulkan(Stream& recordings, VkCommandBuffer commands, const Operations& operations);
/// Notes that the queue has the command buffer. It has run when the semaphore has the value, or, if that is null, when
/// everything has run that the queue has.
/// \return the ticket of this submission
Ticket submitted_vulkan(Stream& recordings, Ticket recording, VkSemaphore semaphore, std::uint64_t value);
/// Call before submitted_vulkan(): see VulkanRecordings::goes_back().
std::uint64_t goes_back_vulkan(Stream& recordings, Ticket recording, VkSemaphore semaphore, std::uint64_t value);
/// Notes that the command buffer is about to be submitted again.
void prepared_vulkan(Stream& recordings, Ticket recording);
/// Ends a recording whose commands will not run again: waits for its last announced submission.
void end_vulkan(Stream& recordings, Ticket recording);

}  // namespace backend
}  // namespace weft
