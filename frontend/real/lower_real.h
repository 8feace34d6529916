// Turns functions of real numbers that a device lacks into calls.
#pragma once
#include <initializer_list>
#include <optional>

#include "../ir/module.h"

namespace weft::lib {

/// The kernel with exp, log, sin, ... of these types (float32, float64) as calls of functions that it then holds;
/// nothing if it uses none of them.
std::optional<ir::Module> lower_real(const ir::Module& kernel, std::initializer_list<ir::Type> lacking);

}  // namespace weft::lib
