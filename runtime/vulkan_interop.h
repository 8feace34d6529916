// weft within a program that has a Vulkan device of its own: <weft/vulkan.h>. Needs none of Vulkan's headers.
#pragma once
#include <cstdint>
#include <memory>

#include "../backends/vulkan/interop.h"
#include "../frontend/support/error.h"
#include "array.h"
#include "device.h"

namespace weft {

/// Work in a command buffer of the caller's: see Stream::record_into(). It keeps all that the commands use. What
/// elements and handles refer to is that of the moment of each prepare(), and is kept until that submission has run.
///
/// It must live as long as the command buffer may be submitted or run, as Vulkan has it for the command buffer itself:
/// kept beside it and replaced where it is reset, after the wait for its fence. Its end waits for the submission that
/// submitted() told of last.
///
/// Work happens where the command buffer is submitted, which weft is told by submitted(). Before that it refuses other
/// work on arrays that the recorded work writes, and changes of those that it reads: there would be no order.
class [[nodiscard]] Recording {
 public:
  /// Of no work.
  Recording();
  Recording(Recording&& other) noexcept;
  /// Ends what this object stood for.
  Recording& operator=(Recording&& other) noexcept;
  ~Recording();

  /// Before a command buffer is submitted again: starts the work on its arrays that weft was given since it was
  /// recorded or submitted, so that it comes before. Where kernels print, assert or check themselves it then waits for
  /// the submission before, as wait() does: what they said would be written over.
  /// Errors: Error(invalid_argument) for structures as Graph::launch(), and what a launch by handles refuses; those of
  /// wait() where it waits, Error(kernel_fault) above all, of any recording whose failures nobody has been told of.
  /// After these all is ready for the submission: a second call is not needed.
  void prepare(Loc loc = Loc::here()) const;
  /// The command buffer was submitted to the queue of the device just now, behind all others of which this was said.
  /// What weft is given from now on comes after, and reading an array waits for it. Errors: Error(invalid_argument)
  /// where the work has run on a structure that the device holds in another form by then (a recording that builds it
  /// was not submitted before): prepare() says so before it is too late. Cost: a submission without commands, by which
  /// weft learns when all has run.
  void submitted(Loc loc = Loc::here()) const;
  /// The same without that: the submission signals a timeline semaphore with the value, or the one right behind it
  /// does. The semaphore must stay until this object has ended, or was told of another submission after this one had
  /// run. Errors: Error(invalid_argument) for a null semaphore or the value 0, which change nothing; and for a value
  /// that an earlier submission was to signal, or one below, as far as the semaphore has shown by now: the work is then
  /// waited for as if there were no semaphore.
  void submitted(VkSemaphore semaphore, std::uint64_t value, Loc loc = Loc::here()) const;
  /// Waits on the host until the submission that was told of last has run, and shows what kernels printed in it. So
  /// does whatever waits for its arrays, or for the device; the end of this object shows lines and keeps failures for
  /// the next wait. Errors: Error(invalid_argument) when there was none; Error(kernel_fault) when a kernel's assert_ or
  /// check failed.
  void wait(Loc loc = Loc::here()) const;
  /// Whether the submission that was told of last has run.
  /// Errors: Error(invalid_argument) when there was none.
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
/// The buffer is of the adopted device, with memory bound that was allocated with
/// VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, and was made with VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT and both
/// TRANSFER bits, which `buffer.usage` tells; `buffer.address` need not be filled in. It must stay until the last array
/// that shares it is gone or freed by Array::free(), unless `owner` keeps it; both wait for weft's work.
/// Errors: Error(unsupported) on a device that is not adopted; Error(invalid_argument) for a null buffer, usage that is
/// missing, bytes that are not those of the array (VK_WHOLE_SIZE is none of them), an offset that is no multiple of 4,
/// and a piece of which a part is an array's already.
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

/// Where a new array stands.
struct Placement {
  std::shared_ptr<Storage> storage;
  std::uint64_t address = 0;
  std::array<std::int64_t, 4> shape{}, stride{};
};
Placement place_shared(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes);
Placement place_imported(const Device& device, const Extent& extent, int ndim, std::uint32_t element_bytes,
                         SharedMemory&& memory);

template <class T, int N>
class PlacedArray : public Array<T, N> {
  static_assert(!Layout<T>::holds_arrays, "weft: structs that hold arrays mean nothing to others");

