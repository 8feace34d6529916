// Run-length encoding: finds the runs of equal neighbours in an array.
#pragma once
#include "options.h"

namespace weft {

namespace detail {
/// A type of elements that runs can have: numbers of 32 and 64 bits.
template <class T>
concept RunScalar = NumericScalar<T> && sizeof(T) >= 4;

void run_length_encode(const ArrayBase& in, const ArrayBase& values, const ArrayBase& lengths, const ArrayBase& count,
                       ir::Type type, const AlgorithmOptions& options);
std::uint64_t run_length_scratch_bytes(std::int64_t n);
}  // namespace detail

/// The bytes of scratch memory that encoding n elements needs.
inline std::uint64_t run_length_scratch_bytes(std::int64_t n) { return detail::run_length_scratch_bytes(n); }

/// Finds the runs of equal neighbours: values[r] is the element that run r repeats (the first one of it, as -0 equals
/// 0), and lengths[r] its length. A NaN equals nothing and is a run of its own. `values` and `lengths` stay as they are
/// after the last run.
/// \param in       (n)
/// \param values   (n or more)
/// \param lengths  (n or more)
/// \param count    (1) receives the number of runs
/// Gradient: none; refused while a tape records elements that carry one.
/// Errors: Error(invalid_argument) for null arrays, outputs that are too short, arrays that share memory or are on two
/// devices, and too little scratch memory; Error(unsupported) for strided views and more than 2^31 - 2^16 elements.
/// Cost: a scan of n integers and two passes over them; no wait.
template <detail::RunScalar T>
void run_length_encode(const Array<T>& in, const Array<T>& values, const Array<int>& lengths, const Array<int>& count,
                       const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::run_length_encode(in, values, lengths, count, scalar_type<T>(), options); });
}

}  // namespace weft
