// The device capabilities that a kernel needs.
#pragma once
#include "../frontend/ir/module.h"
#include "emit.h"

namespace weft::spirv {

/// Features that a module uses beyond the required ones; each becomes a capability of the shader.
struct Needs {
  bool int8 = false, int16 = false, int64 = false;
  bool float16 = false, float64 = false;
  bool storage8 = false, storage16 = false;
  bool float32_atomic_add = false, float64_atomic_add = false, int64_atomics = false;
  bool subgroup = false;  ///< uses subgroup operations or numbers
  bool vote = false, arithmetic = false, ballot = false, shuffle = false;
  bool ray_query = false;
  bool gathers = false;  ///< some additions are combined within a subgroup
  /// By array of the workgroup: its scalars are stored as bits, in unsigned integers of at least 32, because an atomic
  /// operation on it has no native form.
  std::vector<bool> as_bits;
  /// Widths in which values are computed: the shader asks for their rounding and their NaNs to be kept.
  bool real16 = false, real32 = false, real64 = false;
  struct Argument {
    ir::Type type;
    std::uint32_t offset;
    bool operator==(const Argument&) const = default;
  };
  std::vector<Argument> arguments;  ///< parts of the argument block that are read, by first use

  /// Adds the needs of another kernel of the same shader.
  void join(const Needs& other);
};

/// Whether threads of a subgroup that add to one element combine their values before an atomic addition.
bool gathers(const ir::Module& module, ir::Id id, const Target& target);

/// Walks the functions and the body of a kernel in their order.
/// \param arguments_in_memory  the argument block is read through an address, which needs 64 bits
/// Errors: Error(unsupported), naming the feature and the line of the first instruction that needs it.
Needs survey(const ir::Module& module, const Target& target, bool arguments_in_memory);

}  // namespace weft::spirv
