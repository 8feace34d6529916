// From the IR of a kernel to a SPIR-V compute shader.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"
#include "target.h"

namespace weft::spirv {

/// Argument blocks up to this size are push constants (the least that Vulkan promises); a larger block lies in memory
/// and the push constants hold its 64-bit address.
inline constexpr std::uint32_t kPushConstantBytes = 128;

/// Threads per workgroup of the shader: what the kernel asks for, or as many as the device runs.
inline std::uint32_t workgroup_size(const ir::Module& module, const Target& target) {
  return (std::max)(1u, (std::min)(module.block, target.max_block));  // others have macros of these names
}

/// Where a shader finds its argument block.
enum class ArgumentsIn : std::uint8_t {
  push_constants,  ///< where they hold it, else in memory
  memory,          ///< however small it is
};

/// A complete SPIR-V 1.5 module with the entry point "main".
///
/// Threads are numbered workgroup by workgroup: (WorkgroupId.y * NumWorkgroups.x + WorkgroupId.x) * block + local, with
/// block = workgroup_size() and local = LocalInvocationId.x, or where the kernel uses subgroups, SubgroupId *
/// subgroup_size + SubgroupLocalInvocationId; such a shader must be run with full subgroups. Threads past the count in
/// the argument block do nothing; where threads work together, that is for whole workgroups only.
/// The argument block is read in whole 32-bit words: it is args_bytes long, rounded up to a multiple of 4. One that
/// lies in memory is aligned to 8 bytes.
/// Errors: Error(unsupported) naming the first instruction's line that needs a capability which `target` lacks.
std::vector<std::uint32_t> emit(const ir::Module& module, const Target& target,
                                ArgumentsIn arguments = ArgumentsIn::push_constants);

/// May launches of the kernel be steps of a chain? Threads that work together, or report, may not.
bool can_chain(const ir::Module& module);

/// A shader for one workgroup that makes launches in turn, each when all threads of the one before it are through: for
/// launches of no more threads than a workgroup has, where a dispatch and a barrier for each cost more than the work.
///
/// Push constants: u64, the address of the steps; u32, the number of rounds. A round has a step for each of `places`,
/// in 16 bytes: u64, the address of the launch's argument block (aligned to 8); u32, which of its place's kernels
/// (indices into `kernels`) is launched. All the launches' memory is accessed as that which other threads write.
/// Errors: as emit().
std::vector<std::uint32_t> emit_chain(std::span<const ir::Module* const> kernels,
                                      std::span<const std::vector<std::uint32_t>> places, std::uint32_t threads,
                                      const Target& target);

/// The kernel in GLSL, by SPIRV-Cross. Errors: Error(unsupported) for what GLSL lacks.
std::string to_glsl(const ir::Module& module);

/// Text form, by SPIRV-Tools.
std::string disassemble(const std::vector<std::uint32_t>& words);

/// The validator's first complaint for Vulkan 1.2 with scalar block layout, or empty.
std::string validate(const std::vector<std::uint32_t>& words);

/// The optimiser's performance passes. Off by default in weft: it costs more time than drivers gain from it.
std::vector<std::uint32_t> optimise(const std::vector<std::uint32_t>& words);

}  // namespace weft::spirv
