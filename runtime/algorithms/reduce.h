// Reductions of an array to one number or vector: sum, minimum, maximum, inner product.
#pragma once
#include "../../frontend/language/face.h"
#include "options.h"

namespace weft {

namespace detail {
/// A type of elements that can be reduced: integers of 32 and 64 bits, float32 and float64.
template <class T>
concept ReduceScalar = NumericScalar<T> && sizeof(T) >= 4;

/// A type of elements that can be summed: such numbers, and vectors, matrices and quaternions of them, by component.
template <class T>
concept ReduceSummand = ReduceScalar<T> ||((VecLike<T> || MatLike<T> || QuatLike<T>)&&ReduceScalar<ElementOf<T>>);

/// A pair of a type T of elements and a type R of their sum: R is T, or for float32 the same type of float64.
template <class T, class R>
concept ReduceResult = std::is_same_v<T, R> ||
    (std::is_same_v<ElementOf<T>, float>&& std::is_same_v<R, typename Rebound<T, double>::type>);

enum class Reduction { sum, min, max, inner };
/// The number and type of an element's scalars, and the type in which they are summed.
struct ReduceForm {
  int scalars;
  ir::Type in, out;
};
template <class T, class R>
inline constexpr ReduceForm reduce_form = {Flat<T>::count, scalar_type<ElementOf<T>>(), scalar_type<ElementOf<R>>()};
/// \param b  null except for inner products
void reduce(Reduction reduction, const ArrayBase& a, const ArrayBase* b, const ArrayBase& out, const ReduceForm& form,
            const AlgorithmOptions& options);
std::uint64_t reduce_scratch_bytes(std::int64_t n, std::uint32_t element_bytes);
template <class R, class T, int N>
R reduced(Reduction reduction, const Array<T, N>& a, std::type_identity_t<const Array<T, N>*> b,
          const AlgorithmOptions& options) {
  const Array<R> out = Array<R>::empty(a.device(), 1);
  reduce(reduction, a, b, out, reduce_form<T, R>, options);
  return out.at(0);
}
}  // namespace detail

/// The bytes of scratch memory that any reduction of n elements to results of type T needs.
template <detail::ReduceSummand T>
std::uint64_t reduce_scratch_bytes(std::int64_t n) {
  return detail::reduce_scratch_bytes(n, sizeof(T));
}

/// Sets out[0] to the sum of all elements; 0 if there are none. Integers wrap. Reals are added in pairs, pairs of pairs
/// and so on, with each sum rounded: the bits are the same in each run and on each device, and the error grows with the
/// logarithm of the number of elements. The sum is computed in the type of `out`: an Array<double> sums float32 numbers
/// in float64, an Array<vec3d> vectors.
/// \param x    any view with up to three dimensions, in row-major order; strided elements give the same bits as
///             contiguous ones, and take longer
/// \param out  (1)
/// Gradient: flows to the elements.
/// Errors: Error(invalid_argument) for null arrays, another length of `out`, arrays that share memory or are on two
/// devices, and too little scratch memory; Error(unsupported) for strided views with four dimensions, more than 2^31 -
/// 2^16 elements, or a type that the device lacks.
/// Cost: reads the elements once, with a launch for each factor of 32; no wait.
template <detail::ReduceSummand T, int N, class R>
requires detail::ReduceResult<T, R>
void reduce_sum(const Array<T, N>& x, const Array<R>& out, const AlgorithmOptions& options = {},
                Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::sum, x, nullptr, out, detail::reduce_form<T, R>, options); });
}
/// Sets out[0] to the smallest element (reduce_max(): the largest). A NaN results only if all elements are NaN. Without
/// elements the results are the largest value of the type and the smallest one; infinities for reals.
/// Gradient: none; refused while a tape records an array that carries one.
template <detail::ReduceScalar T, int N>
void reduce_min(const Array<T, N>& x, const Array<T>& out, const AlgorithmOptions& options = {},
                Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::min, x, nullptr, out, detail::reduce_form<T, T>, options); });
}
template <detail::ReduceScalar T, int N>
void reduce_max(const Array<T, N>& x, const Array<T>& out, const AlgorithmOptions& options = {},
                Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::max, x, nullptr, out, detail::reduce_form<T, T>, options); });
}
/// Sets out[0] to the sum of a[i] * b[i]. Each product is rounded before it is added, in the type of `out`: in float64,
/// products of float32 are exact. The rest is as for reduce_sum(); gradients flow to both.
/// Errors: also Error(invalid_argument) for different shapes.
template <detail::ReduceScalar T, int N, class R>
requires detail::ReduceResult<T, R>
void inner_product(const Array<T, N>& a, const Array<T, N>& b, const Array<R>& out,
                   const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::inner, a, &b, out, detail::reduce_form<T, R>, options); });
}

/// These overloads return the result on the host, on request that of float32 in float64: `reduce_sum<double>(x)`. They
/// allocate an array for the result and wait for it.
template <detail::ReduceSummand T, int N>
T reduce_sum(const Array<T, N>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::sum, x, nullptr, options); });
}
template <class R, detail::ReduceSummand T, int N>
requires(detail::ReduceResult<T, R> && !std::is_same_v<T, R>) R
    reduce_sum(const Array<T, N>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<R>(detail::Reduction::sum, x, nullptr, options); });
}
template <detail::ReduceScalar T, int N>
T reduce_min(const Array<T, N>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::min, x, nullptr, options); });
}
template <detail::ReduceScalar T, int N>
T reduce_max(const Array<T, N>& x, const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::max, x, nullptr, options); });
}
template <detail::ReduceScalar T, int N>
T inner_product(const Array<T, N>& a, const Array<T, N>& b, const AlgorithmOptions& options = {},
                Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<T>(detail::Reduction::inner, a, &b, options); });
}
template <class R, detail::ReduceScalar T, int N>
requires(detail::ReduceResult<T, R> && !std::is_same_v<T, R>) R
    inner_product(const Array<T, N>& a, const Array<T, N>& b, const AlgorithmOptions& options = {},
                  Loc loc = Loc::here()) {
  return detail::called_from(loc, [&] { return detail::reduced<R>(detail::Reduction::inner, a, &b, options); });
}

}  // namespace weft
