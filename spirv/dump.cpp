// A kernel as text: its IR, its SPIR-V, its GLSL, its LLVM.
#include <fmt/format.h>

#include <spirv_cross/spirv_glsl.hpp>

#include "../frontend/kernels/kernel.h"
#include "../frontend/support/error.h"
#include "../llvm/emit.h"
#include "emit.h"

namespace weft {

namespace spirv {

std::string to_glsl(const ir::Module& module) {
  Target target = Target::everything();
  target.pointer_steps = false;  // GLSL has no arithmetic on references: addresses are computed as integers
  try {
    spirv_cross::CompilerGLSL compiler(emit(module, target));
    spirv_cross::CompilerGLSL::Options options;
    options.version = 460;
    options.vulkan_semantics = true;
    compiler.set_common_options(options);
    return compiler.compile();
  } catch (const spirv_cross::CompilerError& e) {
    throw Error(ErrorKind::unsupported, fmt::format("SPIRV-Cross has no GLSL for it: {}", e.what()), module.name,
                module.loc);
  }
}

}  // namespace spirv

// The frontend, which knows no emitter, declares this; spirv is the first folder that can define it.
std::string detail::KernelCore::dump(std::string_view form) const {
  ir::Variant variant;
  variant.debug = debug();
  const ir::Module module = trace(variant, ~0u);
  if (form == "ir") return ir::print(module, true);
  if (form == "spirv") return spirv::disassemble(spirv::emit(module, spirv::Target::everything()));
  if (form == "glsl") return spirv::to_glsl(module);
  if (form == "llvm") return llvm::emit(module, {}).text;
  throw Error(ErrorKind::invalid_argument,
              fmt::format("dump(\"{}\"): the forms are \"ir\", \"spirv\", \"glsl\" and \"llvm\"", form), name_, loc_);
}

}  // namespace weft
