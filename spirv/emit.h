// From the IR of a kernel to a SPIR-V compute shader.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../frontend/ir/module.h"

namespace weft::spirv {

/// Argument blocks up to this size are push constants (the least that Vulkan promises); a larger block lies in memory
/// and the push constants hold its 64-bit address.
inline constexpr std::uint32_t kPushConstantBytes = 128;

/// What the device that will run the shader can do beyond the floor (Vulkan 1.2 with buffer device addresses, scalar
/// block layout and timeline semaphores).
struct Target {
  bool int8 = false, int16 = false, int64 = false;  ///< arithmetic
  bool float16 = false, float64 = false;            ///< arithmetic
  bool storage8 = false, storage16 = false;         ///< storage buffer access
  bool push8 = false, push16 = false;               ///< push constant access
  // Native additions; else compare-exchange loops.
  bool float32_atomic_add = false, float64_atomic_add = false;                ///< on buffers
  bool float32_shared_atomic_add = false, float64_shared_atomic_add = false;  ///< on workgroup memory
  bool int64_atomics = false, int64_shared_atomics = false;                   ///< on buffers and on workgroup memory
  // Operations of subgroups.
  bool subgroup_vote = false, subgroup_arithmetic = false, subgroup_ballot = false, subgroup_shuffle = false;
  bool subgroup_narrow_wide = false;   ///< on types of 8, 16 and 64 bits as well
  bool subgroup_uniform_flow = false;  ///< SPV_KHR_subgroup_uniform_control_flow: threads that part meet again
  bool subgroups_meet_again = false;   ///< they do, by that extension or by how the device works
  std::uint32_t subgroup_size = 0;     ///< every subgroup has exactly this many threads; 0: that cannot be had
  bool round_even16 = false, round_even32 = false, round_even64 = false;  ///< RoundingModeRTE may be asked for
  bool keep_nan16 = false, keep_nan32 = false, keep_nan64 = false;        ///< SignedZeroInfNanPreserve, likewise
  bool ray_query = false;                                                 ///< VK_KHR_ray_query
  bool pointer_steps = true;      ///< OpPtrAccessChain; else addresses are computed as integers: GLSL has none
  std::uint32_t max_block = 128;  ///< threads per workgroup

  /// Every capability: for dumps and for validation without a device.
  static Target everything();
  /// For shaders that are to run on whatever device there is: what a kernel itself needs may be used (float64, narrow
  /// types, subgroups, ..), what only makes it faster or more exact than it must be is not (native float additions,
  /// promises about rounding). Workgroups of up to 1024 threads, subgroups of 32.
  static Target portable();
  /// The floor and nothing else: int64, workgroups of up to 128 threads.
  static Target floor();
  /// "portable", "floor" or "everything". Errors: Error(invalid_argument) for another name, which lists these.
  static Target named(std::string_view name);
  bool operator==(const Target&) const = default;
};

/// Threads per workgroup of the shader: what the kernel asks for, or as many as the device runs.
inline std::uint32_t workgroup_size(const ir::Module& module, const Target& target) {
  return (std::max)(1u, (std::min)(module.block, target.max_block));  // others have macros of these names
}

/// A complete SPIR-V 1.5 module with the entry point "main".
///
/// Threads are numbered workgroup by workgroup: (WorkgroupId.y * NumWorkgroups.x + WorkgroupId.x) * block + local, with
/// block = workgroup_size() and local = LocalInvocationId.x, or where the kernel uses subgroups, SubgroupId *
/// subgroup_size + SubgroupLocalInvocationId; such a shader must be run with full subgroups. Threads past the count in
/// the argument block do nothing; where threads work together, that is for whole workgroups only.
/// The argument block is read in whole 32-bit words: it is args_bytes long, rounded up to a multiple of 4. One that
/// lies in memory is aligned to 8 bytes.
/// Errors: Error(unsupported) naming the first instruction's line that needs a capability which `target` lacks.
std::vector<std::uint32_t> emit(const ir::Module& module, const Target& target);

/// The kernel in GLSL, by SPIRV-Cross. Errors: Error(unsupported) for what GLSL lacks.
std::string to_glsl(const ir::Module& module);

/// Text form, by SPIRV-Tools.
std::string disassemble(const std::vector<std::uint32_t>& words);

/// The validator's first complaint for Vulkan 1.2 with scalar block layout, or empty.
std::string validate(const std::vector<std::uint32_t>& words);

/// The optimiser's performance passes. Off by default in weft: it costs more time than drivers gain from it.
std::vector<std::uint32_t> optimise(const std::vector<std::uint32_t>& words);

}  // namespace weft::spirv
