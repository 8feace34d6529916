// Turns functions of real numbers that a device lacks into calls.
#pragma once
#include <initializer_list>
#include <optional>

#include "../ir/module.h"

namespace weft::lib {

/// The kernel with exp, log, sin, ... (the operations from `exp` to `tanh`) on these types as calls of functions that
/// it then holds; nothing if it uses none of them. float16 is computed in float32 and rounded once more.
std::optional<ir::Module> lower_real(const ir::Module& kernel, std::initializer_list<ir::Type> lacking);

}  // namespace weft::lib
