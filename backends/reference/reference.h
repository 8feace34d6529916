// The reference device: kernels interpreted on the host, every memory access checked.
#pragma once
#include <memory>
#include <optional>
#include <string_view>

#include "../backend.h"

namespace weft::backend {

/// A device that interprets kernels on the calling thread, one thread of the grid after the other, in order.
///
/// It defines the result of every operation (docs/semantics.md), and other devices are tested against it. Its memory is
/// host memory: an address is a host pointer. A stream runs each operation when it is recorded, so every ticket is done
/// at once and the call that causes an error throws it. Threads of a workgroup that wait for each other run in turns
/// between the places where they wait.
/// A subgroup has 32 threads, or as many as the environment variable WEFT_SUBGROUP_SIZE says (a power of two from 4 to
/// 128).
/// \param fused  the types whose `fma` is rounded once; that of the others rounds the product too, as on devices
/// without
///               fused operations. The device's name tells: "reference", "reference:split", "reference:split32",
///               "reference:split64"
/// Errors: a launch throws Error(invalid_argument) naming kernel, line, thread and address if a memory access leaves
/// the device's allocations (or that of its array argument) or is misaligned, and if threads wait at a place that
/// others of their workgroup do not reach. What earlier threads wrote stays written.
/// Cost: runs a hundred million simple operations per second and more; a launch allocates nothing once its stream is
/// warm.
std::unique_ptr<Device> open_reference(FusedTypes fused = {});

/// What the device of this name fuses; nothing if no reference device has the name.
std::optional<FusedTypes> fused_by_reference(std::string_view name);

}  // namespace weft::backend
