// The derivative of each pure operation. Where one does not exist, docs/differentiability.md says what is chosen here.
#include "rules.h"

#include <numbers>

#include "../support/error.h"

namespace weft::ir {

bool is_differentiable(const Module& module, Id id, int k) {
  const Inst& inst = module[id];
  if (info(inst.op).derivative != Derivative::differentiable || !is_float(inst.type)) return false;
  return is_float(module[module.arg(id, k)].type);
}

std::uint8_t derivative_uses(Op op, int k) {
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::neg:
    case Op::convert: return 0;
    case Op::mul: return k == 0 ? kUseSecond : kUseFirst;
    case Op::div: return k == 0 ? kUseSecond : kUseSecond | kUseResult;
    case Op::rem: return k == 0 ? 0 : kUseFirst | kUseSecond;
    case Op::fma: return k == 0 ? kUseSecond : k == 1 ? kUseFirst : 0;
    case Op::min:
    case Op::max:
    case Op::atan2: return kUseFirst | kUseSecond;
    case Op::pow: return k == 0 ? kUseFirst | kUseSecond : kUseFirst | kUseResult;
    case Op::select:
    case Op::abs:
    case Op::log:
    case Op::log2:
    case Op::sin:
    case Op::cos:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::sinh:
    case Op::cosh: return kUseFirst;
    case Op::sqrt:
    case Op::rsqrt:
    case Op::exp:
    case Op::exp2:
    case Op::tan:
    case Op::tanh: return kUseResult;
    default: internal_error("an operation without a derivative");
  }
}

namespace {

/// Arithmetic of one type, short to write.
struct Arithmetic {
  Builder& b;
  Type type;
  Loc loc;

  Id number(double x) const { return b.constant_float(type, x); }
  Id add(Id x, Id y) const { return b.pure(Op::add, type, {x, y}, loc); }
  Id sub(Id x, Id y) const { return b.pure(Op::sub, type, {x, y}, loc); }
  Id mul(Id x, Id y) const { return b.pure(Op::mul, type, {x, y}, loc); }
  Id div(Id x, Id y) const { return b.pure(Op::div, type, {x, y}, loc); }
  Id neg(Id x) const { return b.pure(Op::neg, type, {x}, loc); }
  Id call(Op op, Id x) const { return b.pure(op, type, {x}, loc); }
  Id test(Op op, Id x, Id y) const { return b.pure(op, Type::b1, {x, y}, loc); }
  Id select(Id condition, Id x, Id y) const { return b.pure(Op::select, type, {condition, x, y}, loc); }
  Id square(Id x) const { return mul(x, x); }
  Id both(Id x, Id y) const { return b.pure(Op::bit_and, Type::b1, {x, y}, loc); }
  Id either(Id x, Id y) const { return b.pure(Op::bit_or, Type::b1, {x, y}, loc); }
};

/// Which operand min and max return: of equal ones the first, of a number and a NaN the number.
Id takes_first(const Arithmetic& m, Op op, Id x, Id y) {
  const Id better = op == Op::min ? m.test(Op::le, x, y) : m.test(Op::le, y, x);
  return m.either(better, m.b.pure(Op::is_nan, Type::b1, {y}, m.loc));
}

/// g / cos(asin(x)). The slope at the ends is infinite; 0 is chosen, as for roots.
Id over_cosine(const Arithmetic& m, Id g, Id x) {
  // Not 1 - x^2, which cancels near the ends.
  const Id square = m.mul(m.sub(m.number(1), x), m.add(m.number(1), x)), zero = m.number(0);
  return m.select(m.test(Op::eq, square, zero), zero, m.div(g, m.call(Op::sqrt, square)));
}

}  // namespace

