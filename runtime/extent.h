// Byte counts and strides of new arrays. Internal to the runtime.
#pragma once
#include "array.h"

namespace weft::detail {

/// The number of bytes of a new array.
/// Errors: Error(invalid_argument) for another number of dimensions and for negative sizes; Error(out_of_memory).
std::uint64_t checked_bytes(const Extent& extent, int ndim, std::uint32_t element_bytes);

/// The strides of row-major elements that lie side by side, in bytes.
std::array<std::int64_t, 4> tight_strides(const std::array<std::int64_t, 4>& shape, int ndim, std::int64_t bytes);

}  // namespace weft::detail
