// Random kernels: a number becomes a kernel of typed arithmetic, nested control flow and arrays.
#pragma once
#include <weft/weft.h>

#include <cstdint>
#include <string>

namespace weft::test {

/// The arrays of a random kernel. Each thread owns `kOwn` neighbours of every array except `counters`, to which all
/// threads add, and leaves its variables in `integers` and `reals`.
struct RandomArrays {
  static constexpr int kOwn = 4, kVariables = 24, kCounters = 8;

  RandomArrays(const Device& device, int threads, std::uint64_t seed);

  Array<bool> flags;
  Array<std::uint8_t> bytes;
  Array<std::int16_t> shorts;
  Array<int> ints;
  Array<unsigned> words;
  Array<std::int64_t> longs;
  Array<half> halves;
  Array<float> floats;
  Array<double> doubles;
  Array<vec3> vectors;
  Array<int> counters;
  Array<std::int64_t> integers;  ///< the variables of the kernel at its end
  Array<double> reals;

  /// The first difference from the same arrays after another run, as text; empty if there is none. NaNs are equal, and
  /// so are zeros of both signs, which docs/semantics.md leaves open.
  std::string difference(const RandomArrays& other) const;
};

/// The kernel of this number: always the same one. Its results are those that docs/semantics.md fixes to the bit.
using RandomKernel = Kernel<Arr<bool>, Arr<std::uint8_t>, Arr<std::int16_t>, Arr<int>, Arr<unsigned>, Arr<std::int64_t>,
                            Arr<half>, Arr<float>, Arr<double>, Arr<vec3>, Arr<int>, Arr<std::int64_t>, Arr<double>>;
RandomKernel random_kernel(std::uint64_t seed);

void launch_random(const RandomKernel& kernel, int threads, RandomArrays& arrays);
/// Runs a form of the kernel through the backend itself.
void run_random(const Device& device, const ir::Module& module, int threads, RandomArrays& arrays);

}  // namespace weft::test
