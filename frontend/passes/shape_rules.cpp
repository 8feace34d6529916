// How operations carry shapes from operands to results. Arithmetic of affine values is that of their bases and steps.
#include "shape_rules.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace weft::ir {

namespace {

using Range = LaneValue::Range;
using Kind = Shape::Kind;

constexpr LaneValue kVarying = {{Kind::varying, 0}, {}, 1};
constexpr std::uint64_t kMostMultiple = 1ull << 62;

/// The range if the type holds all of it.
std::optional<Range> within(Type type, std::int64_t low, std::int64_t high) {
  const int digits = bits(type) - (is_signed(type) ? 1 : 0);
  const std::int64_t greatest =
      digits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << digits) - 1;
  const std::int64_t least = is_signed(type) ? -greatest - 1 : 0;
  if (low < least || high > greatest) return {};
  return Range{low, high};
}

/// The shape of what differs by `step`, modulo the type's range, from lane to lane.
Shape stepping(Type type, std::uint64_t step) {
  const int unused = 64 - bits(type);
  const auto signed_step = static_cast<std::int64_t>(step << unused) >> unused;
  return signed_step ? Shape{Kind::affine, signed_step} : Shape{};
}

/// A function of operands about which nothing but their agreement is known.
LaneValue any_function(std::span<const LaneValue> args) {
  return std::ranges::all_of(args, [](const LaneValue& v) { return v.shape.is_uniform(); }) ? LaneValue{} : kVarying;
}

LaneValue sum(Type type, const LaneValue& a, const LaneValue& b, bool subtract) {
  LaneValue v;
  const auto x = static_cast<std::uint64_t>(a.shape.step), y = static_cast<std::uint64_t>(b.shape.step);
  v.shape = stepping(type, subtract ? x - y : x + y);
  v.multiple = std::min(a.multiple, b.multiple);
  if (!a.range || !b.range) return v;
  std::int64_t low, high;
  const bool overflows = subtract ? __builtin_sub_overflow(a.range->low, b.range->high, &low) ||
                                        __builtin_sub_overflow(a.range->high, b.range->low, &high)
                                  : __builtin_add_overflow(a.range->low, b.range->low, &low) ||
                                        __builtin_add_overflow(a.range->high, b.range->high, &high);
  if (!overflows) v.range = within(type, low, high);
  return v;
}

/// The value times a constant, given by its bits and, if 64 bits with a sign hold it, its number.
LaneValue scaled(Type type, const LaneValue& a, std::uint64_t factor, std::optional<std::int64_t> number) {
  LaneValue v;
  v.shape = a.shape.is_uniform() ? a.shape : stepping(type, static_cast<std::uint64_t>(a.shape.step) * factor);
  const std::uint64_t power = factor ? factor & (~factor + 1) : kMostMultiple;
  v.multiple = a.multiple > kMostMultiple / power ? kMostMultiple : a.multiple * power;
  std::int64_t x, y;
  if (a.range && number && !__builtin_mul_overflow(a.range->low, *number, &x) &&
      !__builtin_mul_overflow(a.range->high, *number, &y))
    v.range = within(type, std::min(x, y), std::max(x, y));
  return v;
}

/// Whether all lanes have the same value but for the low `digits` bits. The base leaves room for the lanes there.
bool differ_only_below(const LaneValue& a, int digits, std::uint32_t lanes) {
  if (a.shape.kind != Kind::affine || a.shape.step < 0) return false;
  const std::uint64_t room = std::min(a.multiple, std::uint64_t{1} << std::min(digits, 62));
  return static_cast<std::uint64_t>(a.shape.step) <= (room - 1) / std::max(lanes - 1, 1u);
}

/// The low `digits` bits of the value.
LaneValue low_part(const LaneValue& a, int digits, std::uint32_t lanes) {
  LaneValue v{a.shape, {}, std::min(a.multiple, std::uint64_t{1} << digits)};
  if (!a.shape.is_uniform() && !differ_only_below(a, digits, lanes)) return kVarying;
  v.range = Range{0, (std::int64_t{1} << digits) - 1};
  return v;
}

