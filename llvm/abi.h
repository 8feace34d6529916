// The interface between compiled kernels and the device that calls them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::llvm {

/// Memory that a host thread lends to the kernels it runs. One host thread at a time uses it.
struct Worker {
  std::byte* arena = nullptr;  ///< Code::arena_bytes bytes at a multiple of 64: private arrays, shared memory
};

/// The units in which a launch is split among host threads.
enum class Split : std::uint8_t {
  threads,  ///< threads, by their linear number
  rows,     ///< rows of threads that differ in their last coordinate alone
  groups,   ///< workgroups
};

/// A compiled kernel: runs the units `begin` to `end` - 1 of a launch, whose argument block is `args`. Threads with a
/// number of n or more, the first word of the block, do not run. Where threads are split, `begin` is a multiple of 64,
/// so that vectors begin at multiples of their size. Any number of host threads may run one launch at once.
using Entry = void (*)(const std::byte* args, const Worker* worker, std::int64_t begin, std::int64_t end);

}  // namespace weft::llvm
