// LLVM's library: where it is found, and what of it is called.
#pragma once
#include <memory>
#include <string>

#include "llvm_functions.h"
#include "processor.h"

namespace weft::backend::native {

/// What decides about code besides the kernel and what the environment asks for. It may be kept between runs: code that
/// is cached then needs no LLVM.
struct Toolchain {
  std::string version;   ///< "LLVM 19.1.7"
  std::string identity;  ///< the library's file, by size and time
  std::string path;      ///< of the library's file; empty if the system does not say
  Host host;
  bool operator==(const Toolchain&) const = default;
};

/// The identity of a file; empty if there is none.
std::string file_identity(const std::string& path);

/// A library of LLVM in this process, with all that is called of it. It stays until the process ends.
struct Library {
  abi::Functions calls;
  unsigned major = 0;
  Toolchain toolchain;
  abi::Handle target = nullptr;
  std::string layout;  ///< of data in memory, as modules name it

  /// The library of that name or path; without a name, the newest that is found. Each is loaded once. Null if there is
  /// none, or for kNoLibrary. \param why  what is wrong then
  static const Library* find(const std::string& name, std::string* why);

  /// A machine for the processor; null if LLVM refuses. The caller disposes of it.
  abi::Handle create_machine(const std::string& processor, const std::string& features) const;
};

/// The name of no library.
inline constexpr const char* kNoLibrary = "none";

/// The system and processor for which LLVM makes code. It is Linux on every system, whose objects are ELF.
const char* triple();

inline constexpr unsigned kOldestLlvm = 15;
/// The newest version that weft was tested with. Later ones are taken if there is no other.
inline constexpr unsigned kNewestLlvm = 22;

}  // namespace weft::backend::native
