// Compiled kernels: made by emitter, LLVM and loader, or found in the cache, which needs no LLVM.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../../frontend/ir/module.h"
#include "../../../llvm/emit.h"
#include "../../backend.h"
#include "../../disk_cache.h"
#include "compiler.h"
#include "loader.h"

namespace weft::backend::native {

/// A kernel that can be called.
struct NativeProgram {
  std::shared_ptr<const LoadedCode> code;  ///< keeps the entry
  llvm::Entry entry = nullptr;
  llvm::Split split = llvm::Split::threads;
  std::uint64_t arena_bytes = 0;  ///< llvm::Code::arena_bytes
};

/// A compiled kernel as the cache keeps it: its object, and what is to be known before it is called.
struct StoredProgram {
  llvm::Split split = llvm::Split::threads;
  std::uint64_t arena_bytes = 0;
  std::span<const std::byte> object;
  std::vector<CalledFunction> functions;
};
std::vector<std::byte> pack(const StoredProgram& program);
/// The parts of what pack() returned, or nothing if it is damaged.
std::optional<StoredProgram> unpack(std::span<const std::byte> bytes);

/// What was packed of a toolchain, so that the next process looks for cached kernels without loading LLVM.
std::vector<std::byte> pack(const Toolchain& toolchain);
std::optional<Toolchain> unpack_toolchain(std::span<const std::byte> bytes);

/// Makes programs for the host's processor. Thread-safe.
class Programs {
 public:
  /// Looks for LLVM as Compiler::find() does. If an earlier process has noted what it found, LLVM is not loaded before
  /// the first kernel that is not cached. The note counts for the same processor, unless WEFT_LLVM is set, and as
  /// long as the library's file is there and unchanged.
  /// Returns null where there is neither, and where the system allows no such code. \param why  what was tried then
  /// Errors: Error(invalid_argument) for what the environment asks for and cannot have.
  static std::unique_ptr<Programs> open(std::string* why = nullptr);

  /// For tests: with another cache.
  static std::unique_ptr<Programs> open(DiskCache cache, std::string* why);

  const Processor& processor() const { return processor_; }
  /// "LLVM 19.1.7", for DeviceInfo::driver
  const std::string& llvm() const { return version_; }
  /// What decides about code besides the kernel, for DeviceInfo::cache_key.
  const std::string& key() const { return key_; }

  /// The program of a kernel, from the cache if it is there. `hash` is ir::hash(kernel), `by_rows` llvm::emit()'s.
  /// Errors: Error(unsupported) for what the emitter or LLVM lacks; Error(no_device) if LLVM is needed and gone.
  NativeProgram compile(const ir::Module& kernel, detail::Hash128 hash, bool by_rows = true);

  /// Compilations so far: emitted, loaded, rejected.
  CompileStats stats() const;

 private:
  Programs(DiskCache cache, Request request, const Toolchain& toolchain, Compiler* compiler);

  std::optional<NativeProgram> find(const std::string& key);
  Compiler& load_compiler();
  NativeProgram make(const Compiler& compiler, const ir::Module& kernel, bool by_rows, const std::string& key);
  /// The object of a real function, compiled once. \param key  of the toolchain
  std::shared_ptr<const std::vector<std::byte>> function(const Compiler& compiler, const llvm::FunctionModule& function,
                                                         const std::string& key);

  DiskCache cache_;
  const Request request_;
  const std::string version_, noted_path_;
  const Processor processor_;
  const std::string key_;
  std::atomic<Compiler*> compiler_;  // null until a kernel needs it
  std::atomic<std::uint64_t> emitted_{0}, loaded_{0}, rejected_{0};
  std::mutex functions_mutex_;
  std::map<std::string, std::shared_ptr<const std::vector<std::byte>>> functions_;  // by the key in the cache
};

}  // namespace weft::backend::native
