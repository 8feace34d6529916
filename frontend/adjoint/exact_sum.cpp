// The addition to an exact sum: see ExactSum.
#include "array_gradients.h"

namespace weft::ir {

// Adds the mantissa, shifted to its place among the 32 units of a word. It reaches into the next word or the next two:
//
//   if (gradient is not finite) atomic_or a bit into the last word
//   else if (mantissa != 0) {
//     k = place / 32; shifted = mantissa << place % 32
//     for (each 32-bit part i of shifted) atomic_add it, with the gradient's sign, to word k + i
//   }
void ArrayGradients::add_exactly(Id memory, std::uint32_t part, Id gradient) {
  const Type type = code_.from[memory].type;
  const std::uint32_t param = param_of(memory);
  const Loc loc = code_.from[memory].loc();
  const bool wide = type == Type::f64;
  const auto u64 = [&](std::uint64_t v) { return code_.builder.constant(Type::u64, v); };
  const auto on = [&](Op op, Id a, Id b) { return code_.pure(op, Type::u64, {a, b}, loc); };
  const auto is = [&](Op op, Id a, Id b) { return code_.pure(op, Type::b1, {a, b}, loc); };
  const int mantissa_bits = wide ? 52 : 23;
  const std::uint64_t exponents = wide ? 2047 : 255;

  const Id bits = wide ? code_.pure(Op::bitcast, Type::u64, {gradient})
                       : code_.pure(Op::convert, Type::u64, {code_.pure(Op::bitcast, Type::u32, {gradient})});
  const Id exponent = on(Op::bit_and, on(Op::shr, bits, u64(std::uint64_t(mantissa_bits))), u64(exponents));
  const Id fraction = on(Op::bit_and, bits, u64((1ull << mantissa_bits) - 1));
  const Id negative = is(Op::ne, on(Op::shr, bits, u64(wide ? 63 : 31)), u64(0));
  const Id subnormal = is(Op::eq, exponent, u64(0));
  const auto choose = [&](Id condition, Id a, Id b) {
    return code_.pure(Op::select, Type::u64, {condition, a, b}, loc);
  };
  const Id mantissa = on(Op::bit_or, fraction, choose(subnormal, u64(0), u64(1ull << mantissa_bits)));
  const Id place = choose(subnormal, u64(0), on(Op::sub, exponent, u64(1)));
  const Id shift = on(Op::bit_and, place, u64(31));

  const Id scalar = on(Op::div, byte_in_array(memory, part), u64(static_cast<std::uint64_t>(bytes(type))));
  const Id first = on(Op::mul, scalar, u64(ExactSum::words(type)));
  const auto word = [&](Id k) {
    return MemoryRef{code_.array_base(code_.extra.sums[param]),
                     code_.pure(Op::bitcast, Type::i64, {on(Op::add, first, k)}), 8, 0, 8};
  };
  code_.builder.open_if(is(Op::eq, exponent, u64(exponents)), loc);
  {
    const Id infinity = choose(negative, u64(ExactSum::kMinusInfinity), u64(ExactSum::kPlusInfinity));
    const Id what = choose(is(Op::ne, fraction, u64(0)), u64(ExactSum::kNan), infinity);
    code_.builder.atomic(Op::atomic_or, Type::u64, {what}, word(u64(ExactSum::units(type))), loc);
  }
  code_.builder.open_else();
  {
    code_.builder.open_if(is(Op::ne, mantissa, u64(0)), loc);
    const Id k = on(Op::shr, place, u64(5)), low_half = u64(0xffffffff);
    const auto add = [&](std::uint64_t at, Id units) {
      const Id with_sign = choose(negative, on(Op::sub, u64(0), units), units);
      code_.builder.atomic(Op::atomic_add, Type::u64, {with_sign}, word(on(Op::add, k, u64(at))), loc);
    };
    const Id low = on(Op::shl, on(Op::bit_and, mantissa, low_half), shift);
    add(0, on(Op::bit_and, low, low_half));
    const Id carried = on(Op::shr, low, u64(32));
    if (!wide) {
      add(1, carried);
    } else {
      const Id high = on(Op::shl, on(Op::shr, mantissa, u64(32)), shift);
      add(1, on(Op::add, carried, on(Op::bit_and, high, low_half)));
      add(2, on(Op::shr, high, u64(32)));
    }
    code_.builder.close_if();
  }
  code_.builder.close_if();
}

}  // namespace weft::ir
