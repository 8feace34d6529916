// LLVM at run time: text of its IR becomes object code. No header of LLVM is needed, and no LLVM where all is cached.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "../../llvm/emit.h"

namespace weft::backend::native {

/// The host's processor, as LLVM names it.
struct Processor {
  std::string name, features;
  llvm::Target target;  ///< what the emitter makes of it
};

/// LLVM's compiler, loaded once in a process. Thread-safe.
class Compiler {
 public:
  /// The compiler of this process: the library that WEFT_LLVM names, else the newest that is found, from version 15 on.
  /// Null where there is none. \param why  what was tried then
  static Compiler* find(std::string* why = nullptr);

  /// "LLVM 15.0.7"
  const std::string& version() const;
  const Processor& processor() const;
  /// Compiles a module to a relocatable object for the host.
  /// Errors: internal_error() for text that LLVM refuses; Error(unsupported) for what it cannot compile.
  std::vector<std::byte> compile(const std::string& text) const;

  ~Compiler();

 private:
  Compiler();
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace weft::backend::native
