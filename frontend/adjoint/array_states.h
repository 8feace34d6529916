// Addresses of an array's gradient and of its state after the launch become those of parameters.
#pragma once
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// By parameter: is its state `op` (gradient_base, after_base) named? The module calls nothing.
/// Errors: Error(not_differentiable) for a state of what is no array parameter.
std::vector<char> named_states(const Module& module, Op op);

/// Puts the arrays at their places: `gradient` and `after` say by parameter which one holds that state of it. Where
/// there is no gradient (kNone), reads give zero and writes do nothing.
void resolve_states(Module& module, const std::vector<std::uint32_t>& gradient,
                    const std::vector<std::uint32_t>& after);

}  // namespace weft::ir
