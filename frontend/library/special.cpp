// Bodies of the special functions, once for both faces: range reductions by the bits of a float, then polynomials.
#include "special.h"

#include <numbers>

#include "../language/own_gradient.h"
#include "float_format.h"

namespace weft::lib {

namespace {

/// The parameters of a type that the reductions need, and the coefficients for its accuracy. Polynomials begin with the
/// constant term; those without a source are interpolations at Chebyshev nodes, with a relative error below half an ulp
/// of the result that they contribute to.
template <class T>
struct Format;

template <>
struct Format<float> : FloatFormat<float> {
  static constexpr float largest = 0x1.fffffep+127f, least_normal = 0x1p-126f;
  static constexpr int subnormal_shift = 24;
  /// Keeps few enough digits that a square is exact.
  static constexpr Bits upper_half = ~Bits(0xfff);
  static constexpr std::uint32_t sqrt_half = 0x3f3504f3;

  // ln 2 and log10 2 in two parts; products of the first with whole numbers up to 2^8 are exact.
  static constexpr float ln2[] = {0.693359375f, -2.12194440e-4f};
  static constexpr float log10_2[] = {3.00781250e-1f, 2.48745663e-4f};
  // log10 e in two parts; the first has half the digits.
  static constexpr float log10_e[] = {4.34326172e-1f, -3.16899717e-5f};
  static constexpr float log2_e = 1.44269504f;
  static constexpr float exp_end = 89, expm1_begin = -18;

  /// (expm1(r) - r - r^2/2) / r^3 for |r| <= ln 2 / 2.
  static constexpr float expm1[] = {1.66666667e-1f, 4.16665541e-2f, 8.33332083e-3f, 1.39262681e-3f, 1.98827921e-4f};
  /// (2 atanh(s) / s - 2) / s^2, in s^2, for the s of arguments from sqrt(1/2) to sqrt(2).
  static constexpr float log1p[] = {6.66666666e-1f, 4.00001226e-1f, 2.85507308e-1f, 2.33329128e-1f};
  /// erf(x) / x - 1, in x^2, for |x| <= 1/2.
  static constexpr float erf[] = {1.28379166e-1f, -3.7612609e-1f, 1.12828314e-1f, -2.67577327e-2f, 4.71908257e-3f};
  /// exp(x^2) erfc(x) (1 + 2x) - 1 in t = (x - centre) / (x + centre), for x from 0 to the end.
  static constexpr float erfc_centre = 3, erfc_end = 10.1f;
  static constexpr float erfc[] = {2.53008058e-1f,  -1.35621143e-1f, -4.75622805e-2f, 1.29646576e-1f,
                                   -1.19272653e-1f, 6.82935098e-2f,  -2.37902342e-2f, 2.57943468e-3f,
                                   1.99447459e-3f,  -7.98339142e-4f, -2.77326922e-4f};
  static constexpr int halley_steps = 1;

  // The inverse of the normal distribution: Wichura 1988, algorithm AS 241, PPND7. Regions: centre, tail, far tail.
  static constexpr float normal_over[3][4] = {{3.3871327179f, 50.434271938f, 159.29113202f, 59.109374720f},
                                              {1.4234372777f, 2.7568153900f, 1.3067284816f, 0.17023821103f},
                                              {6.6579051150f, 3.0812263860f, 0.42868294337f, 0.017337203997f}};
  static constexpr float normal_under[3][4] = {{1, 17.895169469f, 78.757757664f, 67.187563600f},
                                               {1, 0.73700164250f, 0.12021132975f, 0},
                                               {1, 0.24197894225f, 0.012258202635f, 0}};
};

template <>
struct Format<double> : FloatFormat<double> {
  static constexpr double largest = 0x1.fffffffffffffp+1023, least_normal = 0x1p-1022;
  static constexpr int subnormal_shift = 54;
  static constexpr Bits upper_half = ~Bits(0xffffffff);
  static constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcd;

