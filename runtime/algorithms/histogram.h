// Histograms: how many elements of an array are in each of a row of bins.
#pragma once
#include <type_traits>

#include "options.h"

namespace weft {

namespace detail {
/// A type of elements that can be counted: numbers of 32 and 64 bits.
template <class T>
concept HistogramScalar = NumericScalar<T> && sizeof(T) >= 4;

/// \param lo, hi  for reals only
void histogram(const ArrayBase& x, const ArrayBase& counts, ir::Type type, double lo, double hi,
               const AlgorithmOptions& options);
}  // namespace detail

/// Counts the elements in each of counts.size() bins of equal width between lo and hi; overwrites `counts`. Bin k
/// counts an element x if (x / 2 - lo / 2) * s is in [k, k + 1), computed in the type of the elements, where s is bins
/// / (hi / 2 - lo / 2), rounded to that type; hi itself belongs to the last bin. Elements outside and NaNs are not
/// counted.
/// \param x       (n)
/// \param counts  (bins); at least one
/// Gradient: none, as counts do not change with the elements.
/// Errors: Error(invalid_argument) for null arrays, no bins, lo >= hi or a bound that is not finite, bins too narrow or
/// too wide for the type, arrays that share memory or are on two devices; Error(unsupported) for strided views and more
/// than 2^31 - 2^16 elements.
/// Cost: reads the elements once, with an atomic addition for each, in shared memory for up to 2048 bins. No scratch
/// memory, no wait.
template <detail::HistogramScalar T>
requires RealScalar<T>
void histogram(const Array<T>& x, const std::type_identity_t<T>& lo, const std::type_identity_t<T>& hi,
               const Array<int>& counts, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::histogram(x, counts, scalar_type<T>(), lo, hi, options); });
}
/// Counts in counts[k] the elements equal to k. Elements that are no index of `counts` are not counted. The rest is as
/// for real numbers.
template <detail::HistogramScalar T>
requires IntegerScalar<T>
void histogram(const Array<T>& x, const Array<int>& counts, const AlgorithmOptions& options = {},
               Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::histogram(x, counts, scalar_type<T>(), 0, 0, options); });
}

}  // namespace weft
