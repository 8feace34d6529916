// Pure operations: what frontend/ir/evaluate.cpp says of one value, on one value or on those of all lanes.
#include "../frontend/support/error.h"
#include "emitter.h"
#include "real.h"

namespace weft::llvm {

using ir::Id;
using ir::Inst;
using ir::is_float;
using ir::is_int;
using ir::is_signed;
using ir::Op;
using ir::Type;

void Emitter::pure(Id id) {
  const Inst& inst = kernel_[id];
  if (inst.num_args == 0 || ir::info(inst.op).effect != ir::Effect::pure)
    internal_error("llvm: an operation that the emitter lacks", inst.loc());
  const std::uint32_t lanes = held_lanes(id);
  Texts x;
  for (Id operand : kernel_.args(id)) x.push_back(lanes == 1 ? scalar(operand) : vector(operand));
  const Type from = kernel_[kernel_.arg(id, inst.op == Op::select ? 1 : 0)].type;
  put(id, compute(inst.op, from, inst.type, x, lanes), lanes);
}

std::string Emitter::choose(Type t, const std::string& c, const std::string& a, const std::string& b,
                            std::uint32_t lanes) {
  const std::string of = type_name(t, lanes);
  return out_.def("select {} {}, {} {}, {} {}", type_name(Type::b1, lanes), c, of, a, of, b);
}

std::string Emitter::compute(Op op, Type from, Type to, Operands x, std::uint32_t lanes) {
  switch (op) {
    case Op::select: return choose(to, x[0], x[1], x[2], lanes);
    case Op::convert: return convert(from, to, x[0], lanes);
    case Op::bitcast: return reinterpret(from, to, x[0], lanes);
    case Op::detach: return x[0];
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
      if (from != Type::f16) return compare(op, from, x, lanes);
      break;
    default: break;
  }
  if (from == Type::f16) return half(op, to, x, lanes);
  return is_float(from) ? real(op, from, x, lanes) : integer(op, from, x, lanes);
}

std::string Emitter::compare(Op op, Type t, Operands x, std::uint32_t lanes) {
  const char* names[4] = {"eq", "ne", is_signed(t) ? "slt" : "ult", is_signed(t) ? "sle" : "ule"};
  const char* real_names[4] = {"oeq", "une", "olt", "ole"};
  const int k = static_cast<int>(op) - static_cast<int>(Op::eq);
  return out_.def("{} {} {} {}, {}", is_float(t) ? "fcmp" : "icmp", is_float(t) ? real_names[k] : names[k],
                  type_name(t, lanes), x[0], x[1]);
}

// ---- Integers and booleans

std::string Emitter::integer(Op op, Type t, Operands x, std::uint32_t lanes) {
  auto constant = [&](std::uint64_t bits) { return literal(t, bits & ir::mask(t), lanes); };
  switch (op) {
    case Op::add: return binary("add", t, x[0], x[1], lanes);
    case Op::sub: return binary("sub", t, x[0], x[1], lanes);
    case Op::mul: return binary("mul", t, x[0], x[1], lanes);
    case Op::div:
    case Op::rem: return quotient(op, t, x, lanes);
    case Op::neg: return binary("sub", t, constant(0), x[0], lanes);
    case Op::abs: {
      if (!is_signed(t)) return x[0];
      const std::string zero = constant(0), negative = compare(Op::lt, t, Texts{x[0], zero}, lanes);
      return choose(t, negative, binary("sub", t, zero, x[0], lanes), x[0], lanes);
    }
    case Op::min:
    case Op::max: return extremum(op, t, x, lanes);
    case Op::mul_hi: {
      const Type wide = is_signed(t) ? Type::i64 : Type::u64;
      const std::string product =
          binary("mul", wide, convert(t, wide, x[0], lanes), convert(t, wide, x[1], lanes), lanes);
      return convert(Type::u64, t, binary("lshr", wide, product, literal(wide, 32, lanes), lanes), lanes);
    }
    case Op::bit_and: return binary("and", t, x[0], x[1], lanes);
    case Op::bit_or: return binary("or", t, x[0], x[1], lanes);
    case Op::bit_xor: return binary("xor", t, x[0], x[1], lanes);
    case Op::bit_not: return binary("xor", t, x[0], constant(~0ull), lanes);
    case Op::popcount: return out_.intrinsic("ctpop", t, lanes, {x[0]});
    case Op::shl:
    case Op::shr: {
      // LLVM leaves shifts by the width and more undefined.
      const std::string amount = binary("and", t, x[1], constant(static_cast<std::uint64_t>(ir::bits(t) - 1)), lanes);
      return binary(op == Op::shl ? "shl" : is_signed(t) ? "ashr" : "lshr", t, x[0], amount, lanes);
    }
    default: internal_error("llvm: an operation on integers that the emitter lacks");
  }
}

// What the processor would trap on is replaced in all lanes, active or not:
//   safe = b == 0 or b == -1 ? 1 : b
//   q = a / safe                        so that x / 0 = x
//   q = b == -1 ? -a : q                MIN / -1 = MIN
//   r = a % safe                        so that x % 0 = 0 and x % -1 = 0
std::string Emitter::quotient(Op op, Type t, Operands x, std::uint32_t lanes) {
  const std::string zero = literal(t, 0, lanes), one = literal(t, 1, lanes), minus_one = literal(t, ir::mask(t), lanes);
  const std::string by_zero = compare(Op::eq, t, Texts{x[1], zero}, lanes);
  std::string by_minus_one, replaced = by_zero;
  if (is_signed(t)) {
    by_minus_one = compare(Op::eq, t, Texts{x[1], minus_one}, lanes);
    replaced = binary("or", Type::b1, by_zero, by_minus_one, lanes);
  }
  const std::string safe = choose(t, replaced, one, x[1], lanes);
  // Vectors have no division of integers; 64 bits go lane by lane, and constants become multiplications.
  const bool is_constant = lanes == 1 || x[1].find('<') != std::string::npos;
  const bool by_floats = !is_constant && ir::bits(t) <= 32;
  std::string q;
  if (by_floats)
    q = exact_quotient(t, x[0], safe, lanes);
  else if (op == Op::div)
    q = binary(is_signed(t) ? "sdiv" : "udiv", t, x[0], safe, lanes);
  else
    return binary(is_signed(t) ? "srem" : "urem", t, x[0], safe, lanes);
  if (op == Op::rem) return binary("sub", t, x[0], binary("mul", t, q, safe, lanes), lanes);
  return is_signed(t) ? choose(t, by_minus_one, binary("sub", t, zero, x[0], lanes), q, lanes) : q;
}

// The quotient of floats, rounded, has the whole part of the true one: that is at least 1 / b away from the next whole
// number, and the rounding changes it by less. In float64 for 32 bits, in float32 for less.
std::string Emitter::exact_quotient(Type t, const std::string& a, const std::string& b, std::uint32_t lanes) {
  const Type f = ir::bits(t) == 32 ? Type::f64 : Type::f32;
  const std::string q = binary("fdiv", f, convert(t, f, a, lanes), convert(t, f, b, lanes), lanes);
  const Type wide = ir::bits(t) == 32 ? t : is_signed(t) ? Type::i32 : Type::u32;
  return convert(wide, t, cast(is_signed(t) ? "fptosi" : "fptoui", f, wide, q, lanes), lanes);
}

// ---- Floats

std::string Emitter::real(Op op, Type t, Operands x, std::uint32_t lanes) {
  if (is_real_function(op, t)) return real_function(op, t, x, lanes);
  switch (op) {
    case Op::add: return binary("fadd", t, x[0], x[1], lanes);
    case Op::sub: return binary("fsub", t, x[0], x[1], lanes);
    case Op::mul: return binary("fmul", t, x[0], x[1], lanes);
    case Op::div: return binary("fdiv", t, x[0], x[1], lanes);
    case Op::rem: {
      const std::string whole = out_.intrinsic("trunc", t, lanes, {binary("fdiv", t, x[0], x[1], lanes)});
      return binary("fsub", t, x[0], binary("fmul", t, x[1], whole, lanes), lanes);
    }
    case Op::neg: return out_.def("fneg {} {}", type_name(t, lanes), x[0]);
    case Op::abs: return out_.intrinsic("fabs", t, lanes, {x[0]});
    case Op::min:
    case Op::max: return extremum(op, t, x, lanes);
    case Op::fma: return fused(t, x, lanes);
    case Op::sqrt: return out_.intrinsic("sqrt", t, lanes, {x[0]});
    case Op::rsqrt:
      return binary("fdiv", t, real_literal(t, 1, lanes), out_.intrinsic("sqrt", t, lanes, {x[0]}), lanes);
    case Op::floor: return out_.intrinsic("floor", t, lanes, {x[0]});
    case Op::ceil: return out_.intrinsic("ceil", t, lanes, {x[0]});
    case Op::trunc: return out_.intrinsic("trunc", t, lanes, {x[0]});
    case Op::round_even: return out_.intrinsic("roundeven", t, lanes, {x[0]});
    case Op::is_nan: return out_.def("fcmp uno {} {}, {}", type_name(t, lanes), x[0], x[0]);
    case Op::is_inf: {
      const std::uint64_t infinity = t == Type::f32 ? 0x7f800000 : 0x7ff0000000000000;
      return compare(Op::eq, t, Texts{out_.intrinsic("fabs", t, lanes, {x[0]}), literal(t, infinity, lanes)}, lanes);
    }
    case Op::exp:
    case Op::exp2:
    case Op::log:
    case Op::log2:
    case Op::pow:
    case Op::sin:
    case Op::cos:
    case Op::tan:
    case Op::asin:
    case Op::acos:
    case Op::atan:
    case Op::atan2:
    case Op::sinh:
    case Op::cosh:
    case Op::tanh: internal_error("llvm: a function that the library lacks");
    default: internal_error("llvm: an operation on floats that the emitter lacks");
  }
}

// The second operand if it comes first, or if the first one is a NaN. LLVM's own minnum leaves signalling NaNs open.
std::string Emitter::extremum(Op op, Type t, Operands x, std::uint32_t lanes) {
  const std::string second = compare(Op::lt, t, op == Op::min ? Texts{x[1], x[0]} : Texts{x[0], x[1]}, lanes);
  const std::string chosen = choose(t, second, x[1], x[0], lanes);
  if (!is_float(t)) return chosen;
  const std::string nan = out_.def("fcmp uno {} {}, {}", type_name(t, lanes), x[0], x[0]);
  return choose(t, nan, x[1], chosen, lanes);
}

// A processor without the instruction rounds twice, as docs/semantics.md allows: LLVM would call a function for it.
std::string Emitter::fused(Type t, Operands x, std::uint32_t lanes) {
  if (target_.fused) return out_.intrinsic("fma", t, lanes, {x[0], x[1], x[2]});
  return binary("fadd", t, binary("fmul", t, x[0], x[1], lanes), x[2], lanes);
}

// float16 is computed in float32 and rounded once; its fma in float64, which holds the product and all but the least
// sums.
std::string Emitter::half(Op op, Type to, Operands x, std::uint32_t lanes) {
  const Type bits = Type::u16;
  if (op == Op::neg) return binary("xor", bits, x[0], literal(bits, 0x8000, lanes), lanes);
  if (op == Op::abs) return binary("and", bits, x[0], literal(bits, 0x7fff, lanes), lanes);
  Texts wide;
  const Type f = op == Op::fma ? Type::f64 : Type::f32;
  for (const std::string& each : x) wide.push_back(convert(Type::f16, f, each, lanes));
  if (op == Op::fma)
    return double_to_half(binary("fadd", f, binary("fmul", f, wide[0], wide[1], lanes), wide[2], lanes), lanes);
  const std::string made = compute(op, f, to == Type::f16 ? f : to, wide, lanes);
  return to == Type::f16 ? down(made, lanes) : made;
}

std::string Emitter::real_function(Op op, Type t, Operands x, std::uint32_t lanes) {
  for (const RealFunction& function : llvm::real_function(op, t, lanes)) out_.declare(function.name, function.text);
  const std::string name = real_function_name(op, t, lanes);
  if (is_entry_ && called_.try_emplace(name, real_function_declaration(op, t, lanes)).second)
    functions_.push_back(real_function_module(op, t, lanes));
  const std::string of = type_name(t, lanes);
  std::string operands;
  for (const std::string& each : x) operands += fmt::format("{}{} {}", operands.empty() ? "" : ", ", of, each);
  return out_.def("call {} {}({})", of, name, operands);
}

}  // namespace weft::llvm
