// Special functions on both faces: erf and its relatives, cbrt, log10, and exp and log near their zeros.
#pragma once
#include "../language/face.h"

namespace weft {

namespace detail {
/// A traced number, or a real one of the host. (Whole numbers of the host are left to <cmath>.)
template <class A>
concept RealOrTraced = ScalarLike<A> &&(any_traced<A> || RealScalar<HostOf<A>>);
}  // namespace detail

namespace lib {
// Bodies in special.cpp; S is float, half, double or the traced face of one.
template <class S>
S erf(const S& x);
template <class S>
S erfc(const S& x);
template <class S>
S erfinv(const S& x);
template <class S>
S erfcinv(const S& x);
template <class S>
S expm1(const S& x);
template <class S>
S log1p(const S& x);
template <class S>
S log10(const S& x);
template <class S>
S cbrt(const S& x);
}  // namespace lib

// These functions have no branches and are the same arithmetic on every device and on the host; float16 is computed in
// float32 and rounded once. Accuracy and limits: docs/semantics.md. Gradient: that of the function; 0 if that or the
// argument is not finite (cbrt at 0, erfinv at 1).
#define WEFT_SPECIAL_FUNCTION(name)                                                                      \
  template <detail::RealOrTraced A>                                                                      \
  auto name(const A& x, Loc loc = Loc::here()) {                                                         \
    static_assert(RealScalar<HostOf<A>>, "weft: " #name "() takes real numbers; convert with Float(x)"); \
    using S = ScalarFaceOf<A>;                                                                           \
    [[maybe_unused]] detail::CallSite<S> site(loc, detail::Rounding::as_written);                        \
    return lib::name<S>(lift<S>(x, loc));                                                                \
  }

/// Error function: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.
/// Cost: about 90 operations in float32, 130 in float64; the others here are cheaper, erfc and the inverses alike.
WEFT_SPECIAL_FUNCTION(erf)
/// 1 - erf(x), without the loss of digits for large x.
WEFT_SPECIAL_FUNCTION(erfc)
/// The solution x of erf(x) = y. Infinite at 1 and -1, NaN beyond.
/// Source: Wichura 1988, algorithm AS 241.
WEFT_SPECIAL_FUNCTION(erfinv)
/// The solution x of erfc(x) = y, for y from 0 (infinity) to 2 (-infinity); NaN outside.
/// Source: Wichura 1988, algorithm AS 241.
WEFT_SPECIAL_FUNCTION(erfcinv)
/// exp(x) - 1, without the loss of digits near 0.
WEFT_SPECIAL_FUNCTION(expm1)
/// log(1 + x), without the loss of digits near 0. -infinity at -1, NaN below.
WEFT_SPECIAL_FUNCTION(log1p)
/// Logarithm to base 10. -infinity at 0, NaN below.
WEFT_SPECIAL_FUNCTION(log10)
/// Cube root, with the sign of x.
WEFT_SPECIAL_FUNCTION(cbrt)
#undef WEFT_SPECIAL_FUNCTION

}  // namespace weft
