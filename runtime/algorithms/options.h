// How an algorithm on arrays is run: stream, scratch memory, grain.
#pragma once
#include <cstdint>
#include <optional>

#include "../array.h"

namespace weft {

/// How an algorithm divides its work. Results are the same, except for the rounding of scans of reals.
enum class Grain {
  automatic,  ///< coarse on devices that run on the CPU, fine on others
  coarse,     ///< some thousand threads, each with a long run of elements
  fine        ///< as many threads as possible, with neighbours' accesses side by side, for GPUs
};

/// The options of every algorithm: `exclusive_scan(x, x, {.scratch = memory})`.
struct AlgorithmOptions {
  /// A stream of the arrays' device; its stream() if none is given.
  std::optional<Stream> stream = {};
  /// Memory to work in, on the same device: as many bytes as the algorithm's ..._scratch_bytes() returns. Its contents
  /// are lost. With it an algorithm allocates nothing; with a null array it allocates for the call.
  Array<std::uint8_t> scratch = {};
  Grain grain = Grain::automatic;
};

}  // namespace weft
