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

/// How a kernel is exported: `k.spirv({.adjoint = true, .names = {"x", "v"}})`.
struct SpirvOptions {
  /// The kernel that carries gradients from what the kernel wrote back to what it read.
  bool adjoint = false;
  /// For which device: see Target::portable(), Target::named() and spirv_target().
  spirv::Target target = spirv::Target::portable();
  /// Of the arguments, in order; those without are called "argument 1", ... An argument that is a struct with arrays
  /// becomes several: "mesh.points", "mesh.indices".
  std::vector<std::string> names = {};
  /// Arrays, by name, that are given with strides; the others are contiguous.
  std::vector<std::string> strided = {};
  /// Arrays, by name, that have gradients, of an adjoint; none: all arrays of real numbers.
  std::vector<std::string> gradients = {};
  /// Saved states for each loop that an adjoint must run again: see TapeOptions.
  std::uint32_t loop_slots = 8;
  /// By SPIRV-Tools' passes for performance.
  bool optimise = false;
};

/// A kernel that was exported.
struct SpirvKernel {
  std::vector<std::uint32_t> words;  ///< the module
  Reflection reflection;
  std::string ir;  ///< what was translated, as text with lines of the source
};

/// What a device offers to exported kernels. Errors: Error(invalid_argument) for a device that is not Vulkan's.
spirv::Target spirv_target(const Device& device);

/// The kernel as a SPIR-V module and how to launch it. Needs no device.
///
/// No two arrays of an adjoint may overlap, unless both are only read.
/// Errors: Error(invalid_kernel) when the trace fails; Error(invalid_argument) for a name that no argument has, and for
/// one that is not UTF-8;
/// Error(unsupported), with the line, for what the target lacks and for kernels that only weft's runtime can launch:
/// which print, assert or check themselves (debug mode), or follow handles of meshes and hierarchies of boxes; for
/// adjoints that need work of the host: of atomic minima and maxima, and of loops that overwrite a number of elements
/// which only a run tells. Error(not_differentiable) as a tape. Cost: milliseconds.
SpirvKernel export_spirv(detail::KernelCore& kernel, const SpirvOptions& options);

namespace detail {
/// The same of a kernel's IR, as its trace gives it.
SpirvKernel export_module(const ir::Module& module, const SpirvOptions& options);
/// And its adjoint: the IR as traced with Variant::adjoint. \param gradients  by parameter: arrays that have gradients
SpirvKernel export_adjoint(const ir::Module& module, std::uint64_t gradients, const SpirvOptions& options);
/// A kernel's name as that of a file: other characters than letters, digits, - and _ become _.
std::string file_stem(const std::string& name);
}  // namespace detail

/// Writes FOLDER/STEM.spv and FOLDER/STEM.json, both or none.
/// Errors: Error(io); Error(invalid_argument) for names that are not UTF-8.
void write_spirv(const SpirvKernel& kernel, const std::string& folder, const std::string& stem, Loc loc = Loc::here());

}  // namespace weft
