// Every pure operation on every type, against closed forms and against arithmetic done another way.
#include "../../../frontend/ir/evaluate.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../../../frontend/types/half.h"

namespace weft::ir {
namespace {

using Bits = std::uint64_t;
using Wide = __int128;

constexpr Type kInts[] = {Type::i8, Type::i16, Type::i32, Type::i64, Type::u8, Type::u16, Type::u32, Type::u64};
constexpr Type kFloats[] = {Type::f16, Type::f32, Type::f64};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
constexpr double kSignalling = std::numeric_limits<double>::signaling_NaN();

std::vector<Type> all_types() {
  std::vector<Type> types;
  for (int t = 1; t < kTypeCount; ++t) types.push_back(static_cast<Type>(t));
  return types;
}

Bits run(Op op, Type operands, Type result, std::initializer_list<Bits> args) {
  const Bits bits = evaluate(op, operands, result, std::span(args.begin(), args.size()));
  EXPECT_EQ(bits & ~mask(result), 0u) << name(result) << ": bits beyond the type";
  return bits;
}
Bits run(Op op, Type type, std::initializer_list<Bits> args) { return run(op, type, type, args); }

/// The integer that the bits stand for.
Wide value_of(Type type, Bits bits) {
  Wide value = bits & mask(type);
  if (is_signed(type) && (bits >> (ir::bits(type) - 1) & 1)) value -= static_cast<Wide>(1) << ir::bits(type);
  return value;
}
Bits wrapped(Type type, Wide value) { return static_cast<Bits>(value) & mask(type); }
Wide least(Type type) { return is_signed(type) ? -(static_cast<Wide>(1) << (bits(type) - 1)) : 0; }
Wide greatest(Type type) { return (static_cast<Wide>(1) << (bits(type) - (is_signed(type) ? 1 : 0))) - 1; }

std::vector<Bits> int_samples(Type type) {
  std::vector<Bits> samples;
  const Wide edges[] = {0,
                        1,
                        2,
                        3,
                        5,
                        7,
                        -1,
                        -2,
                        -3,
                        -7,
                        least(type),
                        least(type) + 1,
                        greatest(type),
                        greatest(type) - 1,
                        greatest(type) / 2};
  for (const Wide edge : edges) samples.push_back(wrapped(type, edge));
  std::mt19937_64 random(11);
  for (int i = 0; i < 20; ++i) samples.push_back(random() & mask(type));
  return samples;
}

/// Bits of the nearest value of a floating type.
Bits f(Type type, double value) { return from_double(type, value); }
double as_double(Type type, Bits bits) {
  if (type == Type::f16) return detail::half_value(static_cast<std::uint16_t>(bits));
  if (type == Type::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}
double greatest_float(Type type) {
  return type == Type::f16 ? 65504.0 : type == Type::f32 ? std::numeric_limits<float>::max() : 1.7976931348623157e308;
}
double least_float(Type type) { return std::ldexp(1.0, type == Type::f16 ? -24 : type == Type::f32 ? -149 : -1074); }

std::vector<Bits> float_samples(Type type) {
  std::vector<Bits> samples;
  for (const double value : {0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 0.1, 7.25, 1000.0, 2047.0, greatest_float(type), kInfinity,
                             least_float(type), 3 * least_float(type), 6.1e-5}) {
    samples.push_back(f(type, value));
    samples.push_back(f(type, -value));
  }
  samples.push_back(f(type, kNan));
  std::mt19937_64 random(13);
  for (int i = 0; i < 40; ++i) samples.push_back(random() & mask(type));
  return samples;
}

/// Equal bits, or both NaN.
void expect_same(Type type, Bits actual, Bits expected, const std::string& what) {
  const bool both_nan = is_float(type) && std::isnan(as_double(type, actual)) && std::isnan(as_double(type, expected));
  if (!both_nan) {
    EXPECT_EQ(actual, expected) << what << " on " << name(type) << ": "
                                << (is_float(type) ? std::to_string(as_double(type, actual)) : "");
  }
}

// ---- integers ----

TEST(Evaluate, IntegerArithmeticWraps) {
  for (const Type t : kInts) {
    for (const Bits a : int_samples(t)) {
      const Wide x = value_of(t, a);
      EXPECT_EQ(run(Op::neg, t, {a}), wrapped(t, -x));
      EXPECT_EQ(run(Op::abs, t, {a}), wrapped(t, x < 0 ? -x : x));
      EXPECT_EQ(run(Op::bit_not, t, {a}), wrapped(t, -x - 1));
      Bits set = 0;
      for (unsigned k = 0; k < unsigned(bits(t)); ++k) set += a >> k & 1;
      EXPECT_EQ(run(Op::popcount, t, {a}), set);
      for (const Bits b : int_samples(t)) {
        const Wide y = value_of(t, b);
        EXPECT_EQ(run(Op::add, t, {a, b}), wrapped(t, x + y));
        EXPECT_EQ(run(Op::sub, t, {a, b}), wrapped(t, x - y));
        // The low 64 bits of a product depend on the operands' low 64 bits alone.
        EXPECT_EQ(run(Op::mul, t, {a, b}), wrapped(t, static_cast<Wide>(static_cast<Bits>(x) * static_cast<Bits>(y))));
        EXPECT_EQ(run(Op::div, t, {a, b}), wrapped(t, y == 0 ? x : x / y)) << name(t);
        EXPECT_EQ(run(Op::rem, t, {a, b}), wrapped(t, y == 0 ? 0 : x % y)) << name(t);
        EXPECT_EQ(run(Op::min, t, {a, b}), wrapped(t, std::min(x, y)));
        EXPECT_EQ(run(Op::max, t, {a, b}), wrapped(t, std::max(x, y)));
        EXPECT_EQ(run(Op::eq, t, Type::b1, {a, b}), Bits(x == y));
        EXPECT_EQ(run(Op::ne, t, Type::b1, {a, b}), Bits(x != y));
        EXPECT_EQ(run(Op::lt, t, Type::b1, {a, b}), Bits(x < y));
        EXPECT_EQ(run(Op::le, t, Type::b1, {a, b}), Bits(x <= y));
        EXPECT_EQ(run(Op::bit_and, t, {a, b}), a & b);
        EXPECT_EQ(run(Op::bit_or, t, {a, b}), a | b);
        EXPECT_EQ(run(Op::bit_xor, t, {a, b}), a ^ b);
        const Bits amount = b & static_cast<Bits>(bits(t) - 1);
        EXPECT_EQ(run(Op::shl, t, {a, b}), (a << amount) & mask(t));
        // The shift rounds toward minus infinity, as an arithmetic shift does.
        const Wide unit = static_cast<Wide>(1) << amount;
        EXPECT_EQ(run(Op::shr, t, {a, b}), wrapped(t, (x - ((x % unit + unit) % unit)) / unit)) << name(t);
        if (bits(t) == 32) {
          EXPECT_EQ(run(Op::mul_hi, t, {a, b}), wrapped(t, (x * y) >> 32));
        } else {
          EXPECT_EQ(evaluator(Op::mul_hi, t, t), nullptr);
        }
      }
    }
  }
}

TEST(Evaluate, IntegerEdgesByHand) {
  const Bits min32 = 0x80000000, minus1 = 0xffffffff;
  EXPECT_EQ(run(Op::div, Type::i32, {min32, minus1}), min32);
  EXPECT_EQ(run(Op::rem, Type::i32, {min32, minus1}), 0u);
  EXPECT_EQ(run(Op::div, Type::i32, {7, 0}), 7u);
  EXPECT_EQ(run(Op::rem, Type::i32, {7, 0}), 0u);
  EXPECT_EQ(run(Op::div, Type::i64, {1ull << 63, ~0ull}), 1ull << 63);
  EXPECT_EQ(run(Op::rem, Type::i64, {1ull << 63, ~0ull}), 0u);
  EXPECT_EQ(run(Op::div, Type::i8, {0x80, 0xff}), 0x80u);
  EXPECT_EQ(run(Op::abs, Type::i32, {min32}), min32);
  EXPECT_EQ(run(Op::neg, Type::i32, {min32}), min32);
  EXPECT_EQ(run(Op::rem, Type::i32, {0xfffffff9, 4}), 0xfffffffdu);  // -7 % 4 = -3
  EXPECT_EQ(run(Op::rem, Type::i32, {7, 0xfffffffc}), 3u);           // 7 % -4 = 3
  EXPECT_EQ(run(Op::shl, Type::u32, {1, 33}), 2u);
  EXPECT_EQ(run(Op::shl, Type::i8, {1, 0xff}), 0x80u);  // by -1, which is 7 modulo 8
  EXPECT_EQ(run(Op::shr, Type::i32, {min32, 31}), minus1);
  EXPECT_EQ(run(Op::shr, Type::u32, {min32, 31}), 1u);
  EXPECT_EQ(run(Op::mul, Type::u16, {0xffff, 0xffff}), 1u);
  EXPECT_EQ(run(Op::mul_hi, Type::i32, {minus1, minus1}), 0u);
  EXPECT_EQ(run(Op::mul_hi, Type::u32, {minus1, minus1}), 0xfffffffeu);
}

TEST(Evaluate, Booleans) {
  for (const Bits a : {0, 1}) {
    EXPECT_EQ(run(Op::bit_not, Type::b1, {a}), 1 - a);
    for (const Bits b : {0, 1}) {
      EXPECT_EQ(run(Op::bit_and, Type::b1, {a, b}), a & b);
      EXPECT_EQ(run(Op::bit_or, Type::b1, {a, b}), a | b);
      EXPECT_EQ(run(Op::bit_xor, Type::b1, {a, b}), a ^ b);
      EXPECT_EQ(run(Op::eq, Type::b1, {a, b}), Bits(a == b));
      EXPECT_EQ(run(Op::ne, Type::b1, {a, b}), Bits(a != b));
    }
  }
}

// ---- floats ----

TEST(Evaluate, RoundedArithmetic) {
  for (const Type t : kFloats) {
    for (const Bits a : float_samples(t)) {
      const double x = as_double(t, a);
      EXPECT_EQ(run(Op::neg, t, {a}), a ^ (1ull << (bits(t) - 1)));
      EXPECT_EQ(run(Op::detach, t, {a}), a);
      EXPECT_EQ(run(Op::abs, t, {a}), a & (mask(t) >> 1));
      EXPECT_EQ(run(Op::is_nan, t, Type::b1, {a}), Bits(std::isnan(x)));
      EXPECT_EQ(run(Op::is_inf, t, Type::b1, {a}), Bits(std::isinf(x)));
      expect_same(t, run(Op::floor, t, {a}), f(t, std::floor(x)), "floor");
      expect_same(t, run(Op::ceil, t, {a}), f(t, std::ceil(x)), "ceil");
      expect_same(t, run(Op::trunc, t, {a}), f(t, std::trunc(x)), "trunc");
      expect_same(t, run(Op::round_even, t, {a}), f(t, std::nearbyint(x)), "round_even");
      // The root in double has more than twice the digits of a float plus two, so rounding twice does no harm.
      expect_same(t, run(Op::sqrt, t, {a}), f(t, std::sqrt(x)), "sqrt");
      for (const Bits b : float_samples(t)) {
        const double y = as_double(t, b);
        expect_same(t, run(Op::add, t, {a, b}), f(t, x + y), "add");
        expect_same(t, run(Op::sub, t, {a, b}), f(t, x - y), "sub");
        expect_same(t, run(Op::mul, t, {a, b}), f(t, x * y), "mul");
        expect_same(t, run(Op::div, t, {a, b}), f(t, x / y), "div");
        EXPECT_EQ(run(Op::eq, t, Type::b1, {a, b}), Bits(x == y));
        EXPECT_EQ(run(Op::ne, t, Type::b1, {a, b}), Bits(x != y));
        EXPECT_EQ(run(Op::lt, t, Type::b1, {a, b}), Bits(x < y));
        EXPECT_EQ(run(Op::le, t, Type::b1, {a, b}), Bits(x <= y));
        if (x != 0 || y != 0) {
          expect_same(t, run(Op::min, t, {a, b}), f(t, std::fmin(x, y)), "min");
          expect_same(t, run(Op::max, t, {a, b}), f(t, std::fmax(x, y)), "max");
        } else {
          EXPECT_EQ(as_double(t, run(Op::min, t, {a, b})), 0.0);
          EXPECT_EQ(as_double(t, run(Op::max, t, {a, b})), 0.0);
        }
      }
    }
  }
}

TEST(Evaluate, NanLosesAgainstNumbers) {
  for (const Type t : kFloats) {
    const Bits nan = f(t, kNan), two = f(t, 2), inf = f(t, kInfinity);
    const Bits negative_nan = nan | 1ull << (bits(t) - 1) | 1;
    for (const Op op : {Op::min, Op::max}) {
      EXPECT_EQ(run(op, t, {nan, two}), two);
      EXPECT_EQ(run(op, t, {two, negative_nan}), two);
      EXPECT_EQ(run(op, t, {inf, nan}), inf);
      EXPECT_EQ(run(op, t, {negative_nan, nan}), nan);
    }
    for (const Op op : {Op::eq, Op::lt, Op::le}) EXPECT_EQ(run(op, t, Type::b1, {nan, nan}), 0u);
    EXPECT_EQ(run(Op::ne, t, Type::b1, {nan, nan}), 1u);
    // Arithmetic makes one and the same NaN on every host.
    EXPECT_EQ(run(Op::sub, t, {inf, inf}), nan);
    EXPECT_EQ(run(Op::add, t, {negative_nan, two}), nan);
    EXPECT_EQ(run(Op::sqrt, t, {f(t, -1)}), nan);
    EXPECT_EQ(run(Op::div, t, {0, 0}), nan);
  }
}

TEST(Evaluate, RemainderIsComputedInSteps) {
  for (const Bits a : float_samples(Type::f32)) {
    for (const Bits b : float_samples(Type::f32)) {
      const auto x = static_cast<float>(as_double(Type::f32, a)), y = static_cast<float>(as_double(Type::f32, b));
      const auto quotient = static_cast<float>(static_cast<double>(x) / y);
      const auto product = static_cast<float>(static_cast<double>(y) * std::trunc(quotient));
      const auto expected = static_cast<float>(static_cast<double>(x) - product);
      expect_same(Type::f32, run(Op::rem, Type::f32, {a, b}), std::bit_cast<std::uint32_t>(expected), "rem");
    }
  }
  for (const Type t : kFloats) {
    const auto rem = [&](double x, double y) { return as_double(t, run(Op::rem, t, {f(t, x), f(t, y)})); };
    EXPECT_EQ(rem(7, 4), 3);
    EXPECT_EQ(rem(-7, 4), -3);
    EXPECT_EQ(rem(7, -4), 3);
    EXPECT_EQ(rem(5.5, 1.5), 1);
    EXPECT_TRUE(std::isnan(rem(1, 0)));
    EXPECT_TRUE(std::isnan(rem(1, kInfinity)));
    EXPECT_TRUE(std::isnan(rem(kInfinity, 1)));
  }
}

TEST(Evaluate, FmaRoundsOnce) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> mantissa(1, 2), exponent(-14, 8);
  for (int i = 0; i < 20000; ++i) {
    const auto draw = [&] { return f(Type::f16, std::ldexp(mantissa(random), static_cast<int>(exponent(random)))); };
    const Bits a = draw(), b = draw(), c = draw() | (random() & 1) << 15;
    // The terms are whole multiples of 2^-48, which 128 bits hold exactly.
    const auto units = [](double value, int scale) { return static_cast<Wide>(std::ldexp(value, scale)); };
    const double x = as_double(Type::f16, a), y = as_double(Type::f16, b), z = as_double(Type::f16, c);
    const Wide exact = units(x, 24) * units(y, 24) + units(z, 48);
    const Bits result = run(Op::fma, Type::f16, {a, b, c});
    const double actual = as_double(Type::f16, result);
    if (std::isinf(actual)) continue;
    // No neighbour may be nearer.
    const auto distance = [&](Bits h) {
      const Wide d = units(as_double(Type::f16, h), 48) - exact;
      return d < 0 ? -d : d;
    };
    const Wide best = distance(result);
    if ((result & 0x7fff) < 0x7bff) {
      EXPECT_LE(best, distance(result + 1));
      EXPECT_TRUE(best != distance(result + 1) || result % 2 == 0) << "a tie must go to even";
    }
    if (result & 0x7fff) {
      EXPECT_LE(best, distance(result - 1));
    }
  }
  // 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: only one rounding keeps the last term.
  const double x = 1 + std::ldexp(1.0, -12);
  EXPECT_EQ(as_double(Type::f32, run(Op::fma, Type::f32,
                                     {f(Type::f32, x), f(Type::f32, x), f(Type::f32, -(1 + std::ldexp(1.0, -11)))})),
            std::ldexp(1.0, -24));
  const double d = 1 + std::ldexp(1.0, -27);
  EXPECT_EQ(as_double(Type::f64, run(Op::fma, Type::f64,
                                     {f(Type::f64, d), f(Type::f64, d), f(Type::f64, -(1 + std::ldexp(1.0, -26)))})),
            std::ldexp(1.0, -54));
}

TEST(Evaluate, RealFunctions) {
  const struct {
    Op op;
    double (*function)(double);
  } cases[] = {
      {Op::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {Op::exp, std::exp},
      {Op::exp2, std::exp2},
      {Op::log, std::log},
      {Op::log2, std::log2},
      {Op::sin, std::sin},
      {Op::cos, std::cos},
      {Op::tan, std::tan},
      {Op::asin, std::asin},
      {Op::acos, std::acos},
      {Op::atan, std::atan},
      {Op::sinh, std::sinh},
      {Op::cosh, std::cosh},
      {Op::tanh, std::tanh},
  };
  for (const Type t : kFloats) {
    for (const Bits a : float_samples(t)) {
      for (const auto& c : cases) {
        expect_same(t, run(c.op, t, {a}), f(t, c.function(as_double(t, a))), info(c.op).name);
      }
      for (const Bits b : float_samples(t)) {
        expect_same(t, run(Op::pow, t, {a, b}), f(t, std::pow(as_double(t, a), as_double(t, b))), "pow");
        expect_same(t, run(Op::atan2, t, {a, b}), f(t, std::atan2(as_double(t, a), as_double(t, b))), "atan2");
      }
    }
  }
}

TEST(Evaluate, RealFunctionsByHand) {
  const double pi = 3.14159265358979323846;
  const struct {
    Op op;
    double x, y, result;
  } cases[] = {
      {Op::sqrt, 9, 0, 3},
      {Op::sqrt, -0.0, 0, -0.0},
      {Op::rsqrt, 4, 0, 0.5},
      {Op::rsqrt, 0, 0, kInfinity},
      {Op::exp, 0, 0, 1},
      {Op::exp, -kInfinity, 0, 0},
      {Op::exp2, 10, 0, 1024},
      {Op::log, 1, 0, 0},
      {Op::log, 0, 0, -kInfinity},
      {Op::log, -1, 0, kNan},
      {Op::log2, 0.125, 0, -3},
      {Op::pow, 2, 5, 32},
      {Op::pow, -2, 3, -8},
      {Op::pow, -2, 0.5, kNan},
      {Op::pow, 0, 0, 1},
      {Op::pow, kNan, 0, 1},
      {Op::pow, kSignalling, 0, 1},
      {Op::pow, 1, kSignalling, 1},
      {Op::sin, 0, 0, 0},
      {Op::cos, 0, 0, 1},
      {Op::tan, pi / 4, 0, std::tan(pi / 4)},
      {Op::asin, 1, 0, pi / 2},
      {Op::asin, 2, 0, kNan},
      {Op::acos, -1, 0, pi},
      {Op::atan, kInfinity, 0, pi / 2},
      {Op::atan2, 1, -1, 3 * pi / 4},
      {Op::atan2, -0.0, -1, -pi},
      {Op::sinh, 0, 0, 0},
      {Op::cosh, 0, 0, 1},
      {Op::tanh, 100, 0, 1},
      {Op::floor, -0.5, 0, -1},
      {Op::ceil, -0.5, 0, -0.0},
      {Op::trunc, -1.75, 0, -1},
      {Op::round_even, 0.5, 0, 0},
      {Op::round_even, 1.5, 0, 2},
      {Op::round_even, -2.5, 0, -2},
  };
  for (const auto& c : cases) {
    expect_same(Type::f64, run(c.op, Type::f64, {f(Type::f64, c.x), f(Type::f64, c.y)}), f(Type::f64, c.result),
                info(c.op).name);
  }
}

TEST(Evaluate, SubnormalsAreKept) {
  for (const Type t : kFloats) {
    const Bits least = 1;
    EXPECT_EQ(run(Op::add, t, {least, least}), 2u);
    EXPECT_EQ(run(Op::mul, t, {least, f(t, 3)}), 3u);
    EXPECT_EQ(run(Op::mul, t, {least, f(t, 0.5)}), 0u);
    EXPECT_EQ(run(Op::mul, t, {f(t, 1.5), least}), 2u);
  }
}

// ---- choice and change of type ----

TEST(Evaluate, SelectTakesBitsAsTheyAre) {
  for (const Type t : all_types()) {
    const Bits a = mask(t), b = 0;
    EXPECT_EQ(run(Op::select, t, {1, a, b}), a);
    EXPECT_EQ(run(Op::select, t, {0, a, b}), b);
  }
}

TEST(Evaluate, BitcastKeepsBits) {
  for (const Type from : all_types()) {
    for (const Type to : all_types()) {
      const bool defined = from != Type::b1 && to != Type::b1 && bits(from) == bits(to);
      ASSERT_EQ(evaluator(Op::bitcast, from, to) != nullptr, defined) << name(from) << " to " << name(to);
      if (defined) {
        const Bits pattern = 0xfedcba9876543210 & mask(from);
        EXPECT_EQ(run(Op::bitcast, from, to, {pattern}), pattern);
      }
    }
  }
}

TEST(Evaluate, IntegerConversions) {
  for (const Type from : kInts) {
    for (const Bits a : int_samples(from)) {
      const Wide x = value_of(from, a);
      EXPECT_EQ(run(Op::convert, from, Type::b1, {a}), Bits(x != 0));
      for (const Type to : kInts) EXPECT_EQ(run(Op::convert, from, to, {a}), wrapped(to, x));
      // long double holds every 64-bit integer.
      const auto exact = static_cast<long double>(x);
      EXPECT_EQ(run(Op::convert, from, Type::f64, {a}), std::bit_cast<Bits>(static_cast<double>(exact)));
      EXPECT_EQ(run(Op::convert, from, Type::f32, {a}), std::bit_cast<std::uint32_t>(static_cast<float>(exact)));
      EXPECT_EQ(run(Op::convert, from, Type::f16, {a}), detail::half_bits_from_double(static_cast<double>(exact)));
    }
  }
  // The integer is rounded once: by way of double, it would become 2^60.
  EXPECT_EQ(run(Op::convert, Type::i64, Type::f32, {(1ull << 60) + (1ull << 36) + 1}), f(Type::f32, 0x1.000002p60));
  EXPECT_EQ(run(Op::convert, Type::u64, Type::f32, {~0ull}), f(Type::f32, 0x1p64));
  EXPECT_EQ(run(Op::convert, Type::u16, Type::f16, {65535}), f(Type::f16, kInfinity));
  EXPECT_EQ(run(Op::convert, Type::i32, Type::f16, {2049}), f(Type::f16, 2048));
  EXPECT_EQ(run(Op::convert, Type::i32, Type::f16, {2051}), f(Type::f16, 2052));
}

TEST(Evaluate, FloatToIntegerTruncatesAndSaturates) {
  for (const Type from : kFloats) {
    std::vector<Bits> samples = float_samples(from);
    for (const Type to : kInts) {
      for (const Wide limit : {least(to), greatest(to), greatest(to) + 1}) {
        for (const double offset : {-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5}) {
          const double value = static_cast<double>(limit) + offset;
          samples.push_back(f(from, value));
          samples.push_back(f(from, std::nextafter(value, -kInfinity)));
          samples.push_back(f(from, std::nextafter(value, kInfinity)));
        }
      }
    }
    for (const Bits a : samples) {
      const double x = as_double(from, a);
      EXPECT_EQ(run(Op::convert, from, Type::b1, {a}), Bits(x != 0 || std::isnan(x)));
      for (const Type to : kInts) {
        Wide expected = 0;
        if (std::abs(x) < 0x1p100) {
          expected = std::min(std::max(static_cast<Wide>(x), least(to)), greatest(to));
        } else if (!std::isnan(x)) {
          expected = x < 0 ? least(to) : greatest(to);
        }
        EXPECT_EQ(run(Op::convert, from, to, {a}), wrapped(to, expected)) << x << " to " << name(to);
      }
    }
  }
}

TEST(Evaluate, FloatToFloat) {
  for (const Type from : kFloats) {
    for (const Bits a : float_samples(from)) {
      const double x = as_double(from, a);
      expect_same(Type::f64, run(Op::convert, from, Type::f64, {a}), std::bit_cast<Bits>(x), "convert");
      expect_same(Type::f32, run(Op::convert, from, Type::f32, {a}),
                  std::bit_cast<std::uint32_t>(static_cast<float>(x)), "convert");
      expect_same(Type::f16, run(Op::convert, from, Type::f16, {a}), detail::half_bits_from_double(x), "convert");
    }
  }
  EXPECT_EQ(run(Op::convert, Type::f64, Type::f32, {f(Type::f64, 1e300)}), f(Type::f32, kInfinity));
  EXPECT_EQ(run(Op::convert, Type::f32, Type::f16, {f(Type::f32, -65520)}), f(Type::f16, -kInfinity));
  EXPECT_EQ(run(Op::convert, Type::f64, Type::f16, {f(Type::f64, 1 + 0x1p-11 + 0x1p-40)}), 0x3c01u);
}

TEST(Evaluate, BooleanConversions) {
  for (const Type to : all_types()) {
    for (const Bits a : {0, 1}) EXPECT_EQ(to_double(to, run(Op::convert, Type::b1, to, {a})), static_cast<double>(a));
  }
}

TEST(Evaluate, DoublesThereAndBack) {
  for (const Type t : kInts) {
    EXPECT_EQ(to_double(t, wrapped(t, least(t))), static_cast<double>(least(t)));
    EXPECT_EQ(to_double(t, wrapped(t, greatest(t))), static_cast<double>(greatest(t)));
    EXPECT_EQ(from_double(t, kNan), 0u);
    EXPECT_EQ(from_double(t, kInfinity), wrapped(t, greatest(t)));
    EXPECT_EQ(from_double(t, -kInfinity), wrapped(t, least(t)));
    EXPECT_EQ(from_double(t, 2.5), 2u);
    EXPECT_EQ(from_double(t, 3.5), 4u);
    EXPECT_EQ(from_double(t, -1.6), wrapped(t, is_signed(t) ? -2 : 0));
  }
  EXPECT_EQ(from_double(Type::u8, 255.4), 255u);
  EXPECT_EQ(from_double(Type::u8, 255.6), 255u);
  EXPECT_EQ(from_double(Type::f32, 0.1), std::bit_cast<std::uint32_t>(0.1f));
  EXPECT_EQ(from_double(Type::b1, 0.5), 1u);
  EXPECT_EQ(to_double(Type::b1, 1), 1.0);
  EXPECT_EQ(to_double(Type::f16, 0x3c00), 1.0);
}

TEST(Evaluate, IsDefinedWhereTheTableSaysSo) {
  for (int o = 0; o < static_cast<int>(Op::count); ++o) {
    const Op op = static_cast<Op>(o);
    const OpInfo& row = info(op);
    if (row.operands == OperandClass::special) continue;
    for (const Type t : all_types()) {
      const bool in_class =
          row.operands == OperandClass::any || (row.operands == OperandClass::numeric && is_numeric(t)) ||
          (row.operands == OperandClass::integer && is_int(t)) || (row.operands == OperandClass::real && is_float(t)) ||
          (row.operands == OperandClass::logical && (is_bool(t) || is_int(t))) ||
          (row.operands == OperandClass::boolean && is_bool(t));
      const bool defined = in_class && (op != Op::mul_hi || bits(t) == 32);
      EXPECT_EQ(evaluator(op, t, row.result == ResultRule::boolean ? Type::b1 : t) != nullptr, defined)
          << row.name << " on " << name(t);
    }
  }
}

TEST(EvaluateDeathTest, UndefinedOperationEndsTheProgram) {
  const Bits args[] = {1, 2};
  EXPECT_DEATH(evaluate(Op::add, Type::b1, Type::b1, args), "internal error");
}

}  // namespace
}  // namespace weft::ir
