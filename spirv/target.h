// The capabilities of the device that will run a shader.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft::spirv {

/// The device's capabilities beyond the required ones (Vulkan 1.2 with buffer device addresses, scalar block layout and
/// timeline semaphores).
struct Target {
  bool int8 = false, int16 = false, int64 = false;  ///< arithmetic
  bool float16 = false, float64 = false;            ///< arithmetic
  bool storage8 = false, storage16 = false;         ///< storage buffer access
  bool push8 = false, push16 = false;               ///< push constant access
  // Native additions; without them, compare-exchange loops.
  bool float32_atomic_add = false, float64_atomic_add = false;                ///< on buffers
  bool float32_shared_atomic_add = false, float64_shared_atomic_add = false;  ///< on workgroup memory
  bool int64_atomics = false, int64_shared_atomics = false;                   ///< on buffers and on workgroup memory
  // Subgroup operations
  bool subgroup_vote = false, subgroup_arithmetic = false, subgroup_ballot = false, subgroup_shuffle = false;
  bool subgroup_narrow_wide = false;   ///< also on types of 8, 16 and 64 bits
  bool subgroup_uniform_flow = false;  ///< SPV_KHR_subgroup_uniform_control_flow: diverged threads reconverge
  bool subgroups_meet_again = false;   ///< they do, by that extension or by the device's way of working
  bool lanes_in_step = false;          ///< no lane runs ahead, so barriers of subgroups only order memory
  std::uint32_t subgroup_size = 0;     ///< every subgroup has exactly this many threads; 0: not guaranteed
  bool round_even16 = false, round_even32 = false, round_even64 = false;  ///< RoundingModeRTE is supported
  bool keep_nan16 = false, keep_nan32 = false, keep_nan64 = false;        ///< SignedZeroInfNanPreserve is supported
  bool memory_model = false;                                              ///< Vulkan's own, with device scope
  bool ray_query = false;                                                 ///< VK_KHR_ray_query
  bool pointer_steps =
      true;  ///< OpPtrAccessChain; otherwise addresses are computed as integers: GLSL has no pointer steps
  bool pairs_in_words = false;    ///< vectors of 32-bit components are faster to access as 64-bit words
  std::uint32_t max_block = 128;  ///< threads per workgroup
  bool of_device = false;  ///< these are one device's capabilities: messages speak of the device, else of the target

  /// Every capability: for dumps and for validation without a device.
  static Target everything();
  /// Capabilities for shaders that run on any device. A kernel may use what it needs itself (float64, narrow types,
  /// subgroups, ..), but nothing that only makes it faster or more exact than required (native float additions,
  /// guarantees about rounding). Workgroups of up to 1024 threads, subgroups of 32.
  static Target portable();
  /// The required capabilities alone: int64, workgroups of up to 128 threads.
  static Target floor();
  /// The target "portable", "floor" or "everything". Errors: Error(invalid_argument) for another name, which lists
  /// these.
  static Target named(std::string_view name);
  bool operator==(const Target&) const = default;
};

}  // namespace weft::spirv
