// One number, or one vector, from an array: sum, minimum, maximum, inner product.
#pragma once
#include "../../frontend/language/face.h"
#include "options.h"

namespace weft {

namespace detail {
/// What is reduced: integers of 32 and 64 bits, float32 and float64.
template <class T>
concept ReduceScalar = NumericScalar<T> && sizeof(T) >= 4;

/// What is summed: such numbers, and vectors, matrices and quaternions of them, component by component.
template <class T>
concept ReduceSummand = ReduceScalar<T> ||((VecLike<T> || MatLike<T> || QuatLike<T>)&&ReduceScalar<ElementOf<T>>);

/// An R is what values of type T are added up in: T itself, and of float32 the same of float64.
template <class T, class R>
concept ReduceResult = std::is_same_v<T, R> ||
    (std::is_same_v<ElementOf<T>, float>&& std::is_same_v<R, typename Rebound<T, double>::type>);

enum class Reduction { sum, min, max, inner };
/// Of how many scalars of which type the elements are, and in which type they are added up.
struct ReduceForm {
  int scalars;
  ir::Type in, out;
};
template <class T, class R>
inline constexpr ReduceForm reduce_form = {Flat<T>::count, scalar_type<ElementOf<T>>(), scalar_type<ElementOf<R>>()};
/// \param b  null but for inner products
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

/// Bytes of scratch memory for any of these of n elements, with results of type T.
template <detail::ReduceSummand T>
std::uint64_t reduce_scratch_bytes(std::int64_t n) {
  return detail::reduce_scratch_bytes(n, sizeof(T));
}

/// out[0] = the sum of all elements; 0 of none. Integers wrap.
/// Reals are added in pairs, pairs of pairs and so on, each rounded: the same bits in each run and on each device, and
/// an error that grows with the logarithm of their number. The type of `out` is that in which they are added: numbers
/// of float32 in float64 where it is an Array<double>, vectors where it is an Array<vec3d>.
/// \param x    any view with up to three dimensions, in row-major order; elements with strides give the same
///             bits as in a row, and take longer
/// \param out  (1)
/// Gradient: flows to the elements.
/// Errors: Error(invalid_argument) for null arrays, another length of `out`, arrays that share memory or are on two
/// devices, and too little scratch memory; Error(unsupported) for strided views with four dimensions, more than
/// 2^31 - 2^16 elements, or a type that the device lacks.
/// Cost: the elements are read once; a launch for each factor of 32, no wait.
template <detail::ReduceSummand T, int N, class R>
requires detail::ReduceResult<T, R>
void reduce_sum(const Array<T, N>& x, const Array<R>& out, const AlgorithmOptions& options = {},
                Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::sum, x, nullptr, out, detail::reduce_form<T, R>, options); });
}
/// The smallest and the largest element. Of reals a number is preferred to a NaN: NaN where there is nothing else. Of
/// no elements: the largest value of the type, the smallest; infinities of reals.
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
/// out[0] = the sum of a[i] * b[i], products rounded before they are added; in the type of `out`, in which products of
/// float32 are exact where it is float64. The rest as reduce_sum(); gradients flow to both.
/// Errors: also Error(invalid_argument) for different shapes.
template <detail::ReduceScalar T, int N, class R>
requires detail::ReduceResult<T, R>
void inner_product(const Array<T, N>& a, const Array<T, N>& b, const Array<R>& out,
                   const AlgorithmOptions& options = {}, Loc loc = Loc::here()) {
  detail::called_from(
      loc, [&] { detail::reduce(detail::Reduction::inner, a, &b, out, detail::reduce_form<T, R>, options); });
}

/// The same as numbers of the host; of float32 in float64 where the type says so: `reduce_sum<double>(x)`. Wait for the
/// result; make an array for it.
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
