// Kernels as LLVM's IR in text form: several threads at once in the lanes of vectors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"
#include "abi.h"
#include "real.h"

namespace weft::llvm {

/// The processor that code is emitted for.
struct Target {
  std::uint32_t lanes = 8;       ///< threads in a vector, the size of a subgroup: a power of two from 4 to 64
  bool masked_memory = true;     ///< masked loads, stores and gathers are instructions (AVX2 on)
  bool mask_registers = false;   ///< masks have registers of their own (AVX-512): <W x i1> stays as it is in loops
  bool fused = true;             ///< fma is an instruction; without it the product is rounded too
  bool half_conversions = true;  ///< so are conversions between float16 and float32
};

/// The name of the function in the emitted module.
inline constexpr const char* kEntryName = "weft_kernel";

/// An emitted kernel.
struct Code {
  std::string text;  ///< a module with the function kEntryName, of type Entry, which names no symbol from outside
  /// The same without the real functions that it calls, and modules with these: most kernels call the same few.
  std::string own;
  std::vector<FunctionModule> functions;
  Split split = Split::threads;
  std::uint64_t arena_bytes = 0;  ///< see Worker::arena
};

/// Emits a kernel as it was traced; any form is accepted.
/// Errors: Error(unsupported), with the line, for what this backend lacks.
/// \param by_rows  whether vectors may lie in rows of the launch (Split::rows); else threads of several rows share one,
///                 which is better where rows are short
Code emit(const ir::Module& kernel, const Target& target, bool by_rows = true);

}  // namespace weft::llvm
