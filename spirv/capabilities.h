// The device capabilities that a kernel needs.
#pragma once
#include <set>
#include <spirv/unified1/spirv.hpp11>

#include "../frontend/ir/module.h"
#include "emit.h"

namespace weft::spirv {

/// What a module uses beyond the required capabilities.
struct Needs {
  std::set<spv::Capability> capabilities;
  bool subgroup = false;  ///< uses subgroup operations or numbers
  bool gathers = false;   ///< some additions are combined within a subgroup
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

  bool has(spv::Capability c) const { return capabilities.count(c) > 0; }
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
