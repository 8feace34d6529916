// A compiled kernel as the native device launches it, and where the device gets it from.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "../../llvm/abi.h"
#include "../backend.h"

namespace weft::backend::native {

/// Machine code of a kernel, and what is known of the time that it takes. Constant else, so several host threads may
/// run it at the same time.
///
/// A launch calls `entry` with an argument block at a multiple of 16 bytes. Where `split` is threads, each range begins
/// at a multiple of 64.
struct Body {
  Body() = default;
  Body(llvm::Entry entry, llvm::Split split, std::uint64_t arena_bytes)
      : entry(entry), split(split), arena_bytes(arena_bytes) {}

  llvm::Entry entry = nullptr;
  llvm::Split split = llvm::Split::threads;
  std::uint64_t arena_bytes = 0;  ///< see llvm::Worker

  /// Nanoseconds that a thread of the kernel takes on one host thread, by earlier launches; negative: none has run.
  float cost() const { return cost_.load(std::memory_order_relaxed); }
  /// Notes that `threads` threads took so long.
  void took(double nanoseconds, double threads) const;

 private:
  mutable std::atomic<float> cost_ = -1;
};

/// A kernel as machine code. Thread-safe.
class DeviceProgram : public Program {
 public:
  /// \param kernel  whose interface the program keeps, as far as launches need it
  explicit DeviceProgram(const ir::Interface& kernel)
      : block(kernel.block), args_bytes(kernel.args_bytes), loc(kernel.loc), name_(kernel.name) {
    if (kernel.tid_rank > 1) row_at = kernel.extent_offset(int(kernel.tid_rank) - 1);
  }
  const std::string& name() const override { return name_; }

  virtual const Body& body() const = 0;
  /// The same kernel split by threads, if body() is split by rows: for launches whose rows are short or few. May be
  /// compiled when it is first asked for; body() where that fails.
  virtual const Body& by_threads() const { return body(); }

  const std::uint32_t block;       ///< threads of a workgroup
  const std::uint32_t args_bytes;  ///< size of the argument block
  std::uint32_t row_at = 0;        ///< place in the block of the u32 number of threads in a row; 0: it has no rows
  const Loc loc;

 private:
  const std::string name_;
};

/// Makes programs. Thread-safe.
class ProgramSource {
 public:
  virtual ~ProgramSource() = default;
  /// Compiles a kernel, or finds it compiled. `hash` is ir::hash(module).
  /// Errors: Error(unsupported) naming what cannot be compiled.
  virtual std::shared_ptr<DeviceProgram> program(const ir::Module& module, detail::Hash128 hash) = 0;
  virtual CompileStats stats() const = 0;
};

}  // namespace weft::backend::native
