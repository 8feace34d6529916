// Functions of real numbers as modules of the IR, for devices that lack them.
#pragma once
#include "../ir/module.h"

namespace weft::lib {

/// Whether an operation is a function of real numbers that takes more than an instruction: exp, log, sin, pow, ...
constexpr bool is_real_function(ir::Op op) { return op >= ir::Op::exp && op <= ir::Op::tanh; }

/// Such an operation on float32 or float64 as a function of a kernel with this interface. It consists of pure
/// operations and of branches without an else side; it computes, branches included, with any values. Accuracy:
/// real32.h, docs/semantics.md.
ir::Module real_function(ir::Op op, ir::Type type, const ir::Interface& kernel);

}  // namespace weft::lib
