// The options of all algorithms on arrays: stream, scratch memory, grain.
#pragma once
#include <cstdint>
#include <optional>

#include "../array.h"

namespace weft {

/// The way in which an algorithm divides its work. It does not change results, except the rounding of scans of reals.
enum class Grain {
  automatic,  ///< a way of its own on the device "cpu", coarse on software Vulkan, fine on GPUs
  coarse,     ///< about a thousand threads, each with a long run of elements
  fine        ///< as many threads as possible, neighbours of which access neighbouring elements, for GPUs
};

/// The options of every algorithm: `exclusive_scan(x, x, {.scratch = memory})`.
struct AlgorithmOptions {
  /// A stream of the arrays' device; by default that device's stream().
  std::optional<Stream> stream = {};
  /// The memory to work in, on the same device: as many bytes as the algorithm's ..._scratch_bytes() returns. Its
  /// contents are lost. With it an algorithm allocates nothing; with a null array it allocates for the call.
  Array<std::uint8_t> scratch = {};
  Grain grain = Grain::automatic;
};

}  // namespace weft
