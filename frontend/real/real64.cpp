// The float64 functions that SPIR-V and processors lack, written in the kernel language.
//
// Strategy: reduce the argument to a small interval with an error far below its last place, evaluate a polynomial there
// and assemble the result with as few roundings as possible. Every operation used is correctly rounded (the emitter
// forbids contraction), so sums and products of two numbers can also be computed exactly, as a pair (hi, lo) of numbers
// (Dekker 1971). The reductions and polynomials of exp, log, sin, cos, atan, asin and acos are those of Sun's fdlibm
// (1993), whose errors are below one ulp; pow takes its logarithm from a series in pairs, to 2^-63; large angles are
// reduced with 192 bits of 2/pi (Payne and Hanek 1983).
//
// frontend/library/special.cpp has an exp and a log of its own: they are written for both widths, give e^r - 1 and
// log(1 + f) beside the power of two, and are as accurate as erf and expm1 need. Here the last bit counts, and log2 and
// pow take the parts of the logarithm before they are rounded. Only coefficients would be shared.
//
// Edge cases: NaN propagates; infinities, zeros and domain errors give the results of C's functions. Subnormal
// arguments and results are handled if the device keeps them.
#include "real64.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "../support/error.h"

namespace weft::lib {

namespace {

using ir::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr double kLn2Hi = 6.93147180369123816490e-01;  // 33 bits: multiples up to 2^20 are exact
constexpr double kLn2Lo = 1.90821492927058770002e-10;
constexpr double kInvLn2 = 0x1.71547652b82fep+0;
constexpr double kPiOver2 = 0x1.921fb54442d18p+0, kPiOver2Lo = 0x1.1a62633145c07p-54;
constexpr double kPi = 0x1.921fb54442d18p+1, kPiLo = 0x1.1a62633145c07p-53;

Double with_sign_of(const Double& magnitude, const Double& x) {
  return from_bits(UInt64((bits(magnitude) & 0x7fffffffffffffffull) | sign_bit(x)));
}

// ---- Pairs: the unevaluated sum hi + lo

struct Pair {
  Double hi, lo;
};

/// The exact sum.
Pair sum(const Double& a, const Double& b) {
  Double s = a + b, part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}
/// The exact sum if abs(a) >= abs(b).
Pair quick_sum(const Double& a, const Double& b) {
  Double s = a + b;
  return {s, b - (s - a)};
}
/// The product to within 2^-105 of it; abs(a), abs(b) below 2^500.
Pair product(const Double& a, const Double& b) {
  auto high = [](const Double& x) { return from_bits(bits(x) & 0xfffffffff8000000ull); };
  Double p = a * b, ah = high(a), bh = high(b), al = a - ah, bl = b - bh;
  return {p, ((ah * bh - p) + (ah * bl + al * bh)) + al * bl};
}
Pair product(const Pair& a, const Pair& b) {
  Pair p = product(a.hi, b.hi);
  return quick_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

// ---- Exponentials

/// y * 2^n, rounded once, for n from -2200 to 2000, as nearest() gives it, and y near 1.
Double scaled(const Double& y, const UInt64& n) {
  UInt64 half = n >> 1;
  return y * power_of_two(half) * power_of_two(n - half);
}

/// e^(hi - lo) for abs(hi) <= ln(2) / 2 and a small lo.
Double exp_near_zero(const Double& hi, const Double& lo) {
  Double r = hi - lo, t = r * r;
  Double c = r - t * polynomial(t, std::array{1.66666666666666019037e-01, -2.77777777770155933842e-03,
                                              6.61375632143793436117e-05, -1.65339022054652515390e-06,
                                              4.13813679705723846039e-08});
  return 1.0 - ((lo - (r * c) / (2.0 - c)) - hi);
}

/// e^x * 2^extra.
Double exp_scaled(const Double& x, int extra) {
  Double in_range = limited(x, -800.0, 800.0);
  NearestDouble k = nearest(in_range * kInvLn2);
  return scaled(exp_near_zero(in_range - k.value * kLn2Hi, k.value * kLn2Lo),
                k.number + std::uint64_t(std::int64_t(extra)));
}

Double exp64(const Double& x) { return exp_scaled(x, 0); }

/// 2^(hi + lo).
Double exp2_of(const Double& hi, const Double& lo) {
  NearestDouble k = nearest(hi);
  Pair r = sum(hi - k.value, lo);
  Pair e = product(r, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56});
  return scaled(exp_near_zero(e.hi, -e.lo), k.number);
}

Double exp2_64(const Double& x) { return exp2_of(limited(x, -1200.0, 1200.0), 0); }

// x + x^3/3! + ... and 1 + x^2/2! + ...: for abs(x) <= 1 the first omitted term is below 2^-60 of the sum.
Double sinh_near_zero(const Double& x) {
  std::array<double, 9> a{};
  double factorial = 1;
  for (int k = 0; k < 9; ++k) a[std::size_t(k)] = 1 / (factorial *= (2 * k + 2) * (2 * k + 3));
  Double t = x * x;
  return x + x * t * polynomial(t, a);
}
Double cosh_near_zero(const Double& x) {
  std::array<double, 9> a{};
  double factorial = 1;
  for (int k = 0; k < 9; ++k) a[std::size_t(k)] = 1 / (factorial *= (2 * k + 1) * (2 * k + 2));
  Double t = x * x;
  return 1.0 + t * polynomial(t, a);
}

Double sinh64(const Double& x) {
  Double a = abs(x), half = exp_scaled(a, -1);
  Double y = select(a < 1.0, sinh_near_zero(a), half - 0.25 / half);
  return with_sign_of(y, x);
}
Double cosh64(const Double& x) {
  Double a = abs(x), half = exp_scaled(a, -1);
  return select(a < 1.0, cosh_near_zero(a), half + 0.25 / half);
}
Double tanh64(const Double& x) {
  Double a = abs(x);
  Double y = select(a < 1.0, sinh_near_zero(a) / cosh_near_zero(a), 1.0 - 1.0 / (exp_scaled(2.0 * a, -1) + 0.5));
  return with_sign_of(y, x);
}

// ---- Logarithms

/// x = m 2^k with sqrt(1/2) <= m < sqrt(2), for 0 < x < infinity.
struct Mantissa {
  Double m, k;
};
Mantissa mantissa(const Double& x) {
  Bool small = x < 0x1p-1022;
  UInt64 u = bits(select(small, x * 0x1p54, x)) + (0x3ff0000000000000ull - 0x3fe6a09e00000000ull);
  Int k = Int(u >> 52) - select(small, 1023 + 54, 1023);
  return {from_bits((u & 0xfffffffffffffull) + 0x3fe6a09e00000000ull), Double(k)};
}

/// The logarithm of x, or NaN or an infinity if x is not in its domain.
Double in_domain(const Double& x, const Double& y) {
  Double edge = select(x == 0.0, -kInfinity, select(x < 0.0, kNaN, x));
  return select((x > 0.0) & (x < kInfinity), y, edge);
}

// The parts of log(1 + f): log = f - (hfsq - s (hfsq + R)).
struct LogParts {
  Double f, hfsq, tail;  ///< tail = s (hfsq + R)
};
LogParts log_parts(const Double& m) {
  Double f = m - 1.0, s = f / (2.0 + f), z = s * s, hfsq = 0.5 * f * f;
  Double r = z * polynomial(z, std::array{6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                          2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                          1.479819860511658591e-01});
  return {f, hfsq, s * (hfsq + r)};
}

Double log64(const Double& x) {
  Mantissa a = mantissa(x);
  LogParts p = log_parts(a.m);
  return in_domain(x, a.k * kLn2Hi - ((p.hfsq - (p.tail + a.k * kLn2Lo)) - p.f));
}

Double log2_64(const Double& x) {
  // Multiplying by 1/ln(2) must not round the leading part, so both factors get 32 bits.
  constexpr double inv_hi = 1.44269504072144627571e+00, inv_lo = 1.67517131648865118353e-10;
  Mantissa a = mantissa(x);
  LogParts p = log_parts(a.m);
  Double hi = from_bits(bits(p.f - p.hfsq) & 0xffffffff00000000ull);
  Double lo = (p.f - hi) - p.hfsq + p.tail;
  Pair total = sum(a.k, hi * inv_hi);
  return in_domain(x, total.hi + (total.lo + ((lo + hi) * inv_lo + lo * inv_hi)));
}

/// log2(x) for 0 < x < infinity as a pair, to 2^-63: log2 = k + 2 / ln(2) (s + s^3/3 + s^5/5 + ...), with
/// s = (m - 1) / (m + 1), abs(s) < 0.172.
Pair log2_pair(const Double& x) {
  Mantissa a = mantissa(x);
  Double f = a.m - 1.0;
  Pair g = sum(a.m, 1.0);
  Double s_hi = f / g.hi;
  Pair back = product(s_hi, g.hi);
  Pair s{s_hi, (((f - back.hi) - back.lo) - s_hi * g.lo) / g.hi};
  Pair z = product(s, s);
  // The terms from s^4 on weigh less than 2^-12 and need no pair.
  std::array<double, 11> a5{};
  for (int k = 0; k < 11; ++k) a5[std::size_t(k)] = 1.0 / (5 + 2 * k);
  Pair t = product(z, {0x1.5555555555555p-2, 0x1.5555555555555p-56});
  t = quick_sum(t.hi, t.lo + z.hi * z.hi * polynomial(z.hi, a5));
  Pair u = product(s, t);
  Pair l = quick_sum(s.hi, u.hi);
  l = quick_sum(l.hi, l.lo + (s.lo + u.lo));
  Pair scaled_l = product(l, {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55});
  Pair total = sum(a.k, scaled_l.hi);
  return quick_sum(total.hi, total.lo + scaled_l.lo);
}

Double pow64(const Double& x, const Double& y) {
  Double a = abs(x);
  // Beyond 2^64 every power is 0, 1 or infinity.
  Double exponent = limited(y, -0x1p64, 0x1p64);
  Pair l = log2_pair(select((a > 0.0) & (a < kInfinity), a, 2.0));
  Pair z = product(exponent, l.hi);
  Double lo = z.lo + exponent * l.lo;
  Double power = exp2_of(limited(z.hi, -1200.0, 1200.0), select(abs(z.hi) < 1200.0, lo, 0.0));
  power = select(a == 0.0, select(y > 0.0, 0.0, kInfinity), power);
  power = select(a == kInfinity, select(y > 0.0, kInfinity, 0.0), power);

  Bool whole = trunc(y) == y;  // also for infinities
  Bool odd = whole & is_odd(y);
  Bool negative = (bits(x) >> 63) != 0;
  power = select(negative & odd, -power, power);
  power = select((x < 0.0) & (a < kInfinity) & !whole, kNaN, power);
  power = select(isnan(x) | isnan(y), kNaN, power);
  power = select((a == 1.0) & (abs(y) == kInfinity), 1.0, power);
  return select((x == 1.0) | (y == 0.0), 1.0, power);
}

// ---- Angles

/// x = n pi/2 + hi + lo, abs(hi + lo) <= pi/4.
struct Angle {
  Double hi, lo;
  UInt quadrant;  ///< n modulo 4
};

constexpr double kMediumAngle = 0x1p20;

/// For abs(x) up to kMediumAngle: pi/2 in three parts of 33 bits, whose multiples are exact, and a remainder.
Angle reduce_medium(const Double& x) {
  NearestDouble near = nearest(x * (1 / kPiOver2));
  Double n = near.value;
  Double first = x - n * 1.57079632673412561417e+00;
  Pair second = sum(first, -(n * 6.07710050630396597660e-11));
  Pair third = sum(second.hi, -(n * 2.02226624871116645580e-21));
  Double tail = (second.lo + third.lo) - n * 8.47842766036889956997e-32;
  Pair r = quick_sum(third.hi, tail);
  return {r.hi, r.lo, UInt(near.number) & 3u};
}

/// For x from kMediumAngle up. x = M 2^E with a 53-bit M; bits of 2/pi that make multiples of 8 of x * 2/pi do not
/// matter, and those beyond the next 192 contribute less than 2^-136. The product of M and that window modulo 2^192 is
/// the quadrant (2 bits) and the angle's fraction of pi/2 (190 bits).
Angle reduce_large(const Double& x) {
  // 2/pi in 32-bit words, after two words of zeros.
  constexpr std::uint32_t two_over_pi[39] = {
      0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
      0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
      0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
      0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
      0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};
  UInt64 u = bits(x);
  UInt at = UInt(u >> 52) - 1075u - 2u + 64u;  // first bit of the window
  UInt word = at >> 5u, shift = at & 31u;

  // The seven words from `word` on: the table is shifted by 32, 16, .. 1 words.
  std::vector<UInt> t(two_over_pi, two_over_pi + 39);
  for (std::size_t step = 32; step > 0; step /= 2) {
    Bool move = (word & unsigned(step)) != 0u;
    const std::size_t keep = std::min<std::size_t>(step + 6, 38);
    std::vector<UInt> next;
    for (std::size_t k = 0; k < keep; ++k) next.push_back(k + step < t.size() ? select(move, t[k + step], t[k]) : t[k]);
    t = std::move(next);
  }
  // Shifts by the remaining bits; the least significant word comes first.
  std::vector<UInt64> window;
  for (std::size_t k = 6; k-- > 0;) window.push_back(UInt64((t[k] << shift) | (t[k + 1] >> 1u >> (31u - shift))));

  UInt64 m = (u & 0xfffffffffffffull) | 0x10000000000000ull, m0 = m & 0xffffffffull, m1 = m >> 32;
  std::vector<UInt64> r;
  UInt64 carry = 0;
  for (std::size_t k = 0; k < 6; ++k) {
    UInt64 p = window[k] * m0 + carry;
    r.push_back(p & 0xffffffffull);
    carry = p >> 32;
  }
  carry = 0;
  for (std::size_t k = 0; k < 5; ++k) {
    UInt64 p = window[k] * m1 + r[k + 1] + carry;
    r[k + 1] = p & 0xffffffffull;
    carry = p >> 32;
  }

  UInt quadrant = UInt(r[5] >> 30);
  UInt64 high = (r[5] << 34) | (r[4] << 2) | (r[3] >> 30), low = (r[3] << 34) | (r[2] << 2) | (r[1] >> 30);
  // A fraction of one half or more belongs to the next quadrant, as a negative one.
  Bool upper = (high >> 63) != 0;
  quadrant = (quadrant + select(upper, UInt(1), UInt(0))) & 3u;
  UInt64 low_negated = ~low + 1;
  high = select(upper, ~high + select(low_negated == 0, UInt64(1), UInt64(0)), high);
  low = select(upper, low_negated, low);

  Pair f = quick_sum(Double(UInt(high >> 32)) * 0x1p-32, Double(UInt(high)) * 0x1p-64);
  Pair g = quick_sum(Double(UInt(low >> 32)) * 0x1p-96, Double(UInt(low)) * 0x1p-128);
  Pair fraction = quick_sum(f.hi, f.lo);
  Pair rest = sum(fraction.lo, g.hi);
  fraction = quick_sum(fraction.hi, rest.hi);
  fraction.lo += rest.lo + g.lo;
  Pair y = product(fraction, {kPiOver2, kPiOver2Lo});
  return {select(upper, -y.hi, y.hi), select(upper, -y.lo, y.lo), quadrant};
}

Angle reduce(const Double& x) {
  Angle a = reduce_medium(x);
  If (abs(x) > kMediumAngle) {
    Angle large = reduce_large(abs(x));
    Bool negative = x < 0.0;
    a.hi = select(negative, -large.hi, large.hi);
    a.lo = select(negative, -large.lo, large.lo);
    a.quadrant = select(negative, UInt(0) - large.quadrant, large.quadrant) & 3u;
  }
  return a;
}

Double sin_near_zero(const Double& x, const Double& tail) {
  Double z = x * x, v = z * x;
  Double r =
      polynomial(z, std::array{8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                               -2.50507602534068634195e-08, 1.58969099521155010221e-10});
  return x - ((z * (0.5 * tail - v * r) - tail) - v * -1.66666666666666324348e-01);
}
Double cos_near_zero(const Double& x, const Double& tail) {
  Double z = x * x, half = 0.5 * z, w = 1.0 - half;
  Double r = z * polynomial(z, std::array{4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                          2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                          2.08757232129817482790e-09, -1.13596475577881948265e-11});
  return w + (((1.0 - w) - half) + (z * r - x * tail));
}

Double sin_of(const Angle& a, const UInt& quadrant) {
  Double y = select((quadrant & 1u) == 0u, sin_near_zero(a.hi, a.lo), cos_near_zero(a.hi, a.lo));
  return select((quadrant & 2u) == 0u, y, -y);
}

Double sin64(const Double& x) {
  Angle a = reduce(x);
  // sin(-0) is -0, which the reduction loses.
  return select(abs(x) < 0x1p-30, x, select(abs(x) < kInfinity, sin_of(a, a.quadrant), kNaN));
}
Double cos64(const Double& x) {
  Angle a = reduce(x);
  return select(abs(x) < kInfinity, sin_of(a, a.quadrant + 1u), kNaN);
}
Double tan64(const Double& x) {
  Angle a = reduce(x);
  Double s = sin_near_zero(a.hi, a.lo), c = cos_near_zero(a.hi, a.lo);
  Bool odd = (a.quadrant & 1u) != 0u;
  Double t = select(odd, -c, s) / select(odd, s, c);
  return select(abs(x) < 0x1p-30, x, select(abs(x) < kInfinity, t, kNaN));
}

// ---- Inverse functions of angles

Double atan64(const Double& x) {
  // atan(a) = atan(c) + atan((a - c) / (1 + a c)) for the nearest of c = 0, 1/2, 1, 3/2, infinity.
  Double a = abs(x);
  auto by_interval = [&](const Double& zero, const Double& half, const Double& one, const Double& three_halves,
                         const Double& infinity) {
    Double low = select(a < 0.4375, zero, select(a < 0.6875, half, one));
    return select(a < 1.1875, low, select(a < 2.4375, three_halves, infinity));
  };
  Double numerator = by_interval(a, 2.0 * a - 1.0, a - 1.0, a - 1.5, -1.0);
  Double denominator = by_interval(1.0, 2.0 + a, a + 1.0, 1.0 + 1.5 * a, a);
  Double t = numerator / denominator, z = t * t;
  Double tail =
      t * z *
      polynomial(z, std::array{3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01,
                               -1.11111104054623557880e-01, 9.09088713343650656196e-02, -7.69187620504482999495e-02,
                               6.66107313738753120669e-02, -5.83357013379057348645e-02, 4.97687799461593236017e-02,
                               -3.65315727442169155270e-02, 1.62858201153657823623e-02});
  Double hi = by_interval(0.0, 4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01,
                          1.57079632679489655800e+00);
  Double lo = by_interval(0.0, 2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17,
                          6.12323399573676603587e-17);
  Double y = hi - ((tail - lo) - t);
  return select(isnan(x), x, with_sign_of(y, x));
}

Double atan2_64(const Double& y, const Double& x) {
  Double ay = abs(y), ax = abs(x);
  // Both infinite: an odd multiple of pi/4. Both zero: 0.
  Bool both_infinite = (ay == kInfinity) & (ax == kInfinity);
  Double ratio = select(both_infinite, 1.0, select(ay == 0.0, 0.0, ay / ax));
  Double a = atan64(ratio);
  Bool left = (bits(x) >> 63) != 0;
  Double angle = select(left, kPi - (a - kPiLo), a);
  return select(isnan(x) | isnan(y), kNaN, with_sign_of(angle, y));
}

/// (asin(s) - s) / s as a function of t = s^2, for s <= 1/2.
Double asin_ratio(const Double& t) {
  Double p = t * polynomial(t, std::array{1.66666666666666657415e-01, -3.25565818622400915405e-01,
                                          2.01212532134862925881e-01, -4.00555345006794114027e-02,
                                          7.91534994289814532176e-04, 3.47933107596021167570e-05});
  return p / polynomial(t, std::array{1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00,
                                      -6.88283971605453293030e-01, 7.70381505559019352791e-02});
}

/// From 1/2 on, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)), with the root as a pair.
struct HalfAngle {
  Double t, root, hi, lo, ratio;
};
HalfAngle half_angle(const Double& a) {
  Double t = (1.0 - a) * 0.5, root = sqrt(t);
  Double hi = from_bits(bits(root) & 0xffffffff00000000ull);
  Double lo = select(root > 0.0, (t - hi * hi) / (root + hi), 0.0);
  return {t, root, hi, lo, asin_ratio(t)};
}

Double asin64(const Double& x) {
  Double a = abs(x);
  HalfAngle h = half_angle(a);
  Double p = 2.0 * h.root * h.ratio - (kPiOver2Lo - 2.0 * h.lo), q = 0.5 * kPiOver2 - 2.0 * h.hi;
  Double y = select(a < 0.5, a + a * asin_ratio(a * a), 0.5 * kPiOver2 - (p - q));
  return select(a <= 1.0, with_sign_of(y, x), kNaN);
}
Double acos64(const Double& x) {
  Double a = abs(x);
  HalfAngle h = half_angle(a);
  Double middle = kPiOver2 - (x - (kPiOver2Lo - x * asin_ratio(x * x)));
  Double w = h.ratio * h.root;
  Double outer = select(x < 0.0, kPi - 2.0 * (h.root + (w - kPiOver2Lo)), 2.0 * (h.hi + (w + h.lo)));
  return select(a <= 1.0, select(a < 0.5, middle, outer), kNaN);
}

}  // namespace

Double real64(Op op, const Double& x) {
  switch (op) {
    case Op::exp: return exp64(x);
    case Op::exp2: return exp2_64(x);
    case Op::log: return log64(x);
    case Op::log2: return log2_64(x);
    case Op::sin: return sin64(x);
    case Op::cos: return cos64(x);
    case Op::tan: return tan64(x);
    case Op::asin: return asin64(x);
    case Op::acos: return acos64(x);
    case Op::atan: return atan64(x);
    case Op::sinh: return sinh64(x);
    case Op::cosh: return cosh64(x);
    case Op::tanh: return tanh64(x);
    default: internal_error("an operation that has no function of its own in float64");
  }
}

Double real64(Op op, const Double& x, const Double& y) {
  switch (op) {
    case Op::pow: return pow64(x, y);
    case Op::atan2: return atan2_64(x, y);
    default: internal_error("an operation that has no function of its own in float64");
  }
}

}  // namespace weft::lib
