// Conversions between every pair of types: exact, wrapping or saturating, as docs/semantics.md says.
#include <cmath>

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::llvm {

using ir::is_float;
using ir::is_signed;
using ir::Op;
using ir::Type;

std::string Emitter::cast(const char* name, Type from, Type to, const std::string& x, std::uint32_t lanes) {
  return out_.def("{} {} {} to {}", name, type_name(from, lanes), x, type_name(to, lanes));
}

std::string Emitter::reinterpret(Type from, Type to, const std::string& x, std::uint32_t lanes) {
  return type_name(from) == type_name(to) ? x : cast("bitcast", from, to, x, lanes);
}

std::string Emitter::convert(Type from, Type to, const std::string& x, std::uint32_t lanes) {
  if (from == to) return x;
  // float16 goes through float32, which rounds no integer below 2^24 and takes every larger one to a float that
  // overflows float16 as well: one rounding in all.
  if (to == Type::f16 && from != Type::b1)
    return from == Type::f64 ? double_to_half(x, lanes) : down(convert(from, Type::f32, x, lanes), lanes);
  if (from == Type::f16) return convert(Type::f32, to, up(x, lanes), lanes);
  if (ir::is_bool(from)) {
    if (is_float(to)) return choose(to, x, real_literal(to, 1, lanes), literal(to, 0, lanes), lanes);
    return cast("zext", from, to, x, lanes);
  }
  if (ir::is_bool(to))
    return out_.def("{} {} {}, {}", is_float(from) ? "fcmp une" : "icmp ne", type_name(from, lanes), x,
                    literal(from, 0, lanes));
  if (is_float(from) && is_float(to)) return cast(to == Type::f64 ? "fpext" : "fptrunc", from, to, x, lanes);
  if (is_float(from)) return real_to_integer(from, to, x, lanes);
  if (is_float(to)) return cast(is_signed(from) ? "sitofp" : "uitofp", from, to, x, lanes);
  return integer_to_integer(from, to, x, lanes);
}

std::string Emitter::integer_to_integer(Type from, Type to, const std::string& x, std::uint32_t lanes) {
  if (ir::bits(from) == ir::bits(to)) return x;
  const bool widens = ir::bits(to) > ir::bits(from);
  return cast(!widens ? "trunc" : is_signed(from) ? "sext" : "zext", from, to, x, lanes);
}

// Truncates and saturates; NaN gives 0. The operand is clamped before the conversion, which is undefined outside the
// integer's range. If the float type cannot represent the largest integer, values that reach the power of two above it
// are selected separately. LLVM's own saturating conversions are wrong for some types.
std::string Emitter::real_to_integer(Type from, Type to, std::string x, std::uint32_t lanes) {
  const int digits = ir::bits(to) - (is_signed(to) ? 1 : 0), mantissa = from == Type::f64 ? 53 : 24;
  const double limit = std::ldexp(1.0, digits), low = is_signed(to) ? -limit : 0;
  const bool fits = digits <= mantissa;
  const double high = fits ? limit - 1 : limit - std::ldexp(1.0, digits - mantissa);
  const Type wide = ir::bits(to) >= 32 ? to : is_signed(to) ? Type::i32 : Type::u32;

  const std::string least = real_literal(from, low, lanes), greatest = real_literal(from, high, lanes);
  // A NaN is below nothing, so that the first choice leaves the lower limit in its place.
  const std::string above = out_.def("fcmp ogt {} {}, {}", type_name(from, lanes), x, least);
  const std::string raised = choose(from, above, x, least, lanes);
  const std::string clamped =
      choose(from, compare(Op::lt, from, Texts{raised, greatest}, lanes), raised, greatest, lanes);
  std::string made = cast(is_signed(to) ? "fptosi" : "fptoui", from, wide, clamped, lanes);
  if (!fits) {
    const std::string over =
        out_.def("fcmp oge {} {}, {}", type_name(from, lanes), x, real_literal(from, limit, lanes));
    made = choose(wide, over, literal(wide, is_signed(to) ? ir::mask(to) >> 1 : ir::mask(to), lanes), made, lanes);
  }
  if (is_signed(to)) {
    const std::string nan = out_.def("fcmp uno {} {}, {}", type_name(from, lanes), x, x);
    made = choose(wide, nan, literal(wide, 0, lanes), made, lanes);
  }
  return integer_to_integer(wide, to, made, lanes);
}

// Rounds to odd on the way to float32, so that there is one rounding in all: of the two floats around a value that is
// none, the one whose last bit is set.
std::string Emitter::double_to_half(const std::string& x, std::uint32_t lanes) {
  const Type f = Type::f64, u = Type::u32;
  const std::string near = cast("fptrunc", f, Type::f32, x, lanes), back = cast("fpext", Type::f32, f, near, lanes);
  const std::string inexact = out_.def("fcmp one {} {}, {}", type_name(f, lanes), back, x);
  const std::string size = out_.intrinsic("fabs", f, lanes, {x}), near_size = out_.intrinsic("fabs", f, lanes, {back});
  const std::string outward = compare(Op::lt, f, Texts{near_size, size}, lanes);
  const std::string bits = reinterpret(Type::f32, u, near, lanes);
  const std::string last = binary("and", u, bits, literal(u, 1, lanes), lanes);
  const std::string even = compare(Op::eq, u, Texts{last, literal(u, 0, lanes)}, lanes);
  const std::string step = choose(u, outward, literal(u, 1, lanes), literal(u, ~0u, lanes), lanes);
  const std::string moved = binary("add", u, bits, step, lanes);
  const std::string odd = choose(u, binary("and", Type::b1, inexact, even, lanes), moved, bits, lanes);
  return down(reinterpret(u, Type::f32, odd, lanes), lanes);
}

std::string Emitter::up(const std::string& x, std::uint32_t lanes) {
  if (!target_.half_conversions) return up_by_bits(x, lanes);
  const std::string of = vector_of("half", lanes);
  const std::string half = out_.def("bitcast {} {} to {}", type_name(Type::f16, lanes), x, of);
  return out_.def("fpext {} {} to {}", of, half, type_name(Type::f32, lanes));
}

std::string Emitter::down(const std::string& x, std::uint32_t lanes) {
  if (!target_.half_conversions) return down_by_bits(x, lanes);
  const std::string of = vector_of("half", lanes);
  const std::string half = out_.def("fptrunc {} {} to {}", type_name(Type::f32, lanes), x, of);
  return out_.def("bitcast {} {} to {}", of, half, type_name(Type::f16, lanes));
}

// For processors without the instructions, for which LLVM would call functions.
//   m = x & 0x7fff                      exponent and fraction
//   a = (m << 13) + (112 << 23)         normal: the exponent's bias grows from 15 to 127
//   a = m >= 0x7c00 ? a + (112 << 23) : a         infinity and NaN
//   a = m < 0x400 ? float(m) * 2^-24 : a          subnormal
//   a | (x & 0x8000) << 16
std::string Emitter::up_by_bits(const std::string& x, std::uint32_t lanes) {
  const Type u = Type::u32;
  auto constant = [&](std::uint32_t value) { return literal(u, value, lanes); };
  const std::string wide = cast("zext", Type::u16, u, x, lanes);
  const std::string m = binary("and", u, wide, constant(0x7fff), lanes);
  const std::string normal = binary("add", u, binary("shl", u, m, constant(13), lanes), constant(112u << 23), lanes);
  const std::string special = out_.def("icmp uge {} {}, {}", type_name(u, lanes), m, constant(0x7c00));
  const std::string large = choose(u, special, binary("add", u, normal, constant(112u << 23), lanes), normal, lanes);
  const std::string tiny =
      binary("fmul", Type::f32, cast("uitofp", u, Type::f32, m, lanes), real_literal(Type::f32, 0x1p-24, lanes), lanes);
  const std::string subnormal = compare(Op::lt, u, Texts{m, constant(0x400)}, lanes);
  const std::string size = choose(u, subnormal, reinterpret(Type::f32, u, tiny, lanes), large, lanes);
  const std::string sign = binary("shl", u, binary("and", u, wide, constant(0x8000), lanes), constant(16), lanes);
  return reinterpret(u, Type::f32, binary("or", u, size, sign, lanes), lanes);
}

//   a = |x| as bits
//   h = (a - (112 << 23) + 0xfff + (a >> 13 & 1)) >> 13      ties to even; a carry grows the exponent
//   h = a < 2^-14 ? bits(|x| + 0.5) - bits(0.5) : h          subnormal: the sum's last place is 2^-24
//   h = a >= 65520 ? infinity : h, a NaN ? NaN : h
std::string Emitter::down_by_bits(const std::string& x, std::uint32_t lanes) {
  const Type u = Type::u32;
  auto constant = [&](std::uint32_t value) { return literal(u, value, lanes); };
  const std::string bits = reinterpret(Type::f32, u, x, lanes);
  const std::string a = binary("and", u, bits, constant(0x7fffffff), lanes);
  const std::string last = binary("and", u, binary("lshr", u, a, constant(13), lanes), constant(1), lanes);
  const std::string rounded =
      binary("add", u, binary("add", u, a, constant(0xfffu - (112u << 23)), lanes), last, lanes);
  const std::string normal = binary("lshr", u, rounded, constant(13), lanes);
  const std::string sum =
      binary("fadd", Type::f32, reinterpret(u, Type::f32, a, lanes), real_literal(Type::f32, 0.5, lanes), lanes);
  const std::string tiny = binary("sub", u, reinterpret(Type::f32, u, sum, lanes), constant(0x3f000000), lanes);
  std::string h = choose(u, compare(Op::lt, u, Texts{a, constant(0x38800000)}, lanes), tiny, normal, lanes);
  h = choose(u, compare(Op::lt, u, Texts{a, constant(0x477ff000)}, lanes), h, constant(0x7c00), lanes);
  h = choose(u, compare(Op::lt, u, Texts{constant(0x7f800000), a}, lanes), constant(0x7e00), h, lanes);
  const std::string sign = binary("and", u, binary("lshr", u, bits, constant(16), lanes), constant(0x8000), lanes);
  return cast("trunc", u, Type::u16, binary("or", u, h, sign, lanes), lanes);
}

}  // namespace weft::llvm