Id derivative(Builder& builder, const DerivativeSite& site, int k, Type operand_type) {
  const Inst& inst = site.inst;
  const Arithmetic m{builder, inst.type, inst.loc()};
  const Id x = site.operands[0], y = site.operands[1], r = site.result, g = site.gradient;
  switch (inst.op) {
    case Op::add: return g;
    case Op::sub: return k == 0 ? g : m.neg(g);
    case Op::neg: return m.neg(g);
    case Op::mul: return m.mul(g, k == 0 ? y : x);
    case Op::div: return k == 0 ? m.div(g, y) : m.neg(m.div(m.mul(g, r), y));
    case Op::rem: return k == 0 ? g : m.neg(m.mul(g, m.call(Op::trunc, m.div(x, y))));
    case Op::fma: return k == 2 ? g : m.mul(g, k == 0 ? y : x);
    case Op::abs: return m.select(m.test(Op::lt, x, m.number(0)), m.neg(g), g);
    case Op::min:
    case Op::max: {
      const Id first = takes_first(m, inst.op, x, y), zero = m.number(0);
      return k == 0 ? m.select(first, g, zero) : m.select(first, zero, g);
    }
    case Op::select: return k == 1 ? m.select(x, g, m.number(0)) : m.select(x, m.number(0), g);
    case Op::convert: return builder.pure(Op::convert, operand_type, {g}, m.loc);

    // The slope at 0 is infinite; 0 is chosen, so that lengths of zero vectors have the gradient 0 and not NaN.
    case Op::sqrt: {
      const Id zero = m.number(0);
      return m.select(m.test(Op::eq, r, zero), zero, m.div(m.mul(g, m.number(0.5)), r));
    }
    case Op::rsqrt: return m.mul(m.mul(g, m.number(-0.5)), m.mul(r, m.square(r)));
    case Op::exp: return m.mul(g, r);
    case Op::exp2: return m.mul(g, m.mul(r, m.number(std::numbers::ln2)));
    case Op::log: return m.div(g, x);
    case Op::log2: return m.div(g, m.mul(x, m.number(std::numbers::ln2)));
    case Op::pow:
      if (k == 0) {
        const Id lower = builder.pure(Op::pow, inst.type, {x, m.sub(y, m.number(1))}, m.loc);
        // 0: a constant power, also at the base 0, and the base 0 where the slope is infinite.
        const Id one_sided = m.both(m.test(Op::eq, x, m.number(0)), m.test(Op::lt, y, m.number(1)));
        return m.select(m.either(m.test(Op::eq, y, m.number(0)), one_sided), m.number(0), m.mul(g, m.mul(y, lower)));
      }
      // Beside positive bases the power is not defined around an exponent.
      return m.select(m.test(Op::lt, m.number(0), x), m.mul(g, m.mul(r, m.call(Op::log, x))), m.number(0));
    case Op::sin: return m.mul(g, m.call(Op::cos, x));
    case Op::cos: return m.neg(m.mul(g, m.call(Op::sin, x)));
    case Op::tan: return m.mul(g, m.add(m.square(r), m.number(1)));
    case Op::asin: return over_cosine(m, g, x);
    case Op::acos: return m.neg(over_cosine(m, g, x));
    case Op::atan: return m.div(g, m.add(m.square(x), m.number(1)));
    case Op::atan2: {
      // Over the larger operand first: the squares of small or large ones are no numbers.
      const Id size = m.b.pure(Op::max, m.type, {m.call(Op::abs, x), m.call(Op::abs, y)}, m.loc), zero = m.number(0);
      const Id u = m.div(x, size), v = m.div(y, size);
      const Id slope = m.div(m.div(m.mul(g, k == 0 ? v : m.neg(u)), m.add(m.square(u), m.square(v))), size);
      return m.select(m.test(Op::eq, size, zero), zero, slope);
    }
    case Op::sinh: return m.mul(g, m.call(Op::cosh, x));
    case Op::cosh: return m.mul(g, m.call(Op::sinh, x));
    case Op::tanh: return m.mul(g, m.sub(m.number(1), m.square(r)));
    default: internal_error("an operation without a derivative", inst.loc());
  }
}

}  // namespace weft::ir
