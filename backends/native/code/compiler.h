// LLVM at run time: text of its IR becomes object code. No header of LLVM is needed, and no LLVM where all is cached.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "library.h"
#include "processor.h"

namespace weft::backend::native {

/// LLVM's compiler for one processor. Thread-safe; stays until the process ends.
class Compiler {
 public:
  /// The compiler that the environment asks for (Request): the library that WEFT_LLVM names, else the newest that is
  /// found, from version 15 on. Null where there is none. \param why  what was tried then
  /// Errors: Error(invalid_argument) for a request that cannot be met: another library, a level that the host lacks.
  static Compiler* find(std::string* why = nullptr);
  /// The same for a request that was made before.
  static Compiler* find(const Request& request, std::string* why = nullptr);

  /// "LLVM 19.1.7"; version 15 does not say more than "LLVM 15"
  const std::string& version() const { return library_.toolchain.version; }
  const Toolchain& toolchain() const { return library_.toolchain; }
  const Processor& processor() const { return processor_; }
  /// Compiles a module to a relocatable object for the host. Its function llvm::kEntryName is made callable from here.
  /// Errors: internal_error() for text that is no valid module; Error(unsupported) for what LLVM cannot compile.
  std::vector<std::byte> compile(const std::string& text) const;

 private:
  Compiler(const Library& library, Processor processor);

  const Library& library_;
  const Processor processor_;
};

}  // namespace weft::backend::native
