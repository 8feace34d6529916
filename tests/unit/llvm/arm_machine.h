// AArch64 where the host is another processor: LLVM makes its code, and QEMU runs it, if that is installed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../../backends/native/code/library.h"
#include "../../../llvm/emit.h"

namespace weft::test {

class ArmMachine {
 public:
  /// Null if LLVM makes no such code, or there is no emulator. \param why  receives the reason
  static const ArmMachine* find(std::string* why);

  /// What the emitter is told of the processor.
  llvm::Target target() const;
  /// Compiles a module to an object.
  std::vector<std::byte> compile(const std::string& text) const;

  /// An array, by the place of its address in the argument block.
  struct Array {
    std::size_t at;
    std::span<std::byte> memory;
  };
  /// Calls a compiled kernel for these ranges of units, one after another, and changes the arrays as it does.
  void run(std::span<const std::byte> object, std::uint64_t arena_bytes, std::vector<std::byte> block,
           const std::vector<Array>& arrays, const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) const;

 private:
  const backend::native::Library* library_ = nullptr;
  backend::native::abi::Handle target_ = nullptr;
  std::string emulator_;
};

}  // namespace weft::test
