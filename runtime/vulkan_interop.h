// <weft/vulkan.h>: weft in a program that has a Vulkan device of its own. Needs none of Vulkan's headers.
#pragma once
#include <cstdint>
#include <memory>

#include "../backends/vulkan/interop.h"
#include "../frontend/support/error.h"
#include "array.h"
#include "device.h"

namespace weft {

/// Work in a command buffer of the caller: see Stream::record_into(). The recording keeps everything that its commands
/// use. Handles are followed at each prepare(); what they lead to is kept until that submission has run. Elements have
/// to hold the arrays that they held when the work was recorded: prepare() and submitted() throw where they do not.
///
/// A recording must live as long as the command buffer may be submitted or run, as Vulkan has it for the command buffer
/// itself: keep the two together and replace the recording where the command buffer is reset, after the wait for its
/// fence. The end of the recording waits for the submission that submitted() told of last.
///
/// The work happens where the command buffer is submitted, and submitted() tells weft when. Until then other work on
/// arrays that the recorded work writes is refused, and so are changes of arrays that it reads, since nothing would
/// order them.
class [[nodiscard]] Recording {
 public:
  /// A recording of no work.
  Recording();
  Recording(Recording&& other) noexcept;
  /// Ends the recording that this object stood for.
  Recording& operator=(Recording&& other) noexcept;
  ~Recording();

