// Where threads come together, and which failures would part them.
#pragma once
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// Do threads meet anywhere in the kernel, at barriers or in operations of subgroups?
bool needs_agreement(const Module& module);

/// By instruction: would threads that go through their loops together no longer do so, if those that fail here left
/// the innermost one? Asked of each `return_` of a failure and, in a loop's own condition, of each read of a local that
/// remembers a failure; false for all others, and where the failure is one of all these threads.
std::vector<char> failures_that_part(const Module& module);

}  // namespace weft::ir
