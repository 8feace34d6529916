// Pure operations, with the guards that give them their one meaning (docs/semantics.md) on every driver.
#include <algorithm>
#include <limits>

#include "../frontend/ir/evaluate.h"
#include "../frontend/support/error.h"
#include "emitter.h"

namespace weft::spirv {

using ir::Id;
using ir::Inst;
using ir::is_float;
using ir::is_signed;
using ir::Op;
using ir::Type;

// ---- Building blocks

Word Emitter::make(spv::Op op, Word type, std::initializer_list<Word> operands) {
  Word words[8] = {type, w_.id()};
  if (operands.size() > 6) internal_error("too many operands");
  std::copy(operands.begin(), operands.end(), words + 2);
  out_->emit(op, words, operands.size() + 2);
  return words[1];
}

Word Emitter::real(spv::Op op, Type t, std::initializer_list<Word> operands) {
  Word x = make(op, t, operands);
  w_.decorate(x, spv::Decoration::NoContraction);
  return x;
}

Word Emitter::ext(GLSLstd450 f, Type t, std::initializer_list<Word> operands) {
  Word words[7] = {w_.type(t), w_.id(), shader_.common.glsl, Word(f)};
  std::copy(operands.begin(), operands.end(), words + 4);
  out_->emit(spv::Op::OpExtInst, words, operands.size() + 4);
  return words[1];
}

Word Emitter::number(Type t, double x) { return w_.constant(t, ir::from_double(t, x)); }

Word Emitter::function(Type t, GLSLstd450 f, Word x) {
  return t == Type::f16 ? down(ext(f, Type::f32, {up(x)})) : ext(f, t, {x});
}

Word Emitter::function(Type t, GLSLstd450 f, Word x, Word y) {
  return t == Type::f16 ? down(ext(f, Type::f32, {up(x), up(y)})) : ext(f, t, {x, y});
}

// ---- Dispatch

Word Emitter::pure(Id id) {
  const Inst& inst = module_[id];
  const Type t = inst.type;
  // Operations for which a literal operand makes a difference inspect their operands themselves.
  switch (inst.op) {
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: return compare(id);
    case Op::shl:
    case Op::shr: return shift(id, t);
    case Op::div:
    case Op::rem:
      if (!is_float(t)) return integer_divide(id, t);
      break;
    default: break;
  }
  Word x[3] = {};
  if (inst.num_args == 0 || inst.num_args > 3) internal_error("a pure operation has one to three operands");
  for (std::uint32_t k = 0; k < inst.num_args; ++k) x[k] = value(module_.arg(id, int(k)));
  switch (inst.op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::mul_hi:
    case Op::min:
    case Op::max:
    case Op::pow:
    case Op::atan2:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return binary(inst.op, t, x[0], x[1]);
    case Op::fma: return fma(t, x[0], x[1], x[2]);
    case Op::select: return choose(t, x[0], x[1], x[2]);
    case Op::convert: return convert(module_[module_.arg(id, 0)].type, t, x[0]);
    case Op::bitcast: return reinterpret(module_[module_.arg(id, 0)].type, t, x[0]);
    default: return unary(inst.op, t, x[0]);
  }
}

Word Emitter::unary(Op op, Type t, Word x) {
  switch (op) {
    case Op::neg: return is_float(t) ? real(spv::Op::OpFNegate, t, {x}) : make(spv::Op::OpSNegate, t, {x});
    case Op::abs:
      if (is_float(t)) return ext(GLSLstd450FAbs, t, {x});
      return is_signed(t) ? ext(GLSLstd450SAbs, t, {x}) : x;
    case Op::detach: return x;
    case Op::sqrt: return function(t, GLSLstd450Sqrt, x);
    case Op::rsqrt: return function(t, GLSLstd450InverseSqrt, x);
    case Op::exp: return function(t, GLSLstd450Exp, x);
    case Op::exp2: return function(t, GLSLstd450Exp2, x);
    case Op::log: return function(t, GLSLstd450Log, x);
    case Op::log2: return function(t, GLSLstd450Log2, x);
    case Op::sin: return function(t, GLSLstd450Sin, x);
    case Op::cos: return function(t, GLSLstd450Cos, x);
    case Op::tan: return function(t, GLSLstd450Tan, x);
    case Op::asin: return function(t, GLSLstd450Asin, x);
    case Op::acos: return function(t, GLSLstd450Acos, x);
    case Op::atan: return function(t, GLSLstd450Atan, x);
    case Op::sinh: return function(t, GLSLstd450Sinh, x);
    case Op::cosh: return function(t, GLSLstd450Cosh, x);
    case Op::tanh: return t == Type::f16 ? down(tanh32(up(x))) : tanh32(x);
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even: return whole(op, t, x);
    case Op::is_nan: return make(spv::Op::OpIsNan, t, {x});
    case Op::is_inf: return make(spv::Op::OpIsInf, t, {x});
    case Op::gradient_base:
    case Op::after_base: internal_error("a state of an array that only an adjoint knows");
    case Op::bit_not: return make(ir::is_bool(t) ? spv::Op::OpLogicalNot : spv::Op::OpNot, t, {x});
    case Op::popcount: return popcount(t, x);
    default: internal_error("an operation that the SPIR-V emitter does not know");
  }
}

// Devices count bits in 32-bit words: narrower values have zeros above, 64-bit ones two halves.
Word Emitter::popcount(Type t, Word x) {
  const Type u = ir::to_unsigned(t), word = Type::u32;
  x = reinterpret(t, u, x);
  const auto count = [&](Word bits) { return make(spv::Op::OpBitCount, word, {bits}); };
  if (ir::bits(t) < 64) return integer_to_integer(word, t, count(integer_to_integer(u, word, x)));
  const Word high = make(spv::Op::OpShiftRightLogical, u, {x, w_.u32(32)});
  const Word low = count(integer_to_integer(u, word, x)), above = count(integer_to_integer(u, word, high));
  return integer_to_integer(word, t, make(spv::Op::OpIAdd, word, {low, above}));
}

Word Emitter::binary(Op op, Type t, Word x, Word y) {
  const bool floating = is_float(t), logical = ir::is_bool(t);
  switch (op) {
    case Op::add: return floating ? real(spv::Op::OpFAdd, t, {x, y}) : make(spv::Op::OpIAdd, t, {x, y});
    case Op::sub: return floating ? real(spv::Op::OpFSub, t, {x, y}) : make(spv::Op::OpISub, t, {x, y});
    case Op::mul: return floating ? real(spv::Op::OpFMul, t, {x, y}) : make(spv::Op::OpIMul, t, {x, y});
    case Op::div:
      if (t != Type::f16) return real(spv::Op::OpFDiv, t, {x, y});
      return down(real(spv::Op::OpFDiv, Type::f32, {up(x), up(y)}));
    case Op::rem: return real_remainder(t, x, y);
    case Op::mul_hi: {
      spv::Op wide = is_signed(t) ? spv::Op::OpSMulExtended : spv::Op::OpUMulExtended;
      return make(spv::Op::OpCompositeExtract, t, {make(wide, w_.pair_type(t), {x, y}), 1});
    }
    case Op::min: return ext(floating ? GLSLstd450NMin : is_signed(t) ? GLSLstd450SMin : GLSLstd450UMin, t, {x, y});
    case Op::max: return ext(floating ? GLSLstd450NMax : is_signed(t) ? GLSLstd450SMax : GLSLstd450UMax, t, {x, y});
    case Op::pow: return power(t, x, y);
    case Op::atan2: return function(t, GLSLstd450Atan2, x, y);
    case Op::bit_and: return make(logical ? spv::Op::OpLogicalAnd : spv::Op::OpBitwiseAnd, t, {x, y});
    case Op::bit_or: return make(logical ? spv::Op::OpLogicalOr : spv::Op::OpBitwiseOr, t, {x, y});
    case Op::bit_xor: return make(logical ? spv::Op::OpLogicalNotEqual : spv::Op::OpBitwiseXor, t, {x, y});
    default: internal_error("not an operation on two operands");
  }
}

// Rounds to a whole number. float64 uses additions and comparisons, because Mesa's software driver (25.0.7) is wrong on
// some processors: on one with AVX2 and without AVX-512 it took 1.5 to 1, and left a quotient beyond 2^24 as it was.
//
// From 2^52 on all numbers are whole. Below, the sum with 2^52 has no fraction bits; less 2^52 it is one of the two
// whole numbers beside x, whichever way the device rounds.
Word Emitter::whole(Op op, Type t, Word x) {
  if (t != Type::f64)
    return ext(op == Op::floor   ? GLSLstd450Floor
               : op == Op::ceil  ? GLSLstd450Ceil
               : op == Op::trunc ? GLSLstd450Trunc
                                 : GLSLstd450RoundEven,
               t, {x});
  const Word zero = number(t, 0), one = number(t, 1), large = number(t, 0x1p52);
  const auto is = [&](spv::Op compare, Word a, Word b) { return make(compare, Type::b1, {a, b}); };
  const auto add = [&](Word a, Word b) { return real(spv::Op::OpFAdd, t, {a, b}); };
  const auto subtract = [&](Word a, Word b) { return real(spv::Op::OpFSub, t, {a, b}); };
  const auto toward_zero = [&](Word a) {
    const Word near = subtract(add(a, large), large);
    return choose(t, is(spv::Op::OpFOrdGreaterThan, near, a), subtract(near, one), near);
  };
  const Word a = ext(GLSLstd450FAbs, t, {x});
  Word size = toward_zero(a);
  if (op == Op::round_even) {
    const Word half = number(t, 0.5), rest = subtract(a, size), of_two = real(spv::Op::OpFMul, t, {size, half});
    const Word odd = is(spv::Op::OpFOrdNotEqual, toward_zero(of_two), of_two);
    const Word tie = make(spv::Op::OpLogicalAnd, Type::b1, {is(spv::Op::OpFOrdEqual, rest, half), odd});
    const Word up = make(spv::Op::OpLogicalOr, Type::b1, {is(spv::Op::OpFOrdGreaterThan, rest, half), tie});
    size = choose(t, up, add(size, one), size);
  }
  Word result = choose(t, is(spv::Op::OpFOrdLessThan, x, zero), real(spv::Op::OpFNegate, t, {size}), size);
  if (op == Op::floor) result = choose(t, is(spv::Op::OpFOrdGreaterThan, result, x), subtract(result, one), result);
  if (op == Op::ceil) result = choose(t, is(spv::Op::OpFOrdLessThan, result, x), add(result, one), result);
  // Zeros keep their signs; NaNs stay NaNs.
  const Word fraction = make(spv::Op::OpLogicalAnd, Type::b1,
                             {is(spv::Op::OpFOrdLessThan, a, large), is(spv::Op::OpFOrdNotEqual, x, zero)});
  return choose(t, fraction, result, x);
}

// SPIR-V's Pow is undefined for some bases that are zero or negative. With a constant exponent the driver folds most of
// this away.
Word Emitter::power(Type t, Word x, Word y) {
  if (t == Type::f16) return down(power(Type::f32, up(x), up(y)));
  const Word zero = number(t, 0), one = number(t, 1), infinity = number(t, std::numeric_limits<double>::infinity());
  auto is = [&](spv::Op op, Word a, Word b) { return make(op, Type::b1, {a, b}); };
  Word base = ext(GLSLstd450FAbs, t, {x});
  Word p = ext(GLSLstd450Pow, t, {base, y});
  p = choose(t, is(spv::Op::OpFOrdEqual, base, zero), choose(t, is(spv::Op::OpFOrdLessThan, y, zero), infinity, zero),
             p);
  // For a negative base, only whole exponents give a number; odd ones keep the sign.
  const Word half = real(spv::Op::OpFMul, t, {y, number(t, 0.5)});
  const Word is_whole = is(spv::Op::OpFOrdEqual, whole(Op::trunc, t, y), y);
  const Word odd = is(spv::Op::OpFOrdNotEqual, whole(Op::trunc, t, half), half);
  const Word signed_power = choose(t, odd, make(spv::Op::OpFNegate, t, {p}), p);
  const Word negative = choose(t, is_whole, signed_power, number(t, std::numeric_limits<double>::quiet_NaN()));
  p = choose(t, is(spv::Op::OpFOrdLessThan, x, zero), negative, p);
  return choose(t, is(spv::Op::OpFOrdEqual, y, zero), one, p);
}

// ---- Integers

// x / 0 = x, x % 0 = 0, MIN / -1 = MIN, MIN % -1 = 0. A divisor of 1 gives all four, so the guard replaces the divisor
// and never the result.
Word Emitter::integer_divide(Id id, Type t) {
  const bool rem = module_[id].op == Op::rem;
  const Id divisor = module_.arg(id, 1);
  const Word x = value(module_.arg(id, 0));
  // Vulkan leaves OpSRem undefined for negative operands, so a signed remainder is x - x / y * y.
  auto divide = [&](Word y) {
    if (!is_signed(t)) return make(rem ? spv::Op::OpUMod : spv::Op::OpUDiv, t, {x, y});
    const Word quotient = make(spv::Op::OpSDiv, t, {x, y});
    return rem ? make(spv::Op::OpISub, t, {x, make(spv::Op::OpIMul, t, {quotient, y})}) : quotient;
  };
  if (module_[divisor].op == Op::constant) {
    std::uint64_t d = module_[divisor].imm;
    if (d == 0) return rem ? w_.constant(t, 0) : x;
    if (is_signed(t) && d == ir::mask(t)) return rem ? w_.constant(t, 0) : make(spv::Op::OpSNegate, t, {x});
    return divide(value(divisor));
  }
  const Word y = value(divisor), zero = w_.constant(t, 0), one = w_.constant(t, 1);
  Word bad;
  if (!is_signed(t)) {
    bad = make(spv::Op::OpIEqual, Type::b1, {y, zero});
  } else if (rem) {
    // x % -1 is 0 for every x, so -1 and 0 are replaced alike.
    Type u = ir::to_unsigned(t);
    Word above = make(spv::Op::OpIAdd, u, {y, w_.constant(u, 1)});
    bad = make(spv::Op::OpULessThanEqual, Type::b1, {above, w_.constant(u, 1)});
  } else {
    Word least = w_.constant(t, 1ull << (ir::bits(t) - 1)), minus_one = w_.constant(t, ~0ull);
    Word overflow =
        make(spv::Op::OpLogicalAnd, Type::b1,
             {make(spv::Op::OpIEqual, Type::b1, {x, least}), make(spv::Op::OpIEqual, Type::b1, {y, minus_one})});
    bad = make(spv::Op::OpLogicalOr, Type::b1, {make(spv::Op::OpIEqual, Type::b1, {y, zero}), overflow});
  }
  return divide(choose(t, bad, one, y));
}

Word Emitter::shift(Id id, Type t) {
  const Id by = module_.arg(id, 1);
  const std::uint64_t last = std::uint64_t(ir::bits(t)) - 1;
  const Word x = value(module_.arg(id, 0));
  const spv::Op op = module_[id].op == Op::shl ? spv::Op::OpShiftLeftLogical
                     : is_signed(t)            ? spv::Op::OpShiftRightArithmetic
                                               : spv::Op::OpShiftRightLogical;
  if (module_[by].op == Op::constant) return make(op, t, {x, w_.constant(t, module_[by].imm & last)});
  return make(op, t, {x, make(spv::Op::OpBitwiseAnd, t, {value(by), w_.constant(t, last)})});
}

Word Emitter::compare(Id id) {
  const Id a = module_.arg(id, 0), b = module_.arg(id, 1);
  Type t = module_[a].type;
  // Without arithmetic in the narrow type, its storage still allows widening it.
  const bool widens = ir::is_int(t) && ((ir::bits(t) == 8 && !needs_.has(spv::Capability::Int8)) ||
                                        (ir::bits(t) == 16 && !needs_.has(spv::Capability::Int16)));
  const Type wide = is_signed(t) ? Type::i32 : Type::u32;
  auto operand = [&](Id from) {
    const Inst& inst = module_[from];
    if (!widens) return value(from);
    if (inst.op != Op::constant) return widen_integer(t, value(from));
    bool negative = is_signed(t) && (inst.imm >> (ir::bits(t) - 1) & 1);
    return w_.constant(wide, negative ? inst.imm | ~ir::mask(t) : inst.imm);
  };
  const Word x = operand(a), y = operand(b);
  if (widens) t = wide;
  const bool floating = is_float(t), logical = ir::is_bool(t), sign = is_signed(t);
  spv::Op op;
  switch (module_[id].op) {
    case Op::eq: op = floating ? spv::Op::OpFOrdEqual : logical ? spv::Op::OpLogicalEqual : spv::Op::OpIEqual; break;
    case Op::ne:
      op = floating ? spv::Op::OpFUnordNotEqual : logical ? spv::Op::OpLogicalNotEqual : spv::Op::OpINotEqual;
      break;
    case Op::lt: op = floating ? spv::Op::OpFOrdLessThan : sign ? spv::Op::OpSLessThan : spv::Op::OpULessThan; break;
    case Op::le:
      op = floating ? spv::Op::OpFOrdLessThanEqual : sign ? spv::Op::OpSLessThanEqual : spv::Op::OpULessThanEqual;
      break;
    default: internal_error("not a comparison");
  }
  return make(op, Type::b1, {x, y});
}

// ---- Reals

// x - y * trunc(x / y), each step rounded; float16 computes it in float32.
Word Emitter::real_remainder(Type t, Word x, Word y) {
  if (t == Type::f16) {
    Word wide_x = up(x), wide_y = up(y);
    return down(real_remainder(Type::f32, wide_x, wide_y));
  }
  const Word quotient = whole(Op::trunc, t, real(spv::Op::OpFDiv, t, {x, y}));
  return real(spv::Op::OpFSub, t, {x, real(spv::Op::OpFMul, t, {y, quotient})});
}

// For float16 the product is exact in float32. The sum there is rounded to odd (to the neighbour whose last bit is
// set), so that rounding it to float16 rounds the exact value once.
Word Emitter::fma(Type t, Word a, Word b, Word c) {
  if (t != Type::f16) {
    // The decoration has every fma rounded alike, where without it a driver may split some.
    const Word result = ext(GLSLstd450Fma, t, {a, b, c});
    w_.decorate(result, spv::Decoration::NoContraction);
    return result;
  }
  const Type f = Type::f32;
  Word p = real(spv::Op::OpFMul, f, {up(a), up(b)}), q = up(c);
  Word sum = real(spv::Op::OpFAdd, f, {p, q});
  // The exact error of the sum (Knuth).
  Word q1 = real(spv::Op::OpFSub, f, {sum, p});
  Word p1 = real(spv::Op::OpFSub, f, {sum, q1});
  Word error = real(spv::Op::OpFAdd, f, {real(spv::Op::OpFSub, f, {p, p1}), real(spv::Op::OpFSub, f, {q, q1})});
  Word zero = number(f, 0);
  Word inexact = make(spv::Op::OpFOrdNotEqual, Type::b1, {error, zero});
  Word outward = make(spv::Op::OpLogicalEqual, Type::b1,
                      {make(spv::Op::OpFOrdGreaterThan, Type::b1, {error, zero}),
                       make(spv::Op::OpFOrdGreaterThan, Type::b1, {sum, zero})});
  Word bits = make(spv::Op::OpBitcast, Type::u32, {sum});
  return down(make(spv::Op::OpBitcast, f, {round_to_odd(bits, inexact, outward)}));
}

// Drivers compute tanh from exponentials, which overflow; beyond 10 it is 1 in float32.
Word Emitter::tanh32(Word x) {
  const Type f = Type::f32;
  Word above = make(spv::Op::OpFOrdGreaterThan, Type::b1, {x, number(f, 10)});
  Word below = make(spv::Op::OpFOrdLessThan, Type::b1, {x, number(f, -10)});
  Word inside = ext(GLSLstd450Tanh, f, {x});
  Word lower = choose(f, below, number(f, -1), inside);
  return choose(f, above, number(f, 1), lower);
}

}  // namespace weft::spirv
