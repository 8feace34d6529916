// What a kernel was compiled to, and its adjoints. Internal to the runtime.
#pragma once
#include <optional>

#include "../../frontend/adjoint/adjoint.h"
#include "../../frontend/kernels/kernel.h"
#include "../core/state.h"

namespace weft::detail {

/// The program of a kernel for launches of this variant, compiled when it is first asked for.
/// Errors: Error(invalid_kernel) when the trace fails; Error(unsupported) when the device lacks what it needs.
LoadedProgram& program_for(KernelCore& kernel, DeviceState& device, const ir::Variant& variant);

/// What a kernel's function recorded at one time, by which later traces are measured.
struct TraceMark {
  ir::Variant variant;
  std::uint32_t max_block;
  ir::Hash hash;
};
/// The IR of this variant for an export. `first` is that of the export's first trace, set by it.
/// Errors: Error(invalid_kernel) when the trace fails, differs from the first one or from what was launched or exported
/// before, and in a kernel's own function.
ir::Module trace_for_export(KernelCore& kernel, const ir::Variant& variant, std::uint32_t max_block,
                            std::optional<TraceMark>& first);
/// The export has come about: what was traced for it is what the kernel is from now on.
void settle(KernelCore& kernel, const TraceMark& mark);

/// A number for what the kernel does in launches of this variant, whatever debug mode checks beside that. Kernels that
/// are made anew at the same place with the same function have the same.
/// \param program  that of the launch
/// Cost: in debug mode, a trace for the first launch of each variant.
std::uint64_t identity_of(KernelCore& kernel, DeviceState& device, const ir::Variant& variant,
                          const LoadedProgram& program);

/// The adjoint of a kernel for launches of one variant and one choice of gradients, and what it was compiled to.
class KernelAdjoint {
 public:
  KernelAdjoint(ir::Adjoint adjoint) : adjoint_(std::move(adjoint)) {}

  const ir::Adjoint& get() const { return adjoint_; }
  /// Compiles it for a device when it is first asked for.
  LoadedProgram& program(DeviceState& device);
  /// The same for the program that counts the entries of the undo log, where there is one.
  LoadedProgram& counter(DeviceState& device);

 private:
  struct Programs;
  LoadedProgram& program(DeviceState& device, const ir::Module& module, const char* role,
                         std::shared_ptr<Programs>& programs);

  const ir::Adjoint adjoint_;
  std::mutex mutex_;
  std::shared_ptr<Programs> programs_, counters_;
};

/// Traces the kernel and builds the adjoint, or finds it among those that the kernel has. `variant` as it was launched.
/// Errors: Error(not_differentiable) with the line of what has no derivative.
/// Cost: milliseconds for each variant and choice of options; the adjoint is compiled when it is run.
std::shared_ptr<KernelAdjoint> adjoint_of(KernelCore& kernel, DeviceState& device, const ir::Variant& variant,
                                          const ir::AdjointOptions& options);

}  // namespace weft::detail
