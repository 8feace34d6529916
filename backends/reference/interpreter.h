// Runs a kernel's plan on the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../host/memory.h"
#include "plan.h"

namespace weft::backend {

/// Buffers of a launch, kept between launches so that these allocate nothing.
struct Scratch {
  std::vector<std::uint64_t> values;  ///< by slot
  std::vector<Extent> extents;        ///< by access: the allocation that it touched last
  // If the kernel's threads work together, `values` holds the slots of every thread of a workgroup.
  std::vector<std::uint64_t> shared;  ///< the workgroup's memory
  std::vector<std::uint8_t> written;  ///< by byte of `shared`: 1 if this workgroup has written it
  std::vector<const Step*> places;    ///< by thread: where it stopped
};

/// Runs threads 0 to n - 1 in order; n is the first word of the argument block. Threads of a workgroup that work
/// together run in turns, each up to the next place where it waits for the others. If `grid` is a part of a launch,
/// only the threads of its workgroups run.
/// Errors: Error(invalid_argument) when the block is too short or a memory access is wrong: see open_reference().
void interpret(const Plan& plan, const Grid& grid, std::span<const std::byte> args, const HostMemory& memory,
               Scratch& scratch);

}  // namespace weft::backend
