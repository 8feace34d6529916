// weft within a program that has a Vulkan device of its own: <weft/vulkan.h>. Needs none of Vulkan's headers.
#pragma once
#include <cstdint>
#include <memory>

#include "../backends/vulkan/interop.h"
#include "array.h"
#include "device.h"

namespace weft {

/// Work in a command buffer of the caller's: see Stream::record_into(). It keeps all that the commands use.
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
  /// recorded or submitted, so that it comes before.
  void prepare() const;
  /// The command buffer was submitted to the queue of the device just now. What weft is given from now on comes after,
  /// and reading an array waits for it.
  /// Cost: a submission without commands, by which weft learns when all has run.
  void submitted() const;
  /// The same without that: the submission signals a timeline semaphore with the value, or is followed by one that
  /// does. The semaphore must stay until this object has ended or was told of another submission. Errors:
  /// Error(invalid_argument) for a null semaphore.
  void submitted(VkSemaphore semaphore, std::uint64_t value) const;
  /// Whether the submission that was told of last has run.
  /// Errors: Error(invalid_argument) when there was none.
  bool done() const;

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
/// that shares it is gone, unless `owner` keeps it; the end of that array waits for weft's work.
/// Errors: Error(unsupported) on a device that is not adopted; Error(invalid_argument) for a null buffer, usage that is
/// missing, bytes that are not those of the array, an offset that is no multiple of 4, and a piece of which a part is
/// an array's already.
template <class T, int N = 1>
Array<T, N> wrap_buffer(const Device& device, const Extent& extent, const VulkanBuffer& buffer,
                        std::shared_ptr<void> owner = {}) {
  return Array<T, N>::around(device, extent, buffer, std::move(owner));
}

}  // namespace weft
