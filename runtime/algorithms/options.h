// How an algorithm on arrays is run: stream, scratch memory, grain.
#pragma once
#include <cstdint>
#include <optional>

#include "../array.h"

namespace weft {

/// How an algorithm divides its work. Results are the same, but for the rounding of scans of reals.
enum class Grain {
  automatic,  ///< coarse on devices that run on the CPU, fine on others
  coarse,     ///< some thousand threads, each with a long run of elements
  fine        ///< as many threads as there are, and accesses of neighbours side by side, as GPUs like it
};

/// What every algorithm takes beside its arrays: `exclusive_scan(x, x, {.scratch = memory})`.
struct AlgorithmOptions {
  /// Of the arrays' device; its stream() where none is given.
  std::optional<Stream> stream = {};
  /// Memory to work in: as many bytes as the function ..._scratch_bytes() of the algorithm says, on the same device.
  /// What it held is lost. With it an algorithm allocates nothing; a null array lets it allocate for the call.
  Array<std::uint8_t> scratch = {};
  Grain grain = Grain::automatic;
};

}  // namespace weft
