// Stable radix sort of keys, and of keys with values.
#pragma once
#include "options.h"

namespace weft {

namespace detail {
/// A type of keys: integers of 32 and 64 bits, float32 and float64.
template <class T>
concept SortKey = NumericScalar<T> && sizeof(T) >= 4;
/// A type of values: anything of 4 or 8 bytes.
template <class T>
concept SortValue = (Layout<T>::size == 4 || Layout<T>::size == 8) && !Layout<T>::holds_arrays;

/// Keeps the compiler's messages short, which would explain a concept in an assertion at length.
template <class T>
inline constexpr bool is_sort_key = SortKey<T>;
template <class T>
inline constexpr bool is_sort_value = SortValue<T>;
}  // namespace detail

/// The options of a sort: AlgorithmOptions, and the bits of the keys by which it sorts.
struct SortOptions {
  std::optional<Stream> stream = {};  ///< see AlgorithmOptions
  Array<std::uint8_t> scratch = {};   ///< see AlgorithmOptions
  Grain grain = Grain::automatic;     ///< see AlgorithmOptions
  /// The bits [begin_bit, end_bit) of a key by which to sort, counted from the lowest; end_bit 0 stands for the key's
  /// width. Without bits the order stays. For signed integers the highest bit is inverted; for reals the bits are those
  /// of the order, see radix_sort().
  int begin_bit = 0, end_bit = 0;
};

namespace detail {
/// \param values  null for keys alone
void radix_sort(const ArrayBase& keys, const ArrayBase* values, ir::Type type, const SortOptions& options);
std::uint64_t radix_sort_scratch_bytes(std::int64_t n, std::uint32_t key_bytes, std::uint32_t value_bytes);
}  // namespace detail

/// The bytes of scratch memory that sorting n keys, or n keys with values, needs.
template <detail::SortKey K>
std::uint64_t radix_sort_scratch_bytes(std::int64_t n) {
  return detail::radix_sort_scratch_bytes(n, sizeof(K), 0);
}
template <detail::SortKey K, detail::SortValue V>
std::uint64_t radix_sort_scratch_bytes(std::int64_t n) {
  return detail::radix_sort_scratch_bytes(n, sizeof(K), detail::Layout<V>::size);
}

/// Sorts keys in place, in ascending order, as std::stable_sort does. For reals, -0 and 0 are equal and keep their
/// order; NaNs come last, in their order.
/// Gradient: none; refused while a tape records keys that carry one.
/// Errors: Error(invalid_argument) for a null array, bits outside a key, scratch memory that is too small or overlaps
/// the keys, arrays on two devices; Error(unsupported) for strided views, more than 2^31 - 2^16 elements, or a type
/// that the device lacks.
/// Cost: per 8 bits the keys are read twice (three times with fine grain) and written once, in ten to twenty launches,
/// or a single one with coarse grain and up to 2^14 keys; no wait. Scratch memory of nine eighths of the keys.
/// Source: Satish, Harris and Garland 2009; Merrill and Grimshaw 2010.
template <detail::SortKey K>
void radix_sort(const Array<K>& keys, const SortOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::radix_sort(keys, nullptr, scalar_type<K>(), options); });
}
/// Sorts values[i] along with keys[i]. To order larger values, sort the numbers 0, 1, ... as values and let kernels
/// read through them. The rest is as for radix_sort() of keys; values that carry gradients are refused while a tape
/// records.
/// Errors: also Error(invalid_argument) for different lengths, or keys and values that share memory.
template <detail::SortKey K, detail::SortValue V>
void radix_sort_pairs(const Array<K>& keys, const Array<V>& values, const SortOptions& options = {},
                      Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::radix_sort(keys, &values, scalar_type<K>(), options); });
}

// These overloads refuse arrays of other types, with a message.
template <class K>
requires(!detail::SortKey<K>) void radix_sort(const Array<K>&, const SortOptions& = {}, Loc = {}) {
  static_assert(
      detail::is_sort_key<K>,
      "weft::radix_sort: keys are integers of 32 or 64 bits, float or double; make keys of those with a kernel");
}
template <class K, class V>
requires(!detail::SortKey<K> || !detail::SortValue<V>) void radix_sort_pairs(const Array<K>&, const Array<V>&,
                                                                             const SortOptions& = {}) {
  static_assert(
      detail::is_sort_key<K>,
      "weft::radix_sort_pairs: keys are integers of 32 or 64 bits, float or double; make keys of those with a "
      "kernel");
  static_assert(detail::is_sort_value<V>,
                "weft::radix_sort_pairs: values have 4 or 8 bytes; sort numbers 0, 1, ... and let kernels read through "
                "them");
}

}  // namespace weft
