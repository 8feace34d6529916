// Jacobians: all derivatives of the results of a tape, one row for each call of backward().
#pragma once
#include "tape.h"

namespace weft {

namespace detail {
/// The number of scalars of each environment.
/// Errors: Error(invalid_argument) when the scalars of an array cannot be shared equally among the environments.
std::int64_t scalars_of_each(const ArrayBase& a, std::int64_t scalars, std::int64_t environments, const char* name);

template <class T, class U>
constexpr bool have_jacobian() {
  constexpr bool real = RealScalar<typename Flat<T>::scalar> && RealScalar<typename Flat<U>::scalar>;
  static_assert(real, "weft: only arrays of real numbers have Jacobians");
  return real;
}
}  // namespace detail

/// The Jacobians of independent parts of y by independent parts of x, where part e of y depends on part e of x only
/// (simulations side by side). Arrays are cut into `environments` equal parts along their first dimension; the scalars
/// of elements (3 of a vec3) count in row-major order. The gradients of all arrays of the tape are zero afterwards.
/// \return (environments, scalars of a part of y, scalars of a part of x): element (e, r, c) is the derivative of
///         scalar r of part e of y by scalar c of part e of x
/// Errors: as Tape::backward(); Error(invalid_argument) for an array that cannot be cut into equal parts.
/// Cost: as many calls of backward() as one part of y has scalars, whatever the number of environments.
template <class T, int N, class U, int M>
auto jacobians(Tape& tape, const Array<T, N>& y, const Array<U, M>& x, std::int64_t environments,
               Loc loc = Loc::here()) {
  if constexpr (detail::have_jacobian<T, U>()) {
    using S = typename Flat<T>::scalar;
    using R = typename Flat<U>::scalar;
    return detail::called_from(loc, [&] {
      const std::int64_t rows = detail::scalars_of_each(y, Flat<T>::count, environments, "y");
      const std::int64_t columns = detail::scalars_of_each(x, Flat<U>::count, environments, "x");
      Array<R, 3> result = Array<R, 3>::empty(x.device(), {environments, rows, columns});
      Array<T, N> seed = Array<T, N>::zeros(y.device(), y.extent());
      const Array<S, 2> chosen = seed.flatten().scalars().template reshape<2>({environments, rows});
      for (std::int64_t row = 0; row < rows; ++row) {
        chosen.slice(row, row + 1, 1, 1).fill(S(1));
        tape.zero();
        tape.backward({{y, seed}});
        chosen.slice(row, row + 1, 1, 1).fill(S(0));
        const Array<R, 2> scalars = tape.gradient(x).contiguous().flatten().scalars();
        result.slice(row, row + 1, 1, 1).copy_from(scalars.template reshape<3>({environments, 1, columns}));
      }
      tape.zero();
      return result;
    });
  }
}

/// The Jacobian of y by x, both in their scalars in row-major order: element (r, c) is the derivative of scalar r of y
/// by scalar c of x. The gradients of all arrays of the tape are zero afterwards.
/// Errors: as Tape::backward().
/// Cost: as many calls of backward() as y has scalars.
template <class T, int N, class U, int M>
auto jacobian(Tape& tape, const Array<T, N>& y, const Array<U, M>& x, Loc loc = Loc::here()) {
  if constexpr (detail::have_jacobian<T, U>()) return jacobians(tape, y, x, 1, loc)[0];
}

}  // namespace weft
