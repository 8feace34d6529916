// What a kernel needs of the device that runs it.
#pragma once
#include "../frontend/ir/module.h"
#include "emit.h"

namespace weft::spirv {

/// Features that a module uses, beyond the floor; each becomes a capability of the shader.
struct Needs {
  bool int8 = false, int16 = false, int64 = false;
  bool float16 = false, float64 = false;
  bool storage8 = false, storage16 = false;
  bool float32_atomic_add = false, float64_atomic_add = false, int64_atomics = false;
  bool subgroup = false;  ///< some operation of subgroups or number of one
  bool vote = false, arithmetic = false, ballot = false, shuffle = false;
  bool ray_query = false;
  bool gathers = false;  ///< some additions of a subgroup are made as one
  /// By array of the workgroup: its scalars lie there as bits, in unsigned integers of at least 32, because an atomic
  /// operation on it has no native form.
  std::vector<bool> as_bits;
  /// Widths in which values are computed: their rounding and their NaN are asked to be kept.
  bool real16 = false, real32 = false, real64 = false;
  struct Argument {
    ir::Type type;
    std::uint32_t offset;
    bool operator==(const Argument&) const = default;
  };
  std::vector<Argument> arguments;  ///< parts of the argument block whose value is used, by first use

  /// Also what another kernel of the same shader needs of the device.
  void join(const Needs& other);
};

/// Are the values of an atomic addition added up within subgroups first, where the threads mean one element?
bool gathers(const ir::Module& module, ir::Id id, const Target& target);

/// Walks the functions and the body of a kernel in their order.
/// \param arguments_in_memory  behind an address, which is 64 bits
/// Errors: Error(unsupported), naming the feature and the line of the first instruction that needs it.
Needs survey(const ir::Module& module, const Target& target, bool arguments_in_memory);

}  // namespace weft::spirv
