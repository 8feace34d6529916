// Kernels as SPIR-V, for programs that launch them without weft.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../frontend/support/loc.h"
#include "../spirv/target.h"
#include "reflection.h"

namespace weft {

class Device;
namespace ir {
struct Module;
}
namespace detail {
class KernelCore;
}

/// The options of an export: `k.spirv({.adjoint = true, .names = {"x", "v"}})`.
struct SpirvOptions {
  /// Exports the adjoint, which carries gradients from what the kernel wrote back to what it read.
  bool adjoint = false;
  /// The device that the module is for: see Target::portable(), Target::named() and spirv_target().
  spirv::Target target = spirv::Target::portable();
  /// The names of the arguments, in order; arguments without one are called "argument 1", ... A struct with arrays
  /// becomes several arguments: "mesh.points", "mesh.indices".
  std::vector<std::string> names = {};
  /// The names of the arrays that are given with strides; the others are contiguous.
  std::vector<std::string> strided = {};
  /// The names of the arrays that have gradients, for an adjoint; none: all arrays of real numbers.
  std::vector<std::string> gradients = {};
  /// The number of states saved for each loop that an adjoint must run again: see TapeOptions.
  std::uint32_t loop_slots = 8;
  /// Runs SPIRV-Tools' performance passes on the module.
  bool optimise = false;
};

/// An exported kernel.
struct SpirvKernel {
  std::vector<std::uint32_t> words;  ///< the module
  Reflection reflection;
  std::string ir;  ///< the translated IR, as text with lines of the source
};

/// The capabilities of a device, for kernels that are exported for it.
/// Errors: Error(invalid_argument) for a device that is not Vulkan's.
spirv::Target spirv_target(const Device& device);

/// Exports a kernel as a SPIR-V module with a description of how to launch it. Needs no device.
///
/// No two arrays of an adjoint may overlap, unless both are only read.
/// Errors: Error(invalid_kernel) when the trace fails; Error(invalid_argument) for a name that no argument has or that
/// is not UTF-8; Error(not_differentiable) as for a tape; Error(unsupported), with the line, for what the target lacks,
/// and for kernels and adjoints that only weft's runtime can launch. See docs/exporting.md.
/// Cost: milliseconds.
SpirvKernel export_spirv(detail::KernelCore& kernel, const SpirvOptions& options);

namespace detail {
/// Exports a kernel from the IR of its trace.
SpirvKernel export_module(const ir::Module& module, const SpirvOptions& options);
/// Exports an adjoint from IR that was traced with Variant::adjoint.
/// \param gradients  a bit for each parameter: arrays that have gradients
SpirvKernel export_adjoint(const ir::Module& module, std::uint64_t gradients, const SpirvOptions& options);
/// The name of a kernel as the name of a file: characters other than letters, digits, - and _ become _.
std::string file_stem(const std::string& name);
}  // namespace detail

/// Writes FOLDER/STEM.spv and FOLDER/STEM.json, both or none.
/// Errors: Error(io); Error(invalid_argument) for names that are not UTF-8.
void write_spirv(const SpirvKernel& kernel, const std::string& folder, const std::string& stem, Loc loc = Loc::here());

}  // namespace weft
