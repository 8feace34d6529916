// The state of a HostCopy. Internal to the runtime.
#pragma once
#include "../core/state.h"
#include "../device.h"

namespace weft::detail {

struct HostCopyState {
  HostCopyState(std::shared_ptr<DeviceState> on, Stream by) : device(std::move(on)), stream(std::move(by)) {}

  struct Part {
    std::shared_ptr<Storage> staging;
    std::byte* to = nullptr;
    std::uint64_t bytes = 0;
    backend::Ticket ticket = 0;
  };
  std::shared_ptr<DeviceState> device;
  /// A handle, so that the stream gets no other owner meanwhile, whose failures would be taken for this copy's.
  Stream stream;
  std::vector<Part> parts;
};

/// Starts a copy of `bytes` from an address in `storage`, in order with Device::stream().
std::unique_ptr<HostCopyState> start_host_copy(Storage& storage, std::uint64_t from, std::uint64_t bytes,
                                               std::byte* to);

}  // namespace weft::detail
