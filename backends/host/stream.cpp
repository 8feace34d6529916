// Operations of streams on the host, one at a time, and the moments between which they run.
#include "stream.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "../../frontend/support/invalid.h"
#include "../operations.h"

namespace weft::backend {

std::optional<std::array<std::int64_t, 2>> HostTimestamps::read(std::uint32_t first) {
  if (moments_.at(first) < 0 || moments_.at(first + 1) < 0) return {};
  return std::array{moments_[first], moments_[first + 1]};
}

void HostTimestamps::write(std::uint32_t place) {
  moments_.at(place) = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A device that was left behind by a fork is refused before the lock, which a thread of the parent may hold for ever.
class HostStream::Turn {
 public:
  explicit Turn(HostQueue& queue) : lock_((queue.device.check_alive(), queue.mutex)), use_(queue.memory) {}

 private:
  const std::lock_guard<std::recursive_mutex> lock_;
  const HostMemory::Use use_;
};

// Lives around an operation. The outermost one measures, so that a graph is not measured by its parts.
class HostStream::Measured {
 public:
  explicit Measured(HostStream& stream)
      : into_(std::exchange(stream.measure_, nullptr)), first_(stream.measure_first_) {
    if (into_) into_->write(first_);
  }
  Measured(const Measured&) = delete;
  ~Measured() {
    if (into_) into_->write(first_ + 1);
  }

 private:
  HostTimestamps* into_;
  std::uint32_t first_;
};

std::byte* HostStream::device_bytes(std::uint64_t address, std::size_t bytes, const char* operation) const {
  if (!queue_.memory.find(address).holds(address, bytes)) {
    invalid("{}: {} bytes at address {:#x} are not in device memory", operation, bytes, address);
  }
  return reinterpret_cast<std::byte*>(address);
}

Ticket HostStream::launch(Program& program, Grid grid, std::span<const std::byte> args, std::span<const MemoryRange>) {
  const Turn turn(queue_);
  if (const std::uint64_t at = std::exchange(grid.at, 0)) {
    std::uint32_t words[3];
    std::memcpy(words, device_bytes(at, sizeof words, "launch"), sizeof words);
    grid.x = words[0];
    grid.y = words[1];
    grid.z = words[2];
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return last_;
  const Measured measured(*this);
  run(program, grid, args);
  return ++last_;
}

Ticket HostStream::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const Turn turn(queue_);
  const Measured measured(*this);
  if (bytes) {
    std::byte* const target = device_bytes(to, bytes, "copy");
    const std::byte* const source = device_bytes(from, bytes, "copy");
    if (to - from < bytes || from - to < bytes)
      std::memmove(target, source, bytes);
    else
      copy_apart(target, source, bytes);
  }
  return ++last_;
}

Ticket HostStream::fill(std::uint64_t to, std::size_t bytes, std::uint32_t pattern) {
  if (bytes % 4 || to % 4) {
    invalid("fill: {} bytes at address {:#x}: both must be multiples of 4", bytes, to);
  }
  const Turn turn(queue_);
  const Measured measured(*this);
  if (bytes) fill_words(device_bytes(to, bytes, "fill"), bytes, pattern);
  return ++last_;
}

Ticket HostStream::upload(std::uint64_t to, const void* from, std::size_t bytes) {
  const Turn turn(queue_);
  if (bytes) copy_apart(device_bytes(to, bytes, "upload"), static_cast<const std::byte*>(from), bytes);
  return ++last_;
}

void HostStream::download(void* to, std::uint64_t from, std::size_t bytes, Ticket) {
  const Turn turn(queue_);
  if (bytes) copy_apart(static_cast<std::byte*>(to), device_bytes(from, bytes, "download"), bytes);
}

Ticket HostStream::replay(Graph& graph) {
  const Turn turn(queue_);
  const Measured measured(*this);  // the graph is measured as a whole
  backend::run(graph.operations(), *this);
  return last_;
}

bool HostStream::measure(Timestamps* into, std::uint32_t first) {
  measure_first_ = first;
  return std::exchange(measure_, static_cast<HostTimestamps*>(into)) != nullptr;
}

Ticket HostStream::submit() {
  queue_.device.check_alive();
  return last_;
}

void HostStream::copy_apart(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void HostStream::fill_words(std::byte* to, std::size_t bytes, std::uint32_t pattern) {
  for (std::size_t at = 0; at < bytes; at += 4) std::memcpy(to + at, &pattern, 4);
}

}  // namespace weft::backend
