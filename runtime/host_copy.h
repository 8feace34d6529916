// Copies from a device to the host that the host waits for later.
#pragma once
#include <memory>

#include "../frontend/support/loc.h"

namespace weft {

namespace detail {
struct HostCopyState;
}

/// A copy to the host that is under way: see Array::copy_to_async(). Only wait(), or the end of this object, which
/// waits too, writes the destination; until then its contents are unchanged. The destination must live that long.
class [[nodiscard]] HostCopy {
 public:
  /// No copy under way.
  HostCopy();
  explicit HostCopy(std::unique_ptr<detail::HostCopyState> state);
  HostCopy(HostCopy&& other) noexcept;
  /// Waits for the copy that this object stood for.
  HostCopy& operator=(HostCopy&& other) noexcept;
  ~HostCopy();

  /// Whether wait() would return without waiting for the device.
  bool done(Loc loc = Loc::here()) const;
  /// Returns when the elements have arrived in the destination. A second call does nothing.
  /// Errors: Error(device_lost); Error(kernel_fault) when a kernel before the copy failed: the elements have arrived.
  void wait(Loc loc = Loc::here());

 private:
  void finish() noexcept;
  std::unique_ptr<detail::HostCopyState> state_;
};

}  // namespace weft
