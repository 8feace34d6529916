// Gradients by formula for functions of the library whose code has no useful one, because it works on bits or iterates.
#pragma once
#include "detach.h"

namespace weft::lib {

/// Whether this trace is for an adjoint. In other traces a formula would be useless.
bool tracing_adjoint();

/// The trace for the adjoint ends in other operations than the one for the launch: neither may be fused with those of
/// the caller, or both would be rounded differently.
struct OwnPiece : tracing::Trace::Piece {
  OwnPiece() : Piece(tracing::Trace::current()) {}
};

/// The value of `value` with the gradient of `like`, which is finite. Because -0 is added, the bits of the value stay,
/// even a zero's sign. A func() with grad() would not do: its gradient function would compute the terms that value and
/// formula share a second time.
template <class S>
S with_gradient_of(const S& value, const S& like) {
  if constexpr (any_traced<S>) {
    // Contracted with a product, the difference would be that product's rounding error.
    const tracing::AsWritten as_written;
    return detach(value) - (detach(like) - like);
  } else {
    return value;
  }
}

/// The value f(x) with the slope slope(x, f(x)). The slope is 0 if x or the slope is not finite.
template <class S, class F, class Slope>
S with_slope(const S& x, F f, Slope slope) {
  if constexpr (any_traced<S>) {
    const OwnPiece piece;
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
