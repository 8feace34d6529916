// Conversions between every pair of types: exact, wrapping or saturating, as docs/semantics.md says.
#include <cmath>

#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::spirv {

using ir::is_float;
using ir::is_signed;
using ir::Type;

Word Emitter::convert(Type from, Type to, Word x) {
  if (from == to) return x;
  if (ir::is_bool(from)) return bool_to_number(to, x);
  if (ir::is_bool(to)) {
    if (is_float(from)) {
      Type f = from == Type::f16 ? Type::f32 : from;
      return make(spv::Op::OpFUnordNotEqual, Type::b1, {from == Type::f16 ? up(x) : x, number(f, 0)});
    }
    Type wide = ir::bits(from) < 32 ? (is_signed(from) ? Type::i32 : Type::u32) : from;
    return make(spv::Op::OpINotEqual, Type::b1, {widen_integer(from, x), w_.constant(wide, 0)});
  }
  if (is_float(from)) return is_float(to) ? real_to_real(from, to, x) : real_to_integer(from, to, x);
  return is_float(to) ? integer_to_real(from, to, x) : integer_to_integer(from, to, x);
}

Word Emitter::reinterpret(Type from, Type to, Word x) { return from == to ? x : make(spv::Op::OpBitcast, to, {x}); }

Word Emitter::widen_integer(Type t, Word x) {
  if (ir::bits(t) >= 32) return x;
  return is_signed(t) ? make(spv::Op::OpSConvert, Type::i32, {x}) : make(spv::Op::OpUConvert, Type::u32, {x});
}

// Narrow numbers are made from wide ones, so that storage capabilities suffice for them.
Word Emitter::bool_to_number(Type to, Word x) {
  Type wide = is_float(to) ? (to == Type::f16 ? Type::f32 : to) : ir::bits(to) < 32 ? Type::u32 : to;
  Word zero = w_.constant(wide, 0), one = is_float(wide) ? number(wide, 1) : w_.constant(wide, 1);
  Word made = choose(wide, x, one, zero);
  if (wide == to) return made;
  return is_float(to) ? down(made) : integer_to_integer(wide, to, made);
}

// Widening follows the source's sign; OpUConvert gives unsigned types only. Conversions between narrow types go through
// 32 bits, because changing only the sign takes arithmetic in the narrow type, and changing the width does not.
Word Emitter::integer_to_integer(Type from, Type to, Word x) {
  if (ir::bits(from) < 32 && ir::bits(to) < 32) {
    x = widen_integer(from, x);
    from = is_signed(from) ? Type::i32 : Type::u32;
  }
  if (ir::bits(from) == ir::bits(to)) return reinterpret(from, to, x);
  const bool widens = ir::bits(to) > ir::bits(from);
  if (widens ? is_signed(from) : is_signed(to)) return make(spv::Op::OpSConvert, to, {x});
  Type u = ir::to_unsigned(to);
  return reinterpret(u, to, make(spv::Op::OpUConvert, u, {x}));
}

// float16 goes through float32, which rounds no integer below 2^24 and takes every larger one to a float that overflows
// float16 as well: one rounding in all.
Word Emitter::integer_to_real(Type from, Type to, Word x) {
  Type f = to == Type::f16 ? Type::f32 : to;
  Word wide = widen_integer(from, x);
  Word made = make(is_signed(from) ? spv::Op::OpConvertSToF : spv::Op::OpConvertUToF, f, {wide});
  return to == Type::f16 ? down(made) : made;
}

// Truncates and saturates; NaN gives 0. The operand is clamped before the conversion, which is undefined outside the
// integer's range. If the float type cannot represent the largest integer, values that reach the power of two above it
// are selected separately.
Word Emitter::real_to_integer(Type from, Type to, Word x) {
  Type f = from;
  if (from == Type::f16) {
    f = Type::f32;
    x = up(x);
  }
  const int digits = ir::bits(to) - (is_signed(to) ? 1 : 0), mantissa = f == Type::f64 ? 53 : 24;
  const double limit = std::ldexp(1.0, digits);
  const double low = is_signed(to) ? -limit : 0;
  const bool fits = digits <= mantissa;
  const double high = fits ? limit - 1 : limit - std::ldexp(1.0, digits - mantissa);
  const Type wide = ir::bits(to) >= 32 ? to : is_signed(to) ? Type::i32 : Type::u32;

  Word clamped = ext(GLSLstd450NMin, f, {ext(GLSLstd450NMax, f, {x, number(f, low)}), number(f, high)});
  Word made = make(is_signed(to) ? spv::Op::OpConvertFToS : spv::Op::OpConvertFToU, wide, {clamped});
  if (!fits) {
    Word over = make(spv::Op::OpFOrdGreaterThanEqual, Type::b1, {x, number(f, limit)});
    made = choose(wide, over, w_.constant(wide, is_signed(to) ? ir::mask(to) >> 1 : ir::mask(to)), made);
  }
  // NMax has turned a NaN into the lower limit, which is already 0 for unsigned types.
  if (is_signed(to)) {
    Word nan = make(spv::Op::OpFUnordNotEqual, Type::b1, {x, x});
    made = choose(wide, nan, w_.constant(wide, 0), made);
  }
  return integer_to_integer(wide, to, made);
}

Word Emitter::real_to_real(Type from, Type to, Word x) {
  if (from == Type::f64 && to == Type::f16) return double_to_half(x);
  if (from == Type::f16 && to == Type::f64) return make(spv::Op::OpFConvert, Type::f64, {up(x)});
  return make(spv::Op::OpFConvert, to, {x});
}

// Drivers may go through float32 and round twice; rounding to odd on the way makes the result exact.
Word Emitter::double_to_half(Word x) {
  Word near = make(spv::Op::OpFConvert, Type::f32, {x});
  Word back = make(spv::Op::OpFConvert, Type::f64, {near});
  Word inexact = make(spv::Op::OpFOrdNotEqual, Type::b1, {back, x});
  Word outward = make(spv::Op::OpFOrdGreaterThan, Type::b1,
                      {ext(GLSLstd450FAbs, Type::f64, {x}), ext(GLSLstd450FAbs, Type::f64, {back})});
  Word bits = make(spv::Op::OpBitcast, Type::u32, {near});
  return down(make(spv::Op::OpBitcast, Type::f32, {round_to_odd(bits, inexact, outward)}));
}

// The one of the two floats around a value whose last bit is set. `outward`: the value is farther from zero than the
// float whose bits are given.
Word Emitter::round_to_odd(Word bits, Word inexact, Word outward) {
  const Type u = Type::u32;
  Word last = make(spv::Op::OpBitwiseAnd, u, {bits, w_.u32(1)});
  Word even = make(spv::Op::OpIEqual, Type::b1, {last, w_.u32(0)});
  Word one = w_.u32(1), minus_one = w_.u32(~0u);
  Word step = choose(u, outward, one, minus_one);
  Word moved = make(spv::Op::OpIAdd, u, {bits, step});
  return choose(u, make(spv::Op::OpLogicalAnd, Type::b1, {inexact, even}), moved, bits);
}

}  // namespace weft::spirv
