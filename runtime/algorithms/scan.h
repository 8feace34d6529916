// Prefix sums of arrays.
#pragma once
#include "options.h"

namespace weft {

namespace detail {
/// A type of elements that can be scanned: integers of 32 and 64 bits, which wrap, float32 and float64.
template <class T>
concept ScanScalar = NumericScalar<T> && sizeof(T) >= 4;

void scan(const ArrayBase& in, const ArrayBase& out, ir::Type type, bool inclusive, const AlgorithmOptions& options);
std::uint64_t scan_scratch_bytes(std::int64_t n, std::uint32_t element_bytes);
}  // namespace detail

/// The bytes of scratch memory that a scan of n elements needs.
template <detail::ScanScalar T>
std::uint64_t scan_scratch_bytes(std::int64_t n) {
  return detail::scan_scratch_bytes(n, sizeof(T));
}

/// Sets out[i] = in[0] + ... + in[i - 1], and out[0] = 0. `in` and `out` may be the same elements. Sums of reals are
/// not rounded one after the other: the order of additions is the same in each run on a device, but coarse and fine
/// grain may differ in the last bits.
/// Gradient: flows from `out` to `in`.
/// Errors: Error(invalid_argument) for null arrays, different lengths, arrays that overlap in part, are on two devices,
/// or share memory with the scratch memory, and too little scratch memory; Error(unsupported) for strided views, more
/// than 2^31 - 2^16 elements, or float64 and 64-bit integers if the device lacks them.
/// Cost: reads `in` twice and writes `out` once; a few launches, no wait.
/// Source: reduce-then-scan; Merrill and Grimshaw 2010 compare it with other methods.
template <detail::ScanScalar T>
void exclusive_scan(const Array<T>& in, const Array<T>& out, const AlgorithmOptions& options = {},
                    Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::scan(in, out, scalar_type<T>(), false, options); });
}
/// Sets out[i] = in[0] + ... + in[i]. The rest is as for exclusive_scan().
template <detail::ScanScalar T>
void inclusive_scan(const Array<T>& in, const Array<T>& out, const AlgorithmOptions& options = {},
                    Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::scan(in, out, scalar_type<T>(), true, options); });
}

}  // namespace weft
