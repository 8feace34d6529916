// Segmented sort: sorts many parts of an array, each by itself.
#pragma once
#include "sort.h"

namespace weft {

namespace detail {
void segmented_sort(const ArrayBase& keys, const ArrayBase* values, const ArrayBase& offsets, ir::Type type,
                    const AlgorithmOptions& options);
std::uint64_t segmented_sort_scratch_bytes(std::int64_t n, std::int64_t offsets, std::uint32_t key_bytes,
                                           std::uint32_t value_bytes);
}  // namespace detail

/// The bytes of scratch memory that sorting n keys, or n keys with values, in parts between that many offsets needs.
template <detail::SortKey K>
std::uint64_t segmented_sort_scratch_bytes(std::int64_t n, std::int64_t offsets) {
  return detail::segmented_sort_scratch_bytes(n, offsets, sizeof(K), 0);
}
template <detail::SortKey K, detail::SortValue V>
std::uint64_t segmented_sort_scratch_bytes(std::int64_t n, std::int64_t offsets) {
  return detail::segmented_sort_scratch_bytes(n, offsets, sizeof(K), detail::Layout<V>::size);
}

/// Sorts keys [offsets[s], offsets[s + 1]) in place, for each s, in the order of radix_sort(). Keys before the first
/// offset, and from the last one on, stay as they are; with fewer than two offsets all keys do.
/// \param offsets  (segments + 1) ascending; segments may be empty. Other offsets leave every key in exactly one place,
///                 in an unknown order; offsets below 0 or beyond the keys count as the end. Debug mode reports them if
///                 there is anything to sort.
/// Gradient, errors: as radix_sort(); also Error(invalid_argument) for offsets that share memory with the other arrays.
/// Cost: that of sorting all keys with values of 4 bytes, whatever the number and the lengths of the segments, and one
/// more pass per 8 bits of that number.
template <detail::SortKey K>
void segmented_sort(const Array<K>& keys, const Array<int>& offsets, const AlgorithmOptions& options = {},
                    Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::segmented_sort(keys, nullptr, offsets, scalar_type<K>(), options); });
}
/// Sorts values along with the keys.
template <detail::SortKey K, detail::SortValue V>
void segmented_sort_pairs(const Array<K>& keys, const Array<V>& values, const Array<int>& offsets,
                          const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::segmented_sort(keys, &values, offsets, scalar_type<K>(), options); });
}

}  // namespace weft
