// One number from an array: sum, minimum, maximum, inner product.
#pragma once
#include "options.h"

namespace weft {

namespace detail {
/// What is reduced: integers of 32 and 64 bits, float32 and float64.
template <class T>
concept ReduceScalar = NumericScalar<T> && sizeof(T) >= 4;

enum class Reduction { sum, min, max, inner };
/// \param b  null but for inner products
void reduce(Reduction reduction, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, ir::Type type,
            const AlgorithmOptions& options);
std::uint64_t reduce_scratch_bytes(std::int64_t n, std::uint32_t element_bytes);
template <class T>
T reduced(Reduction reduction, const Array<T>& a, const Array<T>* b, const AlgorithmOptions& options) {
  const Array<T> out = Array<T>::empty(a.device(), 1);
  reduce(reduction, a, b, out, scalar_type<T>(), options);
  return out.at(0);
}
}  // namespace detail

/// Bytes of scratch memory for any of these of n elements.
template <detail::ReduceScalar T>
std::uint64_t reduce_scratch_bytes(std::int64_t n) {
  return detail::reduce_scratch_bytes(n, sizeof(T));
}

/// out[0] = the sum of all elements; 0 of none. Integers wrap.
/// Reals are added in pairs, pairs of pairs and so on, each rounded: the same bits in each run and on each device, and
/// an error that grows with the logarithm of their number.
/// \param out  (1)
/// Gradient: flows to the elements.
/// Errors: Error(invalid_argument) for null arrays, another length of `out`, arrays that share memory or are on two
/// devices, and too little scratch memory; Error(unsupported) for strided views, more than 2^31 - 2^16 elements, or a
/// type that the device lacks.
/// Cost: the elements are read once; a launch for each factor of 32, no wait.
template <detail::ReduceScalar T>
void reduce_sum(const Array<T>& x, const Array<T>& out, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::reduce(detail::Reduction::sum, x, nullptr, out, scalar_type<T>(), options); });
}
/// The smallest and the largest element. Of reals a number is preferred to a NaN: NaN where there is nothing else. Of
/// no elements: the largest value of the type, the smallest; infinities of reals.
/// Gradient: none; refused while a tape records an array that carries one.
template <detail::ReduceScalar T>
void reduce_min(const Array<T>& x, const Array<T>& out, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::reduce(detail::Reduction::min, x, nullptr, out, scalar_type<T>(), options); });
}
template <detail::ReduceScalar T>
void reduce_max(const Array<T>& x, const Array<T>& out, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::reduce(detail::Reduction::max, x, nullptr, out, scalar_type<T>(), options); });
}
/// out[0] = the sum of a[i] * b[i], products rounded before they are added. The rest as reduce_sum(); gradients flow
/// to both.
/// Errors: also Error(invalid_argument) for different lengths.
template <detail::ReduceScalar T>
void inner_product(const Array<T>& a, const Array<T>& b, const Array<T>& out, const AlgorithmOptions& options = {},
                   Loc loc = Loc::here()) {
  detail::called_from(loc, [&] { detail::reduce(detail::Reduction::inner, a, &b, out, scalar_type<T>(), options); });
}

/// The same as numbers of the host. Wait for the result; make an array for it.
template <detail::ReduceScalar T>
T reduce_sum(const Array<T>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::sum, x, nullptr, options); });
}
template <detail::ReduceScalar T>
T reduce_min(const Array<T>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::min, x, nullptr, options); });
}
template <detail::ReduceScalar T>
T reduce_max(const Array<T>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::max, x, nullptr, options); });
}
template <detail::ReduceScalar T>
T inner_product(const Array<T>& a, const Array<T>& b, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::inner, a, &b, options); });
}

}  // namespace weft
