// What the device that will run a shader can do.
#pragma once
#include <cstdint>
#include <string_view>

namespace weft::spirv {

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
  bool lanes_in_step = false;          ///< no lane runs ahead, so that barriers of subgroups order memory alone
  std::uint32_t subgroup_size = 0;     ///< every subgroup has exactly this many threads; 0: that cannot be had
  bool round_even16 = false, round_even32 = false, round_even64 = false;  ///< RoundingModeRTE may be asked for
  bool keep_nan16 = false, keep_nan32 = false, keep_nan64 = false;        ///< SignedZeroInfNanPreserve, likewise
  bool memory_model = false;                                              ///< Vulkan's own, with the scope of devices
  bool ray_query = false;                                                 ///< VK_KHR_ray_query
  bool pointer_steps = true;      ///< OpPtrAccessChain; else addresses are computed as integers: GLSL has none
  bool pairs_in_words = false;    ///< vectors of 32-bit components are faster to access as 64-bit words
  std::uint32_t max_block = 128;  ///< threads per workgroup
  bool of_device = false;         ///< what one device has: messages speak of the device, else of the target

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

}  // namespace weft::spirv
