// Byte counts, strides and indices of arrays. Internal to the runtime.
#pragma once
#include "array.h"

namespace weft::detail {

/// The number of bytes of a new array.
/// Errors: Error(invalid_argument) for another number of dimensions and for negative sizes; Error(out_of_memory).
std::uint64_t checked_bytes(const Extent& extent, int ndim, std::uint32_t element_bytes);

/// The shape of an array as an extent.
inline Extent extent_of(const std::array<std::int64_t, 4>& shape, int ndim) {
  Extent extent(0);
  extent.n = shape;
  extent.rank = ndim;
  return extent;
}

/// The number of an element, where negative numbers count from the end as in Python; unlike there, nothing is clipped.
inline std::int64_t from_end(std::int64_t i, std::int64_t n) { return i < 0 ? i + n : i; }

/// The strides of row-major elements that lie side by side, in bytes.
std::array<std::int64_t, 4> tight_strides(const std::array<std::int64_t, 4>& shape, int ndim, std::int64_t bytes);

}  // namespace weft::detail
