// The pass that turns addresses of an array's gradient, and of its state after the launch, into those of parameters.
#pragma once
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// By parameter: whether the module names its state `op` (gradient_base, after_base). The module calls nothing.
/// Errors: Error(not_differentiable) for the state of an address that is not one of an array parameter.
std::vector<char> named_states(const Module& module, Op op);

/// Replaces the states by the parameters that hold them, which `gradient` and `after` give by parameter. Reads of a
/// gradient that does not exist (kNone) give zero, and writes to it do nothing.
void resolve_states(Module& module, const std::vector<std::uint32_t>& gradient,
                    const std::vector<std::uint32_t>& after);

}  // namespace weft::ir
