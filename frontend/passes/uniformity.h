// Where threads come together, and which failures would make them diverge.
#pragma once
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// Whether threads meet anywhere in the kernel, at barriers or in subgroup operations.
bool needs_agreement(const Module& module);

/// By instruction: whether threads that run their loops in step would no longer do so if those that fail here left the
/// innermost one. This concerns each `return_` of a failure and, in a loop's own condition, each read of a local that
/// remembers a failure; false for all others, and for failures that all these threads share.
std::vector<char> failures_that_part(const Module& module);

}  // namespace weft::ir
