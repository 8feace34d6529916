// WEFT_EXPORT_KERNELS: writes the kernels that a program launches as SPIR-V. Internal to the runtime.
#pragma once
#include "../../frontend/adjoint/adjoint.h"

namespace weft::detail {

/// Writes a kernel to the folder that WEFT_EXPORT_KERNELS names in the environment, if there is one, as
/// export_module() gives it for the target that WEFT_EXPORT_TARGET names ("portable" by default): STEM.spv, STEM.json,
/// and STEM.ir with its IR; or STEM.refused with the reason why it cannot be exported. STEM is the kernel's name with
/// other characters than letters, digits, - and _ replaced by _; further modules of the same name are STEM.2, STEM.3,
/// ... Thread-safe.
/// Errors: Error(io); Error(invalid_argument) for a target of another name.
void export_launched(const ir::Module& module);
/// Writes the kernel's adjoint likewise, as STEM.adjoint. `module` is traced with Variant::adjoint.
void export_launched_adjoint(const ir::Module& module, const ir::AdjointOptions& options);

}  // namespace weft::detail