  static constexpr double ln2[] = {6.93147180369123816490e-01, 1.90821492927058770002e-10};
  static constexpr double log10_2[] = {3.01029995663611771306e-01, 3.69423907715893078616e-13};
  static constexpr double log10_e[] = {4.34294481878168880939e-01, 2.50829467116452752298e-11};
  static constexpr double log2_e = 1.4426950408889634074;
  static constexpr double exp_end = 710, expm1_begin = -40;

  static constexpr double expm1[] = {1.6666666666666667e-1, 4.1666666666666667e-2, 8.3333333333300321e-3,
                                     1.3888888888886531e-3, 1.9841269863201828e-4, 2.480158731725034e-5,
                                     2.7557268229963226e-6, 2.7557282805277868e-7, 2.510049478890504e-8,
                                     2.0911314678813157e-9};
  static constexpr double log1p[] = {6.6666666666666697e-1, 3.9999999999898192e-1, 2.8571428626570204e-1,
                                     2.2222211037816588e-1, 1.8182896183483087e-1, 1.5331487235865733e-1,
                                     1.4619343453512615e-1};
  static constexpr double erf[] = {1.2837916709551257e-1,  -3.7612638903183474e-1, 1.1283791670925353e-1,
                                   -2.6866170632887929e-2, 5.22397737302147e-3,    -8.5482977536749669e-4,
                                   1.2053335124353741e-4,  -1.484584925970787e-5,  1.4725865480556744e-6};
  static constexpr double erfc_centre = 4, erfc_end = 27.3;
  static constexpr double erfc[] = {
      2.3299511862555251e-1,  -1.3962111684056286e-1, 1.537965210262109e-2,   6.80970542547336e-2,
      -1.0103906603637363e-1, 9.3732834996905354e-2,  -6.6330365811010303e-2, 3.7167515561056711e-2,
      -1.6197734065502875e-2, 5.0319697650511225e-3,  -7.5777329637394623e-4, -1.9925553476007838e-4,
      1.506220523230599e-4,   -2.4403160497192634e-5, -1.1224293594679386e-5, 5.7180670047858811e-6,
      3.0060530202709258e-7,  -8.3568860548022444e-7, 6.3263819360138453e-8,  1.1597564919712836e-7,
      -7.7962109357503944e-9, -1.3952812123042383e-8, -1.9073886270079709e-9};
  static constexpr int halley_steps = 2;

