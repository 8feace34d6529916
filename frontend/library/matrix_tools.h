// Tools for the bodies in linalg.cpp and factor.cpp: change of precision, and the scale of a matrix.
#pragma once
#include "float_format.h"
#include "linalg.h"
#include "matrix.h"

namespace weft::lib {

template <class To, int R, int C, class From>
MatOf<R, C, To> to_precision(const MatOf<R, C, From>& a) {
  MatOf<R, C, To> b;
  for (int i = 0; i < R; ++i)
    for (int j = 0; j < C; ++j) b(i, j) = To(a(i, j));
  return b;
}
template <class To, int N, class From>
VecOf<N, To> to_precision(const VecOf<N, From>& a) {
  VecOf<N, To> b;
  for (int i = 0; i < N; ++i) b[i] = To(a[i]);
  return b;
}

/// A matrix times a power of two, so that its largest element has a magnitude from 1 to 4 (zero stays zero): squares
/// and determinants then stay within the range of the type. The scaling is exact and no part of a derivative.
template <int N, class S>
struct Scaled {
  MatOf<N, N, S> a;
  S factor;   ///< by which the elements were multiplied
  S inverse;  ///< 1 / factor
};
template <int N, class S>
Scaled<N, S> scaled(const MatOf<N, N, S>& a) {
  using F = FloatFormat<HostOf<S>>;
  using Bits = typename F::Bits;
  S largest = abs(a(0, 0));
  for (int k = 1; k < N * N; ++k) largest = max(largest, S(abs(a(k / N, k % N))));
  // The exponent bits alone are a power of two. Its two ends have no normal reciprocal, and their neighbours replace
  // them.
  constexpr Bits infinity = Bits(2 * F::bias + 1) << F::digits;
  constexpr Bits least = Bits(1) << F::digits, greatest = Bits(2 * F::bias - 1) << F::digits;
  const BitsOf<S> exponent = clamp(BitsOf<S>(to_bits(largest) & infinity), least, greatest);
  Scaled<N, S> r{{}, from_bits<S>(BitsOf<S>(-exponent + (Bits(2 * F::bias) << F::digits))), from_bits<S>(exponent)};
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) r.a(i, j) = a(i, j) * r.factor;
  return r;
}

}  // namespace weft::lib
