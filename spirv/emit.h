// Translates the IR of a kernel into a SPIR-V compute shader.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "../frontend/ir/module.h"
#include "target.h"

namespace weft::spirv {

/// Argument blocks up to this size, the least that Vulkan guarantees, are push constants; for a larger block the push
/// constants hold its 64-bit address.
inline constexpr std::uint32_t kPushConstantBytes = 128;

/// Threads per workgroup of the shader: as many as the kernel asks for, limited by the device.
inline std::uint32_t workgroup_size(const ir::Module& module, const Target& target) {
  return (std::max)(
      1u, (std::min)(module.block, target.max_block));  // parentheses, because other headers define macros min and max
}

/// The place of a shader's argument block.
enum class ArgumentsIn : std::uint8_t {
  push_constants,  ///< in memory only if it exceeds them
  memory,          ///< whatever its size
};

/// A complete SPIR-V 1.5 module with the entry point "main".
///
/// Threads are numbered workgroup by workgroup: (WorkgroupId.y * NumWorkgroups.x + WorkgroupId.x) * block + local, with
/// block = workgroup_size() and local = LocalInvocationId.x, or if the kernel uses subgroups, SubgroupId *
/// subgroup_size + SubgroupLocalInvocationId; such a shader must be run with full subgroups. Threads past the count in
/// the argument block do nothing; if threads work together, this holds for whole workgroups only. The argument block is
/// read in whole 32-bit words, so its size is args_bytes rounded up to a multiple of 4. In memory it is aligned to 8
/// bytes.
/// Errors: Error(unsupported) naming the line of the first instruction that needs a capability which `target` lacks.
std::vector<std::uint32_t> emit(const ir::Module& module, const Target& target,
                                ArgumentsIn arguments = ArgumentsIn::push_constants);

/// Whether launches of the kernel may be steps of a chain. Kernels whose threads work together, or that report, may
/// not.
bool can_chain(const ir::Module& module);

/// A shader of one workgroup that runs launches in turn, each when all threads of the one before are through. It is for
/// launches of at most a workgroup's threads, for which a dispatch and a barrier each cost more than the work.
///
/// Push constants: u64, the address of the steps; u32, the number of rounds. A round has a step for each of `places`,
/// in 16 bytes: u64, the address of the launch's argument block (aligned to 8); u32, the kernel to launch among those
/// of its place (indices into `kernels`). All memory of the launches is accessed as coherent.
/// Errors: as emit().
std::vector<std::uint32_t> emit_chain(std::span<const ir::Module* const> kernels,
                                      std::span<const std::vector<std::uint32_t>> places, std::uint32_t threads,
                                      const Target& target);

/// The kernel in GLSL, by SPIRV-Cross. Errors: Error(unsupported) for features that GLSL lacks.
std::string to_glsl(const ir::Module& module);

/// Text form, by SPIRV-Tools.
std::string disassemble(const std::vector<std::uint32_t>& words);

/// The validator's first complaint for Vulkan 1.2 with scalar block layout, or an empty text.
std::string validate(const std::vector<std::uint32_t>& words);

/// Runs the optimiser's performance passes. weft leaves them off by default: they cost more time than drivers gain.
std::vector<std::uint32_t> optimise(const std::vector<std::uint32_t>& words);

}  // namespace weft::spirv
