// The programs of a kernel and of its adjoints. Internal to the runtime.
#pragma once
#include <optional>

#include "../../frontend/adjoint/adjoint.h"
#include "../../frontend/kernels/kernel.h"
#include "../core/state.h"

namespace weft::detail {

/// The program of a kernel for launches of this variant, compiled by the first call.
/// Errors: Error(invalid_kernel) when the trace fails; Error(unsupported) when the device lacks what it needs.
LoadedProgram& program_for(KernelCore& kernel, DeviceState& device, const ir::Variant& variant);

/// A trace of a kernel's function, with which later ones are compared.
struct TraceMark {
  ir::Variant variant;
  std::uint32_t max_block;
  Hash128 hash;
};
/// The IR of this variant for an export. `first` is the mark of the export's first trace, which sets it.
/// Errors: Error(invalid_kernel) when the trace fails, when it differs from the first one or from what was launched or
/// exported before, and inside a kernel's own function.
ir::Module trace_for_export(KernelCore& kernel, const ir::Variant& variant, std::uint32_t max_block,
                            std::optional<TraceMark>& first);
/// Notes that an export has succeeded: unless there is an earlier mark, all later traces must agree with this one.
void settle(KernelCore& kernel, const TraceMark& mark);

/// A number that identifies what the kernel does in launches of this variant, without the checks of debug mode. A
/// kernel that is made anew at the same place with the same function has the same number.
/// \param program  the program of the launch
/// Cost: in debug mode, a trace for the first launch of each variant.
std::uint64_t identity_of(KernelCore& kernel, DeviceState& device, const ir::Variant& variant,
                          const LoadedProgram& program);

/// The adjoint of a kernel for launches of one variant and one choice of gradients, and its programs.
class KernelAdjoint {
 public:
  KernelAdjoint(ir::Adjoint adjoint) : adjoint_(std::move(adjoint)) {}

  const ir::Adjoint& get() const { return adjoint_; }
  /// The adjoint's program for a device, compiled by the first call.
  LoadedProgram& program(DeviceState& device);
  /// The program that counts the entries of the undo log, compiled by the first call. For adjoints that have a log.
  LoadedProgram& counter(DeviceState& device);

 private:
  struct Programs;
  LoadedProgram& program(DeviceState& device, const ir::Module& module, const char* role,
                         std::shared_ptr<Programs>& programs);

  const ir::Adjoint adjoint_;
  std::mutex mutex_;
  std::shared_ptr<Programs> programs_, counters_;
};

/// Traces the kernel and builds the adjoint, or finds it among those that the kernel has. `variant` is the launch's.
/// Errors: Error(not_differentiable) with the line that has no derivative.
/// Cost: milliseconds for each variant and choice of options; the adjoint is compiled when it is run.
std::shared_ptr<KernelAdjoint> adjoint_of(KernelCore& kernel, DeviceState& device, const ir::Variant& variant,
                                          const ir::AdjointOptions& options);

}  // namespace weft::detail
