// Gradients by formula for functions of the library whose code has none: it works on bits, or it iterates.
#pragma once
#include "detach.h"

namespace weft::lib {

/// Is this a trace for an adjoint? In others a formula would be traced for nothing.
bool tracing_adjoint();

/// `value` with the gradient of `like`, which is finite. Bit by bit the value, a zero's sign included: -0 is added.
/// Not a func() with grad(): its gradient function would compute again what the value shares with the formula.
template <class S>
S with_gradient_of(const S& value, const S& like) {
  if constexpr (any_traced<S>)
    return detach(value) - (detach(like) - like);
  else
    return value;
}

/// f(x) with the slope slope(x, f(x)). 0 is chosen where x or the slope is not finite.
template <class S, class F, class Slope>
S with_slope(const S& x, F f, Slope slope) {
  if constexpr (any_traced<S>) {
    if (tracing_adjoint()) {
      using T = HostOf<S>;
      const S at = detach(x), value = f(at), by_x = slope(at, value);
      const auto regular = isfinite(at) & isfinite(by_x);
      return with_gradient_of<S>(value, detach(S(select(regular, by_x, S(T(0))))) * select(regular, x, S(T(0))));
    }
  }
  return f(x);
}

}  // namespace weft::lib
