// Runs plans.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory.h"
#include "plan.h"

namespace weft::backend {

/// What a launch needs beside its plan; kept between launches so that they allocate nothing.
struct Scratch {
  std::vector<std::uint64_t> values;  ///< by slot
  std::vector<Extent> extents;        ///< by access: the allocation that it touched last
};

/// Runs threads 0 to n - 1 in order; n is the first word of the argument block.
/// Errors: Error(invalid_argument) when the block is too short or a memory access is wrong: see open_reference().
void interpret(const Plan& plan, std::span<const std::byte> args, const HostMemory& memory, Scratch& scratch);

}  // namespace weft::backend
