// The float32 functions that a processor lacks, written in the kernel language.
//
// Strategy: no tables and no branches but one, so that many threads compute them side by side in the lanes of vectors.
// The argument is reduced to a small interval, on which a polynomial has a relative error below 2^-27 (Remez's
// algorithm, with coefficients rounded to float32), and the result is assembled with few roundings. Reductions that
// float32 would round are made in float64: of angles (Cody and Waite 1980; Payne and Hanek 1983), and of pow. tan,
// atan, atan2 and pow are computed in float64 as a whole and rounded once.
//
// Edge cases: NaN propagates; infinities, zeros and domain errors give the results of C's functions. Subnormal
// arguments and results are handled if the device keeps them.
#include "real32.h"

#include <limits>

#include "../support/error.h"

namespace weft::lib {

namespace {

using ir::Op;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kPiOver2 = 0x1.921fb6p+0f, kPiOver2Lo = -0x1.777a5cp-25f;
constexpr float kPi = 0x1.921fb6p+1f, kPiLo = -0x1.777a5cp-24f;

// ---- Exponentials

/// y 2^n.
struct Scaled {
  Float y;
  Int n;
};
/// Rounds once, for n from -252 to 254 and y near 1.
Float value(const Scaled& s) {
  const Int half = s.n >> 1;
  return s.y * power_of_two(half) * power_of_two(s.n - half);
}

/// e^x, for abs(x) <= 105.
Scaled exp_parts(const Float& x) {
  const NearestFloat k = nearest(x * 0x1.715476p+0f);
  // The first part of ln(2) has 10 bits, so that its product is exact.
  const Float r = (x - k.value * 0.693359375f) - k.value * -2.12194440e-4f;
  const Float q = polynomial(r, std::array{0.49999994f, 0.166665196f, 0.0416684039f, 0.00836889911f, 0.00138142263f});
  return {1.0f + (r + r * r * q), k.number};
}

Float exp32(const Float& x) { return value(exp_parts(limited(x, -104.0f, 89.0f))); }

Float exp2_32(const Float& any) {
  const Float x = limited(any, -151.0f, 129.0f);
  const NearestFloat k = nearest(x);
  const Float r = x - k.value;
  // The first coefficient is ln(2) in two parts.
  const Float q = polynomial(
      r, std::array{-0x1.05c610p-29f, 0.240226522f, 0.0555031039f, 0.00961769279f, 0.00134066446f, 0.000155946662f});
  return value({1.0f + (r * 0x1.62e430p-1f + r * q), k.number});
}

/// e^x / 2 for x >= 0.
Float half_exp(const Float& x) {
  Scaled s = exp_parts(select(x > 90.0f, 90.0f, x));
  return value({s.y, s.n - 1});
}

Float sinh32(const Float& x) {
  const Float a = abs(x), z = a * a, half = half_exp(a);
  const Float small =
      a + a * z * polynomial(z, std::array{0.166666672f, 0.0083333496f, 0.000198361595f, 2.81695134e-06f});
  return flip_sign(select(a < 1.0f, small, half - 0.25f / half), sign_bit(x));
}

Float cosh32(const Float& x) {
  const Float half = half_exp(abs(x));
  return half + 0.25f / half;
}

Float tanh32(const Float& x) {
  const Float a = abs(x), z = a * a;
  const Float small = a + a * z *
                              polynomial(z, std::array{-0.333333313f, 0.133332059f, -0.0539467633f, 0.0217007045f,
                                                       -0.00817740057f, 0.00214296393f});
  // From 9.02 on the result is 1.
  const Scaled e = exp_parts(select(a > 10.0f, 20.0f, a + a));
  const Float large = 1.0f - 2.0f / (e.y * power_of_two(e.n) + 1.0f);
  return flip_sign(select(a < 0.625f, small, large), sign_bit(x));
}

// ---- Logarithms

/// x = (1 + f) 2^k with sqrt(1/2) <= 1 + f < sqrt(2), for 0 < x < infinity.
struct Mantissa {
  Float f, k;
};
Mantissa mantissa(const Float& x) {
  constexpr std::uint32_t sqrt_half = 0x3f3504f3u;
  const Bool small = x < 0x1p-126f;
  const UInt u = bits(select(small, x * 0x1p24f, x)) + (0x3f800000u - sqrt_half);
  const Int k = bitcast<std::int32_t>(u >> 23u) - select(small, Int(127 + 24), Int(127));
  return {from_bits((u & 0x7fffffu) + sqrt_half) - 1.0f, Float(k)};
}

/// Replaces what was computed of an x outside of (0, infinity).
Float in_domain(const Float& x, const Float& y) {
  const Float finite = select(x < kInfinity, y, x);  // a NaN remains one
  return select(x < 0.0f, kNaN, select(x == 0.0f, -kInfinity, finite));
}

/// log(1 + f) - f + f^2 / 2.
Float log_tail(const Float& f) {
  return f * f * f *
         polynomial(f, std::array{0.333333135f, -0.250000089f, 0.200021192f, -0.166679963f, 0.142195523f, -0.1240559f,
                                  0.118881628f, -0.116756506f, 0.0674663782f});
}

Float log32(const Float& x) {
  const Mantissa a = mantissa(x);
  const Float small = (log_tail(a.f) + a.k * -2.12194440e-4f) - 0.5f * a.f * a.f;
  return in_domain(x, (a.f + small) + a.k * 0.693359375f);
}

Float log2_32(const Float& x) {
  constexpr float rest = 0x1.c551dap-2f;  // 1 / ln(2) - 1: the product with 1 is exact
  const Mantissa a = mantissa(x);
  const Float small = log_tail(a.f) - 0.5f * a.f * a.f;
  return in_domain(x, (((small * rest + a.f * rest) + small) + a.f) + a.k);
}

// log2(1 + f) = 2 / ln(2) (s + s^3/3 + ...) with s = f / (2 + f), to 2^-37 of it, so that the product with y is known
// to 2^-30. 2^r is known to 2^-32 of it.
Float pow32(const Float& x, const Float& y) {
  const Float a = abs(x);
  const Mantissa m = mantissa(a);
  const Double f = Double(m.f), s = f / (f + 2.0), z = s * s;
  const Double l =
      Double(m.k) + s * polynomial(z, std::array{2.8853900817900864, 0.96179667334179753, 0.57708358496515133,
                                                 0.41167271899777669, 0.34073010658534336});
  const Double log2 = select(a == 0.0f, Double(-double(kInfinity)), select(a < kInfinity, l, Double(a)));
  const Double t = limited(Double(y) * log2, -200.0, 200.0);
  const NearestDouble k = nearest(t);
  const Double r = t - k.value;
  const Double e = 1.0 + r * polynomial(r, std::array{0.6931471838172466, 0.24022650920789146, 0.055504003744554914,
                                                      0.0096180569185245167, 0.0013341951584007652,
                                                      0.00015461367874543066, 1.335971204401815e-05});
  Float power = Float(e * power_of_two(k.number));

  const Bool whole = trunc(y) == y;  // also for infinities
  power = flip_sign(power, select(is_odd(y) & whole, sign_bit(x), UInt(0)));
  power = select((x < 0.0f) & (a < kInfinity) & !whole, kNaN, power);
  return select((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (abs(y) == kInfinity)), 1.0f, power);
}

// ---- Angles

/// a = n pi/2 + r, abs(r) <= pi/4.
struct Angle {
  Double r;
  UInt quadrant;  ///< n, of which the two lowest bits count
};

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
/// To here, the product of n and the first part of pi/2, of 33 bits, is exact.
constexpr float kMediumAngle = 0x1p20f;

Angle reduce_medium(const Double& a) {
  const NearestDouble n = nearest(a * kTwoOverPi);
  return {(a - n.value * 0x1.921fb544p+0) - n.value * 0x1.0b4611a626331p-34, UInt(n.number)};
}

/// For any finite a. 2/pi in seven parts of 28 bits, so that products with the 24 bits of a float32 are exact, and so
/// is what they leave modulo 4. Their sum is kept within 1/2: it is exact as long as its terms have bits to lose there,
/// and then rounded relative to itself. What lies beyond the parts contributes less than 2^-68.
Angle reduce_large(const Double& a) {
  Double sum = 0, n = 0;
  for (double part :
       {0xa2f9836p-28, 0xe4e4415p-56, 0x29fc275p-84, 0x7d1f534p-112, 0xddc0db6p-140, 0x295993cp-168, 0x439041fp-196}) {
    const Double product = a * part;
    sum = sum + (product - 4.0 * rint(product * 0.25));
    const Double whole = rint(sum);
    sum = sum - whole;
    n = n + whole;
  }
  return {sum * 0x1.921fb54442d18p+0, UInt(nearest(n).number)};
}

/// Reduces an angle a >= 0; of an infinity or NaN, r is NaN.
Angle reduce(const Float& a) {
  const Double x = Double(a);
  Angle angle = reduce_medium(x);
  If (a > kMediumAngle) {
    const Angle large = reduce_large(x);
    angle.r = large.r;
    angle.quadrant = large.quadrant;
  }
  return angle;
}

Float sin_of(const Angle& angle, const UInt& quadrant) {
  const Float r = Float(angle.r), z = r * r;
  const Float sine =
      r + r * z * polynomial(z, std::array{-0.166666672f, 0.00833332911f, -0.000198393114f, 2.71811791e-06f});
  const Float cosine =
      1.0f - (0.5f * z - z * z * polynomial(z, std::array{0.0416666456f, -0.00138873165f, 2.44331186e-05f}));
  return flip_sign(select((quadrant & 1u) == 0u, sine, cosine), (quadrant & 2u) << 30u);
}

Float sin32(const Float& x) {
  const Angle a = reduce(abs(x));
  return flip_sign(sin_of(a, a.quadrant), sign_bit(x));
}
Float cos32(const Float& x) {
  const Angle a = reduce(abs(x));
  return sin_of(a, a.quadrant + 1u);
}
Float tan32(const Float& x) {
  const Angle a = reduce(abs(x));
  const Double r = a.r, z = r * r;
  const Double sine = r + r * z *
                              polynomial(z, std::array{-0.16666666640786668, 0.0083333293036382226,
                                                       -0.00019839311880065613, 2.7181178935178377e-06});
  const Double cosine = 1.0 - (0.5 * z - z * z *
                                             polynomial(z, std::array{0.041666666619473179, -0.0013888883498519404,
                                                                      2.479945974479542e-05, -2.7205720360040182e-07}));
  const Bool odd = (a.quadrant & 1u) != 0u;
  return flip_sign(Float(select(odd, -cosine, sine) / select(odd, sine, cosine)), sign_bit(x));
}

// ---- Inverse functions of angles

/// asin(s) = hi + lo, where hi = s, for s = x below 1/2. From there on asin(x) = pi/2 - 2 asin(s), s = sqrt((1 - x) /
/// 2).
struct ArcSine {
  Bool large;
  Float hi, lo;
};
ArcSine arc_sine(const Float& a) {
  const Bool large = a > 0.5f;
  const Float z = select(large, (1.0f - a) * 0.5f, a * a), s = select(large, sqrt(z), a);
  return {large, s,
          s * z * polynomial(z, std::array{0.166667521f, 0.0749529749f, 0.0454703718f, 0.0241795313f, 0.0421662889f})};
}

Float asin32(const Float& x) {
  const ArcSine s = arc_sine(abs(x));
  // The difference as a pair, because its error counts twice where the result is below 1 and the difference is not.
  const Float hi = kPiOver2 - 2.0f * s.hi, rest = (kPiOver2 - hi) - 2.0f * s.hi;
  const Float large = hi - (2.0f * s.lo - (kPiOver2Lo + rest));
  return flip_sign(select(s.large, large, s.hi + s.lo), sign_bit(x));
}
Float acos32(const Float& x) {
  const ArcSine s = arc_sine(abs(x));
  const Float twice = 2.0f * (s.hi + s.lo), above = kPi - (twice - kPiLo);
  const Float signed_lo = flip_sign(s.lo, sign_bit(x));
  const Float middle = kPiOver2 - (x - (kPiOver2Lo - signed_lo));
  return select(s.large, select(x < 0.0f, above, twice), middle);
}

/// The angle of the point (x, y) for x, y >= 0 that are not both 0 or infinite. With t = y / x, atan(t) is
/// c + atan((t - tan c) / (1 + t tan c)) for the nearest c of 0, pi/4, pi/2, to 2^-35.
Double angle_of(const Double& y, const Double& x) {
  const Bool middle = y > x * 0x1.a827999fcef32p-2, steep = y > x * 0x1.3504f333f9de6p+1;
  const Double c = select(steep, Double(0x1.921fb54442d18p+0), select(middle, Double(0x1.921fb54442d18p-1), 0.0));
  const Double t = select(steep, -x, select(middle, y - x, y)) / select(steep, y, select(middle, y + x, x)), z = t * t;
  return c + (t + t * z *
                      polynomial(z, std::array{-0.33333332498680612, 0.19999903864999111, -0.14282006456428664,
                                               0.11044674713549477, -0.084761706533062739, 0.047438363868576368}));
}

Float atan32(const Float& x) { return flip_sign(Float(angle_of(Double(abs(x)), 1.0)), sign_bit(x)); }

Float atan2_32(const Float& y, const Float& x) {
  const Float ay = abs(y), ax = abs(x);
  // Two infinities are the diagonal, and two zeros the axis.
  const Bool diagonal = (ay == kInfinity) & (ax == kInfinity), axis = ay == 0.0f;
  const Double up = Double(select(diagonal, 1.0f, ay)), right = Double(select(diagonal | axis, 1.0f, ax));
  const Double angle = angle_of(up, right);
  const Float result = Float(select(sign_bit(x) != 0u, 0x1.921fb54442d18p+1 - angle, angle));
  return select(isnan(x) | isnan(y), kNaN, flip_sign(result, sign_bit(y)));
}

}  // namespace

Float real32(Op op, const Float& x) {
  switch (op) {
    case Op::exp: return exp32(x);
    case Op::exp2: return exp2_32(x);
    case Op::log: return log32(x);
    case Op::log2: return log2_32(x);
    case Op::sin: return sin32(x);
    case Op::cos: return cos32(x);
    case Op::tan: return tan32(x);
    case Op::asin: return asin32(x);
    case Op::acos: return acos32(x);
    case Op::atan: return atan32(x);
    case Op::sinh: return sinh32(x);
    case Op::cosh: return cosh32(x);
    case Op::tanh: return tanh32(x);
    default: internal_error("an operation that has no function of its own in float32");
  }
}

Float real32(Op op, const Float& x, const Float& y) {
  switch (op) {
    case Op::pow: return pow32(x, y);
    case Op::atan2: return atan2_32(x, y);
    default: internal_error("an operation that has no function of its own in float32");
  }
}

}  // namespace weft::lib
