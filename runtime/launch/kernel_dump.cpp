// A kernel as text: its IR, its SPIR-V, its GLSL, its LLVM.
#include <fmt/format.h>

#include "../../frontend/kernels/kernel.h"
#include "../../frontend/support/error.h"
#include "../../llvm/emit.h"
#include "../../spirv/emit.h"

namespace weft {

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
