// Stream compaction: moves the flagged elements together.
#pragma once
#include "options.h"

namespace weft {

namespace detail {
/// A type of flags, where false or 0 leaves the element out.
template <class T>
concept FlagScalar = std::is_same_v<T, bool> ||(IntegerScalar<T> && sizeof(T) == 4);

void compact(const ArrayBase& in, const ArrayBase& flags, bool flags_are_bool, const ArrayBase& out,
             const ArrayBase& count, const AlgorithmOptions& options);
void compact_indices(const ArrayBase& flags, bool flags_are_bool, const ArrayBase& out, const ArrayBase& count,
                     const AlgorithmOptions& options);
std::uint64_t compact_scratch_bytes(std::int64_t n);
}  // namespace detail

/// The bytes of scratch memory that compacting n elements, or their indices, needs.
inline std::uint64_t compact_scratch_bytes(std::int64_t n) { return detail::compact_scratch_bytes(n); }

/// Copies the elements of `in` whose flag is set, in their order, to the beginning of `out`; the rest of `out` stays as
/// it is.
/// \param in     (n) elements of a size that is a multiple of 4 bytes
/// \param flags  (n)
/// \param out    (n or more); must not overlap `in`
/// \param count  (1) receives the number of copied elements
/// Gradient: none; refused while a tape records elements that carry one. A kernel that reads through the indices of
/// compact_indices() passes gradients.
/// Errors: Error(invalid_argument) for null arrays, different lengths, an `out` that is too short, arrays that share
/// memory or are on two devices, and too little scratch memory; Error(unsupported) for strided views and more than 2^31
/// - 2^16 elements.
/// Cost: a scan of n integers and a copy; no wait.
template <class T, detail::FlagScalar F>
void compact(const Array<T>& in, const Array<F>& flags, const Array<T>& out, const Array<int>& count,
             const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  static_assert(detail::Layout<T>::size % 4 == 0 && !detail::Layout<T>::holds_arrays,
                "weft::compact: elements have a multiple of 4 bytes and hold no arrays; compact_indices() gives their "
                "indices");
  detail::called_from(loc, [&] { detail::compact(in, flags, std::is_same_v<F, bool>, out, count, options); });
}
/// Writes the indices of the set flags, in ascending order, to the beginning of `out`. The rest is as for compact().
template <detail::FlagScalar F>
void compact_indices(const Array<F>& flags, const Array<int>& out, const Array<int>& count,
                     const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::compact_indices(flags, std::is_same_v<F, bool>, out, count, options); });
}

}  // namespace weft
