// Real functions on vectors, as text of LLVM's IR.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"

namespace weft::llvm {

/// Whether an operation is a call of a function that real_function() defines (sin, exp, pow, ..), rather than
/// instructions that the emitter writes in place. float16 is computed in float32, which is then the type of the
/// function.
bool is_real_function(ir::Op op, ir::Type type);

/// The name of the function on float32 or float64: "@weft.sin.f32.v16"; "@weft.sin.f32" for one lane.
std::string real_function_name(ir::Op op, ir::Type type, std::uint32_t lanes);

/// What a module that calls the function holds: its definition, and declarations of the intrinsics that it calls. All
/// of them are instructions on x86-64-v2 and AArch64. A module holds no piece twice: they have names.
struct RealFunction {
  std::string name;  ///< of a function or an intrinsic
  std::string text;  ///< "define internal .." or "declare .."
};
/// The pieces; the function first. They are those of the library in frontend/real, and live as long as the process.
/// Accuracy: frontend/real/real32.h, docs/semantics.md. Thread-safe.
const std::vector<RealFunction>& real_function(ir::Op op, ir::Type type, std::uint32_t lanes);

/// A module with one function, which other modules call.
struct FunctionModule {
  std::string name;  ///< of the symbol: "weft.sin.f32.v8"
  std::string text;
};
FunctionModule real_function_module(ir::Op op, ir::Type type, std::uint32_t lanes);
/// How a module declares the function that it calls in another one.
std::string real_function_declaration(ir::Op op, ir::Type type, std::uint32_t lanes);

}  // namespace weft::llvm
