// What stands behind Device, Stream and Array. Internal to the runtime.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../backends/backend.h"

namespace weft::detail {

struct DeviceState;

/// A stream; lives as long as its device, so that arrays may name the stream that last worked on them.
struct StreamState {
  DeviceState* device = nullptr;
  std::unique_ptr<backend::Stream> stream;
};

/// A kernel as a device runs it.
struct LoadedProgram {
  std::shared_ptr<backend::Program> program;
  std::vector<ir::Param> params;
  std::uint32_t args_bytes = 0, tid_rank = 0, tid_offset = 0, block = 0;
};

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  ~DeviceState();

  std::uint64_t id = 0;  ///< never used again by another device
  std::unique_ptr<backend::Device> device;
  std::mutex mutex;                                                                            ///< guards what follows
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::unique_ptr<LoadedProgram>> programs;  ///< by module hash
  std::vector<std::unique_ptr<StreamState>> streams;  ///< the first is the default stream
  std::vector<StreamState*> idle;                     ///< streams that no handle names
};

/// Memory of a device, shared by an array and its views.
struct Storage {
  std::shared_ptr<DeviceState> device;
  backend::Allocation allocation;
  // The last work on it, for those who wait: read by `wait_for_writers`, `wait_for_users`.
  StreamState* writer = nullptr;
  backend::Ticket write = 0;
  StreamState* user = nullptr;
  backend::Ticket use = 0;

  ~Storage() {
    if (allocation.bytes) device->device->free(allocation);
  }

  /// Before work on `stream`: what another stream still does here must be done.
  void order_before(StreamState& stream, bool writes);
  void touched(StreamState& stream, backend::Ticket ticket, bool writes);
  void wait_for_writers();
  void wait_for_users();
};

std::shared_ptr<Storage> allocate(const std::shared_ptr<DeviceState>& device, std::uint64_t bytes);

}  // namespace weft::detail