/// The value divided by a positive constant, toward minus infinity.
LaneValue quotient(const LaneValue& a, std::int64_t divisor, std::uint32_t lanes) {
  LaneValue v = a;
  v.multiple = 1;
  const bool is_power = std::has_single_bit(static_cast<std::uint64_t>(divisor));
  if (a.shape.is_uniform() ||
      (is_power && differ_only_below(a, std::countr_zero(static_cast<std::uint64_t>(divisor)), lanes))) {
    v.shape = {};
  } else if (a.range && a.shape.step % divisor == 0) {
    v.shape.step /= divisor;
  } else {
    return kVarying;
  }
  // Rounding to the lower number is division where nothing is negative; else only a shift comes here.
  if (a.range) {
    const auto floor = [&](std::int64_t x) { return x / divisor - (x % divisor < 0 ? 1 : 0); };
    v.range = Range{floor(a.range->low), floor(a.range->high)};
  }
  return v;
}

bool is_never_negative(Type type, const LaneValue& a) { return is_unsigned(type) || (a.range && a.range->low >= 0); }

/// Arithmetic of integers whose second operand is a constant.
class WithConstant {
 public:
  WithConstant(Type type, std::uint64_t bits, std::uint32_t lanes) : type_(type), bits_(bits), lanes_(lanes) {
    const int unused = 64 - ir::bits(type);
    const auto extended = static_cast<std::int64_t>(bits << unused) >> unused;
    if (is_signed(type) || bits <= std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      number_ = is_signed(type) ? extended : static_cast<std::int64_t>(bits);
  }

  /// The result; nothing for operations and constants without a rule of their own.
  std::optional<LaneValue> result(Op op, const LaneValue& a) const {
    const int shift = static_cast<int>(bits_ & static_cast<std::uint64_t>(ir::bits(type_) - 1));
    const bool positive = number_ && *number_ > 0;
    const bool power = positive && std::has_single_bit(bits_);
    switch (op) {
      case Op::mul: return scaled(type_, a, bits_, number_);
      case Op::shl: {
        const bool fits = shift < 63;
        return scaled(type_, a, std::uint64_t{1} << shift,
                      fits ? std::optional<std::int64_t>(std::int64_t{1} << shift) : std::nullopt);
      }
      case Op::shr:
        if (shift < 63) return quotient(a, std::int64_t{1} << shift, lanes_);
        return {};
      case Op::div:
        if (positive && is_never_negative(type_, a)) return quotient(a, *number_, lanes_);
        return {};
      case Op::rem:
        if (power && is_never_negative(type_, a)) return low_part(a, std::countr_zero(bits_), lanes_);
        return {};
      case Op::bit_and: return masked(a);
      default: return {};
    }
  }

 private:
  std::optional<LaneValue> masked(const LaneValue& a) const {
    const std::uint64_t off = ~bits_ & mask(type_);
    if (number_ && *number_ > 0 && !(bits_ & (bits_ + 1)) && bits_ < kMostMultiple)
      return low_part(a, int(std::bit_width(bits_)), lanes_);
    // The value without its low bits
    if (off && !(off & (off + 1)) && differ_only_below(a, int(std::bit_width(off)), lanes_))
      return LaneValue{{}, {}, off + 1};
    return {};
  }

  Type type_;
  std::uint64_t bits_;
  std::uint32_t lanes_;
  std::optional<std::int64_t> number_;  ///< the constant, if 64 bits with a sign hold it
};

bool step_alike(const LaneValue& a, const LaneValue& b) { return a.shape.kind == Kind::affine && a.shape == b.shape; }

/// The lesser or the greater of two values. Of affine ones the same is the lesser in all lanes, if none wraps.
LaneValue extremum(const LaneValue& a, const LaneValue& b, bool greater) {
  if (!step_alike(a, b) && (!a.shape.is_uniform() || !b.shape.is_uniform())) return kVarying;
  LaneValue v = join(a, b);
  if (!v.range) return v.shape.is_uniform() ? v : kVarying;
  v.range = greater ? Range{std::max(a.range->low, b.range->low), std::max(a.range->high, b.range->high)}
                    : Range{std::min(a.range->low, b.range->low), std::min(a.range->high, b.range->high)};
  return v;
}

/// A conversion among integers by number, or by bits.
LaneValue converted(Type from, Type to, const LaneValue& a) {
  LaneValue v = a;
  v.range = a.range ? within(to, a.range->low, a.range->high) : a.range;
  if (a.shape.is_uniform()) return v;
  // In a wider type lanes that have wrapped would be far from the others.
  if (bits(to) > bits(from) && !a.range) return kVarying;
  v.shape = stepping(to, static_cast<std::uint64_t>(a.shape.step));
  return v;
}

LaneValue of_integers(const Module& module, const Inst& inst, std::span<const LaneValue> args, std::uint32_t lanes) {
  const Type type = module[module.operands[inst.first_arg]].type;
  const auto constant = [&](std::uint32_t k) -> const Inst* {
    const Inst& operand = module[module.operands[inst.first_arg + k]];
    return operand.op == Op::constant ? &operand : nullptr;
  };
  switch (inst.op) {
    case Op::add: return sum(type, args[0], args[1], false);
    case Op::sub: return sum(type, args[0], args[1], true);
    case Op::neg: return scaled(type, args[0], ~0ull, -1);
    case Op::bit_not: return sum(type, {{}, within(type, -1, -1), 1}, args[0], true);  // -1 - x
    case Op::abs: return is_never_negative(type, args[0]) ? args[0] : any_function(args);
    case Op::min: return extremum(args[0], args[1], false);
    case Op::max: return extremum(args[0], args[1], true);
    case Op::eq:
    case Op::ne: return step_alike(args[0], args[1]) ? LaneValue{} : any_function(args);
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::shl:
    case Op::shr:
    case Op::bit_and: {
      const bool commutes = inst.op == Op::mul || inst.op == Op::bit_and;
      const std::uint32_t k = commutes && constant(0) ? 0 : 1;
      if (!constant(k)) return any_function(args);
      return WithConstant(type, constant(k)->imm, lanes).result(inst.op, args[1 - k]).value_or(any_function(args));
    }
    default: return any_function(args);
  }
}

}  // namespace

