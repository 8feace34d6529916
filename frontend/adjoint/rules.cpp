// The derivative of each pure operation. docs/differentiability.md states the choices made where none exists.
#include "rules.h"

#include <functional>
#include <numbers>
#include <numeric>

#include "../support/error.h"

namespace weft::ir {

bool is_differentiable(const Module& module, Id id, int k) {
  const Inst& inst = module[id];
  if (info(inst.op).derivative != Derivative::differentiable || !is_float(inst.type)) return false;
  return is_float(module[module.arg(id, k)].type);
}

namespace {

/// Values as instructions, which the builder makes.
struct Written {
  using Value = Id;
  Builder& builder;
  Loc loc;

  Id number(Type type, double x) const { return builder.constant_float(type, x); }
  Id pure(Op op, Type type, std::initializer_list<Id> args) const { return builder.pure(op, type, args, loc); }
};

/// Values as the DerivativeUses that they are computed from, so that a rule itself tells what it uses.
struct Used {
  using Value = std::uint8_t;

  Value number(Type, double) const { return 0; }
  Value pure(Op, Type, std::initializer_list<Value> args) const {
    return std::accumulate(args.begin(), args.end(), Value{0}, std::bit_or<Value>());
  }
};

/// Arithmetic of one type, short to write.
template <class Values>
struct Arithmetic {
  using Value = typename Values::Value;
  Values values;
  Type type;

  Value number(double x) const { return values.number(type, x); }
  Value add(Value x, Value y) const { return values.pure(Op::add, type, {x, y}); }
  Value sub(Value x, Value y) const { return values.pure(Op::sub, type, {x, y}); }
  Value mul(Value x, Value y) const { return values.pure(Op::mul, type, {x, y}); }
  Value div(Value x, Value y) const { return values.pure(Op::div, type, {x, y}); }
  Value neg(Value x) const { return values.pure(Op::neg, type, {x}); }
  Value call(Op op, Value x) const { return values.pure(op, type, {x}); }
  Value call(Op op, Value x, Value y) const { return values.pure(op, type, {x, y}); }
  Value test(Op op, Value x, Value y) const { return values.pure(op, Type::b1, {x, y}); }
  Value select(Value condition, Value x, Value y) const { return values.pure(Op::select, type, {condition, x, y}); }
  Value square(Value x) const { return mul(x, x); }
  Value both(Value x, Value y) const { return values.pure(Op::bit_and, Type::b1, {x, y}); }
  Value either(Value x, Value y) const { return values.pure(Op::bit_or, Type::b1, {x, y}); }

  /// Returns whether min or max takes the first operand: the first of equal ones, and a number rather than a NaN.
  Value takes_first(Op op, Value x, Value y) const {
    const Value better = op == Op::min ? test(Op::le, x, y) : test(Op::le, y, x);
    return either(better, values.pure(Op::is_nan, Type::b1, {y}));
  }
  /// Returns g / cos(asin(x)). The slope at the ends is infinite; 0 is chosen, as for roots.
  Value over_cosine(Value g, Value x) const {
    // (1 - x) (1 + x), because 1 - x^2 cancels near the ends.
    const Value square = mul(sub(number(1), x), add(number(1), x)), zero = number(0);
    return select(test(Op::eq, square, zero), zero, div(g, call(Op::sqrt, square)));
  }
};

/// The gradient of operand k, which is of type `operand`, from the operands x and y, the result r and its gradient g.
/// A third operand is never needed.
template <class M, class Value = typename M::Value>
Value rule(const M& m, Op op, int k, Type operand, Value x, Value y, Value r, Value g) {
  switch (op) {
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
      const Value first = m.takes_first(op, x, y), zero = m.number(0);
      return k == 0 ? m.select(first, g, zero) : m.select(first, zero, g);
    }
    case Op::select: return k == 1 ? m.select(x, g, m.number(0)) : m.select(x, m.number(0), g);
    case Op::convert: return m.values.pure(Op::convert, operand, {g});

    // The slope at 0 is infinite; 0 is chosen, so that lengths of zero vectors have the gradient 0 and not NaN.
    case Op::sqrt: {
      const Value zero = m.number(0);
      return m.select(m.test(Op::eq, r, zero), zero, m.div(m.mul(g, m.number(0.5)), r));
    }
    case Op::rsqrt: return m.mul(m.mul(g, m.number(-0.5)), m.mul(r, m.square(r)));
    case Op::exp: return m.mul(g, r);
    case Op::exp2: return m.mul(g, m.mul(r, m.number(std::numbers::ln2)));
    case Op::log: return m.div(g, x);
    case Op::log2: return m.div(g, m.mul(x, m.number(std::numbers::ln2)));
    case Op::pow:
      if (k == 0) {
        const Value lower = m.call(Op::pow, x, m.sub(y, m.number(1)));
        // The gradient is 0 for the exponent 0, whatever the base, and for the base 0 if the slope is infinite there.
        const Value one_sided = m.both(m.test(Op::eq, x, m.number(0)), m.test(Op::lt, y, m.number(1)));
        return m.select(m.either(m.test(Op::eq, y, m.number(0)), one_sided), m.number(0), m.mul(g, m.mul(y, lower)));
      }
      // For other than positive bases the power is not defined around an exponent, and 0 is chosen.
      return m.select(m.test(Op::lt, m.number(0), x), m.mul(g, m.mul(r, m.call(Op::log, x))), m.number(0));
    case Op::sin: return m.mul(g, m.call(Op::cos, x));
    case Op::cos: return m.neg(m.mul(g, m.call(Op::sin, x)));
    case Op::tan: return m.mul(g, m.add(m.square(r), m.number(1)));
    case Op::asin: return m.over_cosine(g, x);
    case Op::acos: return m.neg(m.over_cosine(g, x));
    case Op::atan: return m.div(g, m.add(m.square(x), m.number(1)));
    case Op::atan2: {
      // Operands are divided by the larger one first, because squares of small or large ones leave the type's range.
      const Value height = m.call(Op::abs, x), width = m.call(Op::abs, y);
      const Value size = m.call(Op::max, height, width), zero = m.number(0);
      const Value u = m.div(x, size), v = m.div(y, size);
      const Value slope = m.div(m.div(m.mul(g, k == 0 ? v : m.neg(u)), m.add(m.square(u), m.square(v))), size);
      return m.select(m.test(Op::eq, size, zero), zero, slope);
    }
    case Op::sinh: return m.mul(g, m.call(Op::cosh, x));
    case Op::cosh: return m.mul(g, m.call(Op::sinh, x));
    case Op::tanh: return m.mul(g, m.sub(m.number(1), m.square(r)));
    default: internal_error("an operation without a derivative");
  }
}

}  // namespace

std::uint8_t derivative_uses(Op op, int k) {
  const Arithmetic<Used> sets{{}, Type::none};
  return rule(sets, op, k, Type::none, std::uint8_t{kUseFirst}, std::uint8_t{kUseSecond}, std::uint8_t{kUseResult},
              std::uint8_t{0});
}

Id derivative(Builder& builder, const DerivativeSite& site, int k, Type operand_type) {
  const Arithmetic<Written> code{{builder, site.inst.loc()}, site.inst.type};
  return rule(code, site.inst.op, k, operand_type, site.operands[0], site.operands[1], site.result, site.gradient);
}

}  // namespace weft::ir
