// Turns float64 functions that SPIR-V lacks into calls.
#pragma once
#include <optional>

#include "../frontend/ir/module.h"

namespace weft::spirv {

/// The kernel with exp, log, sin, ... of float64 as calls of functions that it then holds (real64.h); nothing if it
/// uses none of them.
std::optional<ir::Module> lower_real64(const ir::Module& kernel);

}  // namespace weft::spirv
