// Streams of devices on the host: every operation runs when it is recorded.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "../backend.h"
#include "memory.h"

namespace weft::backend {

/// Moments of the host's clock. Only the operation that is measured into a pair writes it.
class HostTimestamps : public Timestamps {
 public:
  explicit HostTimestamps(std::uint32_t places) : moments_(places, -1) {}
  std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) override;
  void write(std::uint32_t place);

 private:
  std::vector<std::int64_t> moments_;
};

/// What the streams of a device share: operations run one at a time, as on a GPU.
struct HostQueue {
  const Device& device;
  HostMemory& memory;
  std::recursive_mutex mutex = {};
};

/// A stream that runs each operation on the calling thread before the call returns. Every ticket is done at once, and
/// the call that causes an error throws it.
class HostStream : public Stream {
 public:
  explicit HostStream(HostQueue& queue) : queue_(queue) {}

  Ticket launch(Program& program, Grid grid, std::span<const std::byte> args, std::span<const MemoryRange>) override;
  Ticket copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) override;
  Ticket fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) override;
  Ticket upload(std::uint64_t to, const void* from, std::size_t bytes) override;
  void download(void* to, std::uint64_t from, std::size_t bytes, Ticket) override;
  Ticket replay(Graph& graph) override;
  bool measure(Timestamps* into, std::uint32_t first) override;

  Ticket submit() override;
  void start(Ticket) override { queue_.device.check_alive(); }
  bool done(Ticket ticket) override {
    queue_.device.check_alive();
    return ticket <= last_;
  }
  void wait(Ticket) override { queue_.device.check_alive(); }
  void synchronize() override { queue_.device.check_alive(); }

 protected:
  /// Runs a kernel. The queue is locked, memory that is freed meanwhile stays, and the grid has workgroups.
  /// \param grid  without Grid::at, whose words it holds
  virtual void run(Program& program, const Grid& grid, std::span<const std::byte> args) = 0;
  /// Copies memory that does not overlap, and fills words.
  virtual void copy_apart(std::byte* to, const std::byte* from, std::size_t bytes);
  virtual void fill_words(std::byte* to, std::size_t bytes, std::uint32_t pattern);

  const HostMemory& memory() const { return queue_.memory; }

 private:
  class Turn;
  class Measured;
  std::byte* device_bytes(std::uint64_t address, std::size_t bytes, const char* operation) const;

  HostQueue& queue_;
  Ticket last_ = 0;
  HostTimestamps* measure_ = nullptr;
  std::uint32_t measure_first_ = 0;
};

}  // namespace weft::backend
