// A module as GLSL, by SPIRV-Cross.
#include <fmt/format.h>

#include <spirv_cross/spirv_glsl.hpp>

#include "../frontend/support/error.h"
#include "emit.h"

namespace weft::spirv {

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

}  // namespace weft::spirv
