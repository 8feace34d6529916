// The native device: its memory, its streams, and its end with a process or a fork.
#pragma once
#include <atomic>
#include <memory>
#include <thread>

#include "../backend.h"
#include "../host/memory.h"
#include "../host/stream.h"
#include "launch.h"
#include "program.h"

namespace weft::backend::native {

/// See backend::open_native().
class NativeDevice final : public Device {
 public:
  struct Options {
    DeviceInfo info;    ///< of the processor and the compiler; the device adds what it knows itself
    bool fused = true;  ///< code for the processor has fused operations
    int threads = 1;    ///< host threads that work on a launch, the calling one included
  };
  NativeDevice(Options options, std::unique_ptr<ProgramSource> programs);

  const DeviceInfo& info() const override { return info_; }
  FusedTypes fused() override { return {fused_, fused_}; }
  void check_alive() const override {
    if (left_behind_.load(std::memory_order_relaxed)) refuse_left_behind();
  }
  /// Call before kernels are compiled or run.
  /// Errors: as check_alive(); Error(device_lost) on the thread that ends the process.
  void check_runs() const {
    check_alive();
    if (ends_.load(std::memory_order_acquire)) refuse_at_end();
  }
  bool leave_behind() noexcept override;
  void process_ends() noexcept override;

  Allocation allocate(std::size_t bytes, MemoryKind kind) override;
  void free(const Allocation& allocation) override;
  Allocation wrap(std::byte* memory, std::size_t bytes) override;

  std::shared_ptr<Program> compile(const ir::Module& module, detail::Hash128 hash) override;
  std::unique_ptr<Graph> create_graph(std::unique_ptr<Operations> operations) override;
  std::unique_ptr<Stream> create_stream() override;
  std::unique_ptr<Timestamps> create_timestamps(std::uint32_t places) override;
  CompileStats stats() const override { return programs_->stats(); }

 private:
  [[noreturn]] void refuse_left_behind() const;
  void refuse_at_end() const;

  DeviceInfo info_;
  const bool fused_;
  HostMemory memory_;
  HostQueue queue_;
  Launcher launcher_;
  std::unique_ptr<ProgramSource> programs_;
  std::atomic<bool> left_behind_ = false;  ///< in the parent process of a fork
  std::atomic<bool> ends_ = false;         ///< the process does
  std::thread::id ending_thread_;
};

/// Whether a native device was left behind by a fork of this process: it opens no other one. Threads of the parent may
/// hold locks of the compiler for ever.
bool left_behind_by_fork();

}  // namespace weft::backend::native
