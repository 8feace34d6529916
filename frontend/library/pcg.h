// The hash that random numbers and noise are made from.
#pragma once
#include <cstdint>

namespace weft::detail {

/// A bijection of 32-bit integers whose output looks random: the PCG-RXS-M-XS permutation after one step of its linear
/// congruential generator. U is std::uint32_t or its traced face.
/// Source: O'Neill 2014; as a hash: Jarzynski, Olano 2020.
template <class U>
U pcg(const U& x) {
  const U state = x * 747796405u + 2891336453u;
  const U word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}

}  // namespace weft::detail
