// Real functions on vectors, as text of LLVM's IR.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"

namespace weft::llvm {

/// Whether an operation on this type is a call of a function that real_function() defines (sin, exp, pow, ..), rather
/// than instructions that the emitter writes in place.
bool is_real_function(ir::Op op, ir::Type type);

/// The name of the function: "@weft.sin.f32.v16"; "@weft.sin.f32" for one lane.
std::string real_function_name(ir::Op op, ir::Type type, std::uint32_t lanes);

/// The definition of the function, with those of the functions that it calls, and with the declarations of intrinsics.
/// Each piece of text names what it defines in its first line, so that a module holds no piece twice.
/// Accuracy: docs/semantics.md.
struct RealFunction {
  std::string name;  ///< of a function or an intrinsic
  std::string text;  ///< "define internal .." or "declare .."
};
std::vector<RealFunction> real_function(ir::Op op, ir::Type type, std::uint32_t lanes);

}  // namespace weft::llvm