  // PPND16 of the same source.
  static constexpr double normal_over[3][8] = {
      {3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125, 45921.953931549871457,
       67265.770927008700853, 33430.575583588128105, 2509.0809287301226727},
      {1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
       1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4},
      {6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123,
       0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5, 2.01033439929228813265e-7}};
  static constexpr double normal_under[3][8] = {
      {1, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867,
       39307.89580009271061, 28729.085735721942674, 5226.495278852545925},
      {1, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459,
       0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9},
      {1, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525, 7.868691311456132591e-4,
       1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15}};
};

template <class S>
using FormatOf = Format<HostOf<S>>;

template <class S>
constexpr HostOf<S> kInfinity = std::numeric_limits<HostOf<S>>::infinity();
template <class S>
constexpr HostOf<S> kNaN = std::numeric_limits<HostOf<S>>::quiet_NaN();

/// Evaluates p[0] + p[1] x + ... by Horner's rule.
template <class S, std::size_t N>
S polynomial(const S& x, const HostOf<S> (&p)[N]) {
  S sum = S(p[N - 1]);
  for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + p[k];
  return sum;
}

/// 2^n, which must be a normal number.
template <class S>
S power_of_two(const BitsOf<S>& n) {
  using F = FormatOf<S>;
  return from_bits<S>(BitsOf<S>((n + F::bias) << F::digits));
}
/// x 2^n in two steps, because 2^n alone may not be a normal number.
template <class S>
S scale(const S& x, const BitsOf<S>& n) {
  const BitsOf<S> part = n >> 1;
  return x * power_of_two<S>(part) * power_of_two<S>(n - part);
}

/// e^x = 2^n (1 + m).
template <class S>
struct Exponential {
  BitsOf<S> n;
  S m;
};
/// The exponential of hi + lo, for small lo. Source: Cody and Waite 1980: hi = n ln 2 + r.
template <class S>
Exponential<S> exponential(const S& hi, const S& lo) {
  using F = FormatOf<S>;
  // From 1.5 * 2^digits on, floats are whole numbers with the value in their low bits: the sum rounds to nearest and
  // gives n both ways.
  constexpr auto shift = HostOf<S>(3ll << (F::digits - 1));
  const S shifted = hi * F::log2_e + shift;
  const S n = shifted - shift;
  const S r = hi - n * F::ln2[0] - n * F::ln2[1] + lo;
  const S r2 = r * r;
  return {to_bits(shifted) - std::bit_cast<typename F::Bits>(shift),
          r + (r2 * HostOf<S>(0.5) + r2 * r * polynomial(r, F::expm1))};
}

/// x = 2^n m with sqrt(1/2) <= m < sqrt(2); for normal positive numbers.
template <class S>
struct Parts {
  BitsOf<S> n;
  S m;
};
template <class S>
Parts<S> split(const S& x) {
  using F = FormatOf<S>;
  using Bits = typename F::Bits;
  using Unsigned = std::make_unsigned_t<Bits>;  // a NaN's bits may wrap
  constexpr Unsigned one = Unsigned(F::bias) << F::digits, fraction = (Unsigned(1) << F::digits) - 1;
  const FaceLike<S, Unsigned> bits = bitcast<Unsigned>(x) + (one - F::sqrt_half);
  return {bitcast<Bits>(FaceLike<S, Unsigned>(bits >> F::digits)) - F::bias,
          from_bits<S>(FaceLike<S, Unsigned>((bits & fraction) + F::sqrt_half))};
}
/// Splits any positive number.
template <class S>
Parts<S> split_any(const S& x) {
  using F = FormatOf<S>;
  constexpr auto up = HostOf<S>(std::int64_t(1) << F::subnormal_shift);
  const auto subnormal = x < F::least_normal;
  Parts<S> p = split<S>(select(subnormal, S(x * up), x));
  p.n = p.n - select(subnormal, BitsOf<S>(F::subnormal_shift), BitsOf<S>(0));
  return p;
}

/// log(1 + f) - f, for f from sqrt(1/2) - 1 to sqrt(2) - 1. Source: the arrangement of fdlibm, which adds the small
/// terms first.
template <class S>
S log1p_rest(const S& f) {
  const S s = f / (f + HostOf<S>(2)), s2 = s * s, h = f * f * HostOf<S>(0.5);
  return s * (h + s2 * polynomial(s2, FormatOf<S>::log1p)) - h;
}
/// n ln 2 + log(1 + f).
template <class S>
S logarithm(const S& n, const S& f) {
  using F = FormatOf<S>;
  return n * F::ln2[0] + (f + (log1p_rest(f) + n * F::ln2[1]));
}
/// Replaces the results of logarithms outside of (0, infinity): NaN below, -infinity at 0, else the argument itself.
template <class S>
S logarithm_or_limit(const S& x, const S& result) {
  using T = HostOf<S>;
  const S limit = select(x == T(0), S(-kInfinity<S>), select(x < T(0), S(kNaN<S>), x));
  return select(x > T(0) && x <= FormatOf<S>::largest, result, limit);
}

/// erfc(a) for a >= 0.
template <class S>
S erfc_positive(const S& any) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  const S a = select(any > F::erfc_end, S(F::erfc_end), any);
  // Splits exp(-a^2): the square of the upper half of a's digits is exact, and the rest is small.
  const S h = from_bits<S>(to_bits(a) & F::upper_half);
  const Exponential<S> e = exponential<S>(-(h * h), (h - a) * (h + a));
  const S t = (a - F::erfc_centre) / (a + F::erfc_centre);
  const S p = polynomial(t, F::erfc) + T(1);
  return scale<S>((p + p * e.m) / (a + a + T(1)), e.n);
}

/// erf(x) for |x| <= 1/2.
template <class S>
S erf_small(const S& x) {
  return x + x * polynomial(S(x * x), FormatOf<S>::erf);
}

template <class S>
S erf_wide(const S& x) {
  using T = HostOf<S>;
  const S a = abs(x), tail = T(1) - erfc_positive<S>(a);
  return select(a < T(0.5), erf_small<S>(x), select(x < T(0), S(-tail), tail));
}

template <class S>
S erfc_wide(const S& x) {
  using T = HostOf<S>;
  const S a = abs(x), tail = erfc_positive<S>(a);
  return select(a < T(0.5), S(T(1) - erf_small<S>(x)), select(x < T(0), S(T(2) - tail), tail));
}

/// `factor` times the polynomial of the argument's region: three sets of coefficients, one evaluation.
template <class S, class B, std::size_t N>
S choose_and_evaluate(const S& x, const B& central, const B& far, const HostOf<S> (&p)[3][N], double factor) {
  auto coefficient = [&](std::size_t k) {
    auto of = [&](int region) { return S(HostOf<S>(double(p[region][k]) * factor)); };
    return S(select(central, of(0), select(far, of(2), of(1))));
  };
  S sum = coefficient(N - 1);
  for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + coefficient(k);
  return sum;
}

/// The solution x of erf(x) = 2 d, where q = 1 - 2 |d| has the tail's own digits, which d may have lost.
template <class S>
S erf_inverse(const S& d, const S& q) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  const Parts<S> parts = split_any<S>(select(q > T(0), q, S(T(1))));
  // log(q / 2)
  const S l = sqrt(S(-logarithm<S>(S(parts.n - 1), S(parts.m - T(1)))));
  const auto central = abs(d) <= T(0.425), far = l > T(5);
  const S r = select(central, S(T(0.180625) - d * d), select(far, S(l - T(5)), S(l - T(1.6))));
  const S value = choose_and_evaluate(r, central, far, F::normal_over, std::numbers::sqrt2 / 2) /
                  choose_and_evaluate(r, central, far, F::normal_under, 1);
  const S tail = select(q > T(0), value, select(q == T(0), S(kInfinity<S>), S(kNaN<S>)));
  return select(central, S(d * value), select(d < T(0), S(-tail), tail));
}

