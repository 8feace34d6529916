// Launches on the native device: how a grid becomes pieces of work for host threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "../backend.h"
#include "../host/memory.h"
#include "pool.h"
#include "program.h"

namespace weft::backend::native {

/// Memory that host threads lend to kernels, by their numbers. It is kept for later launches, and given back after
/// kPeriod launches that needed less than a quarter of it.
class Arenas {
 public:
  /// \param memory  the device's, of which the arenas are a part
  Arenas(int threads, HostMemory& memory) : counted_(memory), workers_(std::size_t(threads)) {}
  Arenas(const Arenas&) = delete;
  ~Arenas() { hold(0); }

  /// Gives each host thread what the kernel needs, at a multiple of 64. A launch calls it before its first effect.
  /// Errors: Error(out_of_memory) naming the kernel.
  void prepare(const DeviceProgram& program, const Body& body);
  const llvm::Worker& worker(int thread) const { return workers_[std::size_t(thread)]; }
  /// What each host thread has.
  std::uint64_t bytes() const { return bytes_; }

  static constexpr std::uint32_t kPeriod = 256;

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete(memory, kPage); }
  };
  void hold(std::uint64_t bytes);

  HostMemory& counted_;
  std::unique_ptr<std::byte, Delete> memory_;
  std::uint64_t bytes_ = 0;
  std::vector<llvm::Worker> workers_;
  std::uint64_t most_ = 0;      ///< that a launch of the present period has needed
  std::uint32_t launches_ = 0;  ///< of the period
};

/// Runs launches of one device, one at a time. A launch that takes less than some 20 us, as earlier ones of its kernel
/// tell, runs on the calling thread alone: waking others would take longer.
class Launcher {
 public:
  /// \param threads  host threads that work on a launch, the calling one included
  /// \param lanes    threads of a vector
  /// \param memory   the device's
  Launcher(int threads, std::uint32_t lanes, HostMemory& memory)
      : pool_(threads), lanes_(lanes), arenas_(pool_.threads(), memory) {}

  /// Runs all threads of a launch that belong to the grid, and returns when they have run.
  /// Errors: Error(invalid_argument) when the block is too short; Error(out_of_memory). No thread has run then.
  void run(const DeviceProgram& program, const Grid& grid, std::span<const std::byte> args);

  Pool& pool() { return pool_; }

 private:
  struct Call;
  const Body& choose(const DeviceProgram& program, const Grid& grid, const std::byte* args) const;
  static Call call_of(const DeviceProgram& program, const Body& body, const Grid& grid, const std::byte* args);
  bool run_here(Call& call);
  void run_shared(const Call& call);
  const std::byte* aligned(std::span<const std::byte> args);

  Pool pool_;
  const std::uint32_t lanes_;
  Arenas arenas_;
  std::vector<std::uint64_t> args_;
  std::uint32_t launches_ = 0;
};

}  // namespace weft::backend::native