 public:
  explicit PlacedArray(Placement&& p) {
    this->storage_ = std::move(p.storage);
    this->address_ = p.address;
    this->shape_ = p.shape;
    this->stride_ = p.stride;
  }
};

}  // namespace detail

/// An array in memory of its own (a dedicated allocation) that others can be given: see export_memory(). Not
/// initialised.
/// Errors: Error(unsupported) on a device without VK_KHR_external_memory_fd; Error(invalid_argument) for no elements;
/// Error(out_of_memory).
template <class T, int N = 1>
Array<T, N> shareable(const Device& device, detail::SizesOf<N> sizes) {
  return detail::PlacedArray<T, N>(
      detail::called_from(sizes.loc, [&] { return detail::place_shared(device, sizes, N, detail::Layout<T>::size); }));
}
/// The memory of an array from shareable() or import_memory(), or of a view of one: all of it. Who is given it must be
/// told when the array's work is done, by a semaphore or by waiting.
/// Errors: Error(invalid_argument) for another array.
SharedMemory export_memory(const ArrayBase& array, Loc loc = Loc::here());
/// An array at the beginning of memory that another device on the same adapter, or another process, has shared. On
/// success the descriptor is taken over, and the array has another one open as long as it lives, by which it can be
/// shared again; with an error it stays, unless the driver has closed it. The end of the array waits for weft's work.
/// Errors: Error(unsupported) on a device without VK_KHR_external_memory_fd; Error(invalid_argument) for memory of
/// another adapter or driver, for sizes that are not those of the buffer or too small for the array, for a buffer
/// without the usage that wrap_buffer() asks for or with one that the device was made without, and for a descriptor
/// that the driver does not take.
template <class T, int N = 1>
Array<T, N> import_memory(const Device& device, detail::SizesOf<N> sizes, SharedMemory&& memory) {
  return detail::PlacedArray<T, N>(detail::called_from(
      sizes.loc, [&] { return detail::place_imported(device, sizes, N, detail::Layout<T>::size, std::move(memory)); }));
}

/// A timeline semaphore of weft's, on any Vulkan device: Stream::wait() and Stream::signal() take its vk(). A handle:
/// copies are the same semaphore. Streams may still have to do with it when the last one goes.
class TimelineSemaphore {
 public:
  /// \param shareable  others can be given it: see share()
  /// Errors: Error(unsupported) on other devices, and for a shareable one on a device without
  /// VK_KHR_external_semaphore_fd.
  explicit TimelineSemaphore(const Device& device, std::uint64_t value = 0, bool shareable = false);
  /// One that another device on the same adapter, or another process, has shared. On success the descriptor is taken
  /// over. Errors: Error(unsupported) as above, Error(invalid_argument) for what the driver does not take.
  TimelineSemaphore(const Device& device, FileDescriptor&& fd);

  std::uint64_t value() const;
  /// By the host, before what streams are to give it. Errors: Error(invalid_argument) while this thread captures, and
  /// for a value that is not above the one that it has, or not below those.
  void signal(std::uint64_t value, Loc loc = Loc::here()) const;
  /// On the host, until it has at least the value.
  void wait(std::uint64_t value, Loc loc = Loc::here()) const;
  VkSemaphore vk() const;
  /// Errors: Error(invalid_argument) for one that was not made to be shared.
  FileDescriptor share() const;

 private:
  std::shared_ptr<backend::TimelineHandle> handle_;  ///< keeps the device, too
};

}  // namespace weft