template <class S>
S erfinv_wide(const S& x) {
  using T = HostOf<S>;
  return erf_inverse<S>(x * T(0.5), T(1) - abs(x));
}

template <class S>
S erfcinv_wide(const S& x) {
  using T = HostOf<S>;
  return erf_inverse<S>(T(0.5) - x * T(0.5), select(x < T(1), x, S(T(2) - x)));
}

template <class S>
S expm1_wide(const S& any) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  const S x = select(any > F::exp_end, S(F::exp_end), select(any < F::expm1_begin, S(F::expm1_begin), any));
  const Exponential<S> e = exponential<S>(x, S(T(0)));
  // 2^(n-1) is a number even if 2^n no longer is.
  const S p = power_of_two<S>(e.n - 1);
  const S r = p * e.m + (p - T(0.5));
  return select(any == T(0), any, S(r + r));  // keeps the sign of zero
}

template <class S>
S log1p_wide(const S& x) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  const S u = x + T(1);
  const Parts<S> p = split<S>(u);
  // 1 + x = 2^n (1 + f): for small n, f comes from x itself, of which u has lost digits.
  const S c = power_of_two<S>(-p.n);
  const S f = select(p.n > F::digits + 1, S(p.m - T(1)), S(x * c + (c - T(1))));
  const S r = logarithm<S>(S(p.n), f);
  return select(x == T(0), x, logarithm_or_limit<S>(u, r));
}

template <class S>
S log10_wide(const S& x) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  const Parts<S> p = split_any<S>(x);
  const S n = S(p.n), f = p.m - T(1);
  // Splits log(m) into a part with half the digits, whose product with the first part of log10 e is exact, and the
  // rest.
  const S rest = log1p_rest(f);
  const S hi = from_bits<S>(to_bits(S(f + rest)) & F::upper_half), lo = (f - hi) + rest;
  const S small = n * F::log10_2[1] + (hi + lo) * F::log10_e[1] + lo * F::log10_e[0];
  return logarithm_or_limit<S>(x, n * F::log10_2[0] + (hi * F::log10_e[0] + small));
}

