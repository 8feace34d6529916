// Folding of constants and exact algebraic identities, applied as pure values are built.
#include <optional>

#include "builder.h"
#include "evaluate.h"

namespace weft::ir {

namespace {

/// The bits of the result if all operands are constants.
std::optional<std::uint64_t> folded(const Module& module, Op op, Type type, std::span<const Id> args) {
  if (args.empty()) return std::nullopt;
  std::uint64_t values[4];
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (module[args[k]].op != Op::constant) return std::nullopt;
    values[k] = module[args[k]].imm;
  }
  return evaluate(op, module[args[op == Op::select ? 1 : 0]].type, type, {values, args.size()});
}

}  // namespace

// An identity must hold for every bit pattern: for floats, x + 0 is none (-0 + 0 is +0), and neither is x * 0 (NaN).
//
// In one piece: a table of identities, a case for each operation.
Id Builder::simplify(Op op, Type type, std::span<const Id> args, Loc loc) {
  if (const auto bits = folded(module_, op, type, args)) return constant(type, *bits);
  const Inst* in[4] = {};
  for (std::size_t k = 0; k < args.size(); ++k) in[k] = &module_[args[k]];
  auto is_const = [&](int k) { return in[k]->op == Op::constant; };
  auto is_value = [&](int k, std::int64_t v) {
    if (!is_const(k)) return false;
    return is_float(in[k]->type) ? in[k]->imm == from_double(in[k]->type, double(v))
                                 : in[k]->imm == (std::uint64_t(v) & mask(in[k]->type));
  };
  const bool integer = is_int(type);
  const bool same = args.size() == 2 && args[0] == args[1];

  switch (op) {
    case Op::add:
      if (integer && is_value(1, 0)) return args[0];
      // (x + c) + d is x + (c + d), which is frequent in indices.
      if (integer && is_const(1) && in[0]->op == Op::add) {
        Id x = module_.arg(args[0], 0), c = module_.arg(args[0], 1);
        if (module_[c].op == Op::constant && is_visible(x))
          return pure(Op::add, type, {x, constant(type, module_[c].imm + in[1]->imm)}, loc);
      }
      break;
    case Op::sub:
      if (is_value(1, 0)) return args[0];  // for floats this value is +0, and x - (+0) is x for every x
      if (integer && same) return constant(type, 0);
      if (integer && is_const(1)) return pure(Op::add, type, {args[0], constant(type, 0 - in[1]->imm)}, loc);
      break;
    case Op::mul:
      if (is_value(1, 1)) return args[0];
      if (integer && is_value(1, 0)) return args[1];
      break;
    case Op::div:
      if (is_value(1, 1)) return args[0];
      break;
    case Op::rem:
      if (integer && is_value(1, 1)) return constant(type, 0);
      break;
    case Op::pow:
      if (is_value(1, 0)) return constant_float(type, 1);
      if (is_value(1, 1)) return args[0];
      // Rounded as written: whether the exponent is known here or by a later pass must not tell.
      if (is_value(1, 2)) {
        const Id twice[] = {args[0], args[0]};
        return rounded(kRounded, Op::mul, type, twice, loc);
      }
      break;
    case Op::neg:
    case Op::bit_not:
      if (in[0]->op == op) return module_.arg(args[0], 0);
      break;
    case Op::detach:
      if (in[0]->op == op) return args[0];
      break;
    case Op::abs:
      if (in[0]->op == Op::abs || is_unsigned(type)) return args[0];
      break;
    case Op::min:
    case Op::max:
      if (same) return args[0];
      break;
    case Op::bit_and:
      if (same || is_value(1, -1)) return args[0];
      if (is_value(1, 0)) return args[1];
      break;
    case Op::bit_or:
      if (same || is_value(1, 0)) return args[0];
      if (is_value(1, -1)) return args[1];
      break;
    case Op::bit_xor:
      if (is_value(1, 0)) return args[0];
      if (same) return constant(type, 0);
      break;
    case Op::shl:
    case Op::shr:
      if (is_value(1, 0)) return args[0];
      break;
    case Op::eq:
    case Op::le:
      if (same && !is_float(in[0]->type)) return constant(Type::b1, 1);
      break;
    case Op::ne:
    case Op::lt:
      if (same && !is_float(in[0]->type)) return constant(Type::b1, 0);
      break;
    case Op::select:
      if (args[1] == args[2]) return args[1];
      if (is_const(0)) return in[0]->imm ? args[1] : args[2];
      if (type == Type::b1 && is_value(1, 1) && is_value(2, 0)) return args[0];
      break;
    case Op::convert:
      if (in[0]->type == type) return args[0];
      break;
    case Op::bitcast:
      if (in[0]->type == type) return args[0];
      if (in[0]->op == Op::bitcast) return pure(Op::bitcast, type, {module_.arg(args[0], 0)}, loc);
      break;
    default: break;
  }
  return kNone;
}

}  // namespace weft::ir
