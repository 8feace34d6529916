// WEFT_EXPORT_KERNELS: what a program launches, written as SPIR-V while it runs. Internal to the runtime.
#pragma once
#include "../../frontend/adjoint/adjoint.h"

namespace weft::detail {

/// Where the environment names a folder by WEFT_EXPORT_KERNELS: writes the kernel there, as export_module() gives it
/// for the target that WEFT_EXPORT_TARGET names ("portable" by default): STEM.spv, STEM.json, and STEM.ir with its IR;
/// or STEM.refused with the reason why it cannot be exported. STEM is the kernel's name with other characters than
/// letters, digits, - and _ replaced by _; further modules of the same name are STEM.2, STEM.3, ... Thread-safe.
/// Errors: Error(io); Error(invalid_argument) for a target of another name.
void export_launched(const ir::Module& module);
/// The same of its adjoint, STEM.adjoint. `module` is traced with Variant::adjoint.
void export_launched_adjoint(const ir::Module& module, const ir::AdjointOptions& options);

}  // namespace weft::detail