template <class S>
S cbrt_wide(const S& x) {
  using F = FormatOf<S>;
  using T = HostOf<S>;
  using Bits = typename F::Bits;
  const S a = abs(x);
  const auto subnormal = a < F::least_normal;
  // The shift is a multiple of three, so that the root's scale is a power of two.
  constexpr int third = F::subnormal_shift / 3;
  const S b = select(subnormal, S(a * T(std::int64_t(1) << (3 * third))), a);
  // A third of the bits, including the exponent, is the root to within a twentieth.
  const BitsOf<S> bits = to_bits(b);
  BitsOf<S> q = (bits >> 2) + (bits >> 4);
  q = q + (q >> 4);
  q = q + (q >> 8);
  constexpr Bits offset = (Bits(2 * F::bias) << F::digits) / 3 - (Bits(1) << (F::digits - 5));
  S t = from_bits<S>(BitsOf<S>(q + offset));
  for (int k = 0; k < F::halley_steps; ++k) {
    const S r = b / (t * t);
    t = t * ((t + r + r) / (t + t + r));
  }
  t = t + (b / (t * t) - t) * T(1. / 3);  // Newton's step, in the form that rounds least
  t = select(subnormal, S(t * T(1. / (1 << third))), t);
  return select(a > T(0) && a <= F::largest, select(x < T(0), S(-t), t), x);
}

// ---- Slopes at x with value y: code that takes floats apart by their bits has no derivative of its own.

template <class S>
S erf_slope(const S& x, const S&) {
  using T = HostOf<S>;
  return exp(S(-(x * x))) * T(2 * std::numbers::inv_sqrtpi);
}
template <class S>
S erfc_slope(const S& x, const S& y) {
  return -erf_slope<S>(x, y);
}
template <class S>
S erfinv_slope(const S&, const S& y) {
  using T = HostOf<S>;
  return exp(S(y * y)) * T(0.5 / std::numbers::inv_sqrtpi);
}
template <class S>
S erfcinv_slope(const S& x, const S& y) {
  return -erfinv_slope<S>(x, y);
}
template <class S>
S expm1_slope(const S& x, const S&) {
  return exp(x);
}
template <class S>
S log1p_slope(const S& x, const S&) {
  using T = HostOf<S>;
  return T(1) / (x + T(1));
}
template <class S>
S log10_slope(const S& x, const S&) {
  using T = HostOf<S>;
  return T(std::numbers::log10e) / x;
}
template <class S>
S cbrt_slope(const S&, const S& y) {
  using T = HostOf<S>;
  return T(1. / 3) / (y * y);
}

}  // namespace

#define WEFT_SPECIAL_FUNCTION(name)                                     \
  template <class S>                                                    \
  S name(const S& x) {                                                  \
    using W = Wide<S>;                                                  \
    return S(with_slope<W>(                                             \
        W(x), [](const W& v) { return name##_wide<W>(v); },             \
        [](const W& v, const W& y) { return name##_slope<W>(v, y); })); \
  }                                                                     \
  template half name(const half&);                                      \
  template float name(const float&);                                    \
  template double name(const double&);                                  \
  template Var<half> name(const Var<half>&);                            \
  template Var<float> name(const Var<float>&);                          \
  template Var<double> name(const Var<double>&);
WEFT_SPECIAL_FUNCTION(erf)
WEFT_SPECIAL_FUNCTION(erfc)
WEFT_SPECIAL_FUNCTION(erfinv)
WEFT_SPECIAL_FUNCTION(erfcinv)
WEFT_SPECIAL_FUNCTION(expm1)
WEFT_SPECIAL_FUNCTION(log1p)
WEFT_SPECIAL_FUNCTION(log10)
WEFT_SPECIAL_FUNCTION(cbrt)
#undef WEFT_SPECIAL_FUNCTION

}  // namespace weft::lib