LaneValue join(const LaneValue& a, const LaneValue& b) {
  LaneValue v;
  if (a.shape != b.shape || a.shape.kind == Kind::varying) return kVarying;
  v.shape = a.shape;
  v.multiple = std::min(a.multiple, b.multiple);
  if (a.range && b.range) v.range = Range{std::min(a.range->low, b.range->low), std::max(a.range->high, b.range->high)};
  return v;
}

LaneValue constant_lanes(const Inst& constant) {
  LaneValue v;
  if (!is_int(constant.type)) return v;
  const int unused = 64 - bits(constant.type);
  const auto number = static_cast<std::int64_t>(constant.imm << unused) >> unused;
  if (is_signed(constant.type))
    v.range = Range{number, number};
  else if (constant.imm <= std::uint64_t(std::numeric_limits<std::int64_t>::max()))
    v.range = Range{std::int64_t(constant.imm), std::int64_t(constant.imm)};
  v.multiple = constant.imm ? std::min(constant.imm & (~constant.imm + 1), kMostMultiple) : kMostMultiple;
  return v;
}

LaneValue counting_lanes(std::int64_t high, std::uint64_t multiple) {
  return {{Kind::affine, 1}, Range{0, high}, multiple};
}

LaneValue pure_lanes(const Module& module, const Inst& inst, std::span<const LaneValue> args, std::uint32_t lanes) {
  const Type from = module[module.operands[inst.first_arg]].type;
  if (inst.op == Op::select) return join(args[1], args[2]);
  if (!is_int(from)) return any_function(args);
  if (inst.op == Op::convert || inst.op == Op::bitcast)
    return is_int(inst.type) ? converted(from, inst.type, args[0]) : any_function(args);
  return of_integers(module, inst, args, lanes);
}

}  // namespace weft::ir
