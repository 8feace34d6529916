// Streams of the native device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "../host/stream.h"
#include "device.h"
#include "launch.h"

namespace weft::backend::native {

/// A stream whose operations run when they are recorded, each on as many host threads as it is worth, and one at a time
/// on a device. So a launch returns when it has run, and waits cost nothing.
class NativeStream final : public HostStream {
 public:
  NativeStream(NativeDevice& device, HostQueue& queue, Launcher& launcher)
      : HostStream(queue), device_(device), launcher_(launcher) {}

 private:
  void run(Program& program, const Grid& grid, std::span<const std::byte> args) override;
  void copy_apart(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void fill_words(std::byte* to, std::size_t bytes, std::uint32_t pattern) override;

  NativeDevice& device_;
  Launcher& launcher_;
};

}  // namespace weft::backend::native
