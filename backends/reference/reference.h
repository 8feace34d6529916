// The reference device: kernels interpreted on the host, every memory access checked.
#pragma once
#include <memory>

#include "../backend.h"

namespace weft::backend {

/// A device that interprets kernels on the calling thread, one thread of the grid after the other, in order.
///
/// It defines what every operation gives (docs/semantics.md) and is what other devices are tested against. Its memory
/// is host memory: an address is a host pointer. A stream runs each operation when it is recorded, so that every
/// ticket is done at once and an error is thrown by the call that causes it.
/// Errors of a launch: Error(invalid_argument) naming kernel, source line, thread and address when a memory access
/// leaves the device's allocations (or the one that its array argument points into) or is not aligned as the kernel
/// promises; what earlier threads wrote stays written.
/// A subgroup has 32 threads, or as many as the environment variable WEFT_SUBGROUP_SIZE says (a power of two from 4 to
/// 128). Threads of a workgroup that wait for each other run one after the other between the places where they wait;
/// Error(invalid_argument) when some wait at a place that others do not reach.
/// Cost: a hundred million simple operations a second and more; a launch allocates nothing once its stream is warm.
std::unique_ptr<Device> open_reference();

}  // namespace weft::backend
