// Replaces what SPIR-V or its drivers lack before a kernel is translated.
#pragma once
#include <optional>

#include "../frontend/ir/module.h"

namespace weft::spirv {

/// The kernel with float64 functions as calls (frontend/real/lower_real.h), and with branches guarded instead of nested
/// where they would be deeper than drivers hold (limit_nesting). Nothing if the kernel can stay as it is. Errors: those
/// of limit_nesting().
std::optional<ir::Module> lower(const ir::Module& kernel);

}  // namespace weft::spirv
