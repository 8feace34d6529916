// Copies from a device to memory of the host that the host does not wait for at once.
#pragma once
#include <memory>

#include "../frontend/support/loc.h"

namespace weft {

namespace detail {
struct HostCopyState;
}

/// A copy to the host that is under way: see Array::copy_to_async(). The memory that it fills is written by wait() (or
/// by the end of this object, which waits) and must stay until then; before, its contents are as they were.
class [[nodiscard]] HostCopy {
 public:
  /// Nothing under way.
  HostCopy();
  explicit HostCopy(std::unique_ptr<detail::HostCopyState> state);
  HostCopy(HostCopy&& other) noexcept;
  /// Waits for what this object stood for.
  HostCopy& operator=(HostCopy&& other) noexcept;
  ~HostCopy();

  /// Whether wait() would return without waiting for the device.
  bool done(Loc loc = Loc::here()) const;
  /// Returns when the elements have arrived in the memory. Does nothing a second time.
  /// Errors: Error(device_lost); Error(kernel_fault) when a kernel before the copy failed: the elements have arrived.
  void wait(Loc loc = Loc::here());

 private:
  void finish() noexcept;
  std::unique_ptr<detail::HostCopyState> state_;
};

}  // namespace weft
