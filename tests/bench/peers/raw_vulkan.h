// Dispatches as a program in plain Vulkan records them, against which launches are measured.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "../../../backends/backend.h"

namespace weft::bench {

/// One compute shader whose arguments are push constants, recorded into command buffers of its own and given to the
/// device's queue, each dispatch after a memory barrier.
/// Errors of all: std::runtime_error.
class RawDispatches {
 public:
  RawDispatches(backend::Device& device, const std::string& glsl, std::uint32_t push_bytes);
  ~RawDispatches();
  RawDispatches(const RawDispatches&) = delete;
  RawDispatches& operator=(const RawDispatches&) = delete;

  /// Records `count` dispatches of one workgroup and submits them, `batch` to a command buffer.
  void run(std::span<const std::byte> push, int count, int batch);
  void wait();

  /// Records `count` dispatches into a command buffer of their own, instead of one that was recorded before.
  void record(std::span<const std::byte> push, int count);
  /// Submits what record() has recorded.
  void replay();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::bench
