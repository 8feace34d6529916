// The processor that code is made for: its instructions and the number of lanes, as LLVM and the environment have them.
#pragma once
#include <cstdint>
#include <string>

#include "../../../frontend/support/platform.h"
#include "../../../llvm/emit.h"

namespace weft::backend::native {

/// Kinds of processors for which there is code, by their numbers in ELF.
enum class Machine : std::uint16_t { none = 0, x86_64 = 62, aarch64 = 183 };

#if defined(__x86_64__) || defined(_M_X64)
inline constexpr Machine kHostMachine = Machine::x86_64;
#elif defined(__aarch64__) || defined(_M_ARM64)
inline constexpr Machine kHostMachine = Machine::aarch64;
#else
inline constexpr Machine kHostMachine = Machine::none;
#endif

/// The host's processor, as LLVM names it.
struct Host {
  std::string name;      ///< "znver4"
  std::string features;  ///< "+avx2,-avx512f,.."
  bool operator==(const Host&) const = default;
};

/// What the environment asks for in place of the best that the host has.
struct Request {
  std::string library;      ///< WEFT_LLVM: the library of LLVM, a path or a name, or kNoLibrary; empty: the newest
  std::string level;        ///< WEFT_CPU_LEVEL: x86-64-v2, -v3 or -v4; empty: all that the processor has
  std::uint32_t lanes = 0;  ///< WEFT_CPU_LANES: 4, 8 or 16; 0: as many as its vectors have
  auto operator<=>(const Request&) const = default;

  /// Errors: Error(invalid_argument) for a number or level that does not exist.
  static Request from_environment();
};

/// The processor that code is made for: the host's, or a lesser one that its environment asks for.
struct Processor {
  std::string name, features;
  llvm::Target target;  ///< what the emitter makes of it
};

/// Errors: Error(invalid_argument) if the host lacks the level that is asked for; Error(unsupported) if it lacks the
/// lowest.
Processor choose_processor(const Host& host, const Request& request, Machine machine = kHostMachine,
                           const platform::CallRules& rules = platform::call_rules());

}  // namespace weft::backend::native