  /// Call this before a command buffer is submitted again. It submits the work on its arrays that weft was given since
  /// the recording or its last submission, so that this work comes first. If its kernels print, assert or check
  /// themselves, it then waits for the previous submission, as wait() does, whose reports would otherwise be
  /// overwritten.
  /// Errors: Error(invalid_argument) for structures as Graph::launch(), and for whatever a launch by handles refuses;
  /// where it waits, the errors of wait(), above all Error(kernel_fault) of any recording whose failures nobody has
  /// been told of. After the latter everything is ready for the submission: a second call is not needed.
  void prepare(Loc loc = Loc::here()) const;
  /// Tells weft that the command buffer was submitted to the queue of the device just now, after all others of which
  /// this was told. Later work of weft comes after, and reading an array waits for it.
  /// Errors: Error(invalid_argument) if the work has run on a structure that the device held in another size or memory
  /// by then (a recording that builds it was not submitted before): prepare() says so before it is too late.
  /// Cost: a submission without commands, by which weft learns when everything has run.
  void submitted(Loc loc = Loc::here()) const;
  /// Tells weft the same without a submission of its own: the caller's submission, or the one right after it, signals a
  /// timeline semaphore with the value. The semaphore must live until this object has ended, or was told of another
  /// submission after this one had run.
  /// Errors: Error(invalid_argument) for a null semaphore or the value 0, which change nothing; and for a value that is
  /// not above that of an earlier submission, as far as the semaphore has shown by now: the work is then waited for as
  /// if there were no semaphore.
  void submitted(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;
  /// Waits on the host until the submission told of last has run, and shows what kernels printed in it. Every wait for
  /// its arrays or for the device does the same; the end of this object shows lines and keeps failures for the next
  /// wait.
  /// Errors: Error(invalid_argument) when there was no submission; Error(kernel_fault) when a kernel's assert_ or check
  /// failed.
  void wait(Loc loc = Loc::here()) const;
  /// Whether the submission told of last has run.
  /// Errors: Error(invalid_argument) when there was no submission.
  bool done(Loc loc = Loc::here()) const;

  bool is_null() const { return !state_; }

 private:
  friend class Stream;
  struct State;
  explicit Recording(std::unique_ptr<State> state);
  State& state() const;
  void tell(VkSemaphore semaphore, std::uint64_t value) const;
  std::unique_ptr<State> state_;
};

/// An array around a piece of the caller's VkBuffer, without a copy: kernels read and write the buffer itself.
///
/// The buffer belongs to the adopted device. Its memory is bound and was allocated with
/// VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT; it was made with VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT and both TRANSFER
/// bits, which `buffer.usage` tells; `buffer.address` need not be filled in. The buffer must live until the last array
/// that shares it is gone or freed by Array::free(), unless `owner` keeps it; both wait for weft's work.
/// Errors: Error(unsupported) on a device that is not adopted; Error(invalid_argument) for a null buffer, missing
/// usage, another number of bytes than the array has (VK_WHOLE_SIZE is none), an offset that is no multiple of 4, and a
/// piece of which an array uses a part already.
template <class T, int N = 1>
Array<T, N> wrap_buffer(const Device& device, detail::SizesOf<N> sizes, const VulkanBuffer& buffer,
                        std::shared_ptr<void> owner = {}) {
  return detail::called_from(sizes.loc, [&] {
    if (buffer.bytes == ~std::uint64_t(0))
      throw Error(ErrorKind::invalid_argument,
                  "a VkBuffer is wrapped with VK_WHOLE_SIZE: Vulkan does not tell how large it is, so name the bytes");
    return Array<T, N>::around(device, sizes, buffer, std::move(owner));
  });
}

namespace detail {

ArrayBase make_shared_array(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes);
ArrayBase import_shared_array(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes,
                              SharedMemory&& memory);

template <class T>
constexpr void check_shared() {
  static_assert(!Layout<T>::holds_arrays, "weft: structs that hold arrays mean nothing to others");
}

}  // namespace detail

/// An array in memory of its own (a dedicated allocation) that can be shared: see export_memory(). Not initialised.
/// Errors: Error(unsupported) on a device without VK_KHR_external_memory_fd; Error(invalid_argument) for no elements;
/// Error(out_of_memory).
template <class T, int N = 1>
Array<T, N> shareable(const Device& device, detail::SizesOf<N> sizes) {
  detail::check_shared<T>();
  return detail::ArrayOn<T, N>(detail::called_from(
      sizes.loc, [&] { return detail::make_shared_array(device, sizes, N, detail::Layout<T>::size); }));
}
/// Exports all of the memory of an array from shareable() or import_memory(), or of a view of one. Whoever gets the
/// memory must learn when the array's work is done, by a semaphore or by waiting.
/// Errors: Error(invalid_argument) for another array.
SharedMemory export_memory(const ArrayBase& array, Loc loc = Loc::here());
/// An array at the beginning of memory that another device on the same adapter, or another process, has shared. On
/// success the descriptor is taken over, and the array keeps another one open for its lifetime, by which it can be
/// shared again. After an error the descriptor stays the caller's, unless the driver has closed it. The end of the
/// array waits for weft's work.
/// Errors: Error(unsupported) on a device without VK_KHR_external_memory_fd; Error(invalid_argument) for memory of
/// another adapter or driver, for a size or a usage that does not fit the array or the device, and for a descriptor
/// that the driver does not take. See docs/embedding.md.
template <class T, int N = 1>
Array<T, N> import_memory(const Device& device, detail::SizesOf<N> sizes, SharedMemory&& memory) {
  detail::check_shared<T>();
  return detail::ArrayOn<T, N>(detail::called_from(sizes.loc, [&] {
    return detail::import_shared_array(device, sizes, N, detail::Layout<T>::size, std::move(memory));
  }));
}

/// A timeline semaphore of weft's, on any Vulkan device: Stream::wait() and Stream::signal() take its vk(). A handle:
/// copies are the same semaphore. Streams may still use the semaphore when the last handle goes.
class TimelineSemaphore {
 public:
  /// \param shareable  whether the semaphore can be shared: see share()
  /// Errors: Error(unsupported) on devices that are not Vulkan's, and for a shareable one on a device without
  /// VK_KHR_external_semaphore_fd.
  explicit TimelineSemaphore(const Device& device, std::uint64_t value = 0, bool shareable = false);
  /// Imports a semaphore that another device on the same adapter, or another process, has shared. On success the
  /// descriptor is taken over.
  /// Errors: Error(unsupported) as above; Error(invalid_argument) for a descriptor that the driver does not take.
  TimelineSemaphore(const Device& device, FileDescriptor&& fd);

  std::uint64_t value() const;
  /// Sets the value from the host, ahead of the values that streams are to give it.
  /// Errors: Error(invalid_argument) while this thread captures, and for a value that is not above the semaphore's
  /// present one, or not below those of streams.
  void signal(std::uint64_t value, Loc loc = Loc::here()) const;
  /// Waits on the host until the semaphore has at least the value.
  void wait(std::uint64_t value, Loc loc = Loc::here()) const;
  VkSemaphore vk() const;
  /// Exports the semaphore.
  /// Errors: Error(invalid_argument) for a semaphore that was not made shareable.
  FileDescriptor share() const;

 private:
  std::shared_ptr<backend::vulkan::VulkanTimeline> timeline_;  ///< keeps the device, too
};

}  // namespace weft
