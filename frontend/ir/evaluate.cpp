// The meaning of every pure operation on scalars, one small function for each operation and type.
#include "evaluate.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "../support/error.h"
#include "../support/platform.h"
#include "../types/half.h"

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "the meaning of operations rests on IEEE arithmetic: no fast math, no extended precision"
#endif

namespace weft::ir {

namespace {

using Bits = std::uint64_t;

// ---- values of each type ----

/// The host's type in which a type of the IR is computed. Integers are computed in 64 bits, which hold every
/// intermediate result; float16 in float, whose result rounds to the same half as the exact one does for + - * / and
/// sqrt.
template <Type T>
auto compute_type() {
  if constexpr (is_bool(T)) {
    return bool{};
  } else if constexpr (is_signed(T)) {
    return std::int64_t{};
  } else if constexpr (is_unsigned(T)) {
    return std::uint64_t{};
  } else if constexpr (T == Type::f64) {
    return double{};
  } else {
    return float{};
  }
}
template <Type T>
using Compute = decltype(compute_type<T>());

template <Type T>
Compute<T> get(Bits bits) {
  if constexpr (is_signed(T)) {
    return static_cast<std::int64_t>(bits << (64 - ir::bits(T))) >> (64 - ir::bits(T));
  } else if constexpr (T == Type::f16) {
    return detail::half_value(static_cast<std::uint16_t>(bits));
  } else if constexpr (T == Type::f32) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (T == Type::f64) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<Compute<T>>(bits);
  }
}

/// The NaN that stands for all that arithmetic makes, because hosts disagree on their signs and constants are hashed.
template <Type T>
constexpr Bits quiet_nan() {
  return T == Type::f16 ? 0x7e00 : T == Type::f32 ? 0x7fc00000 : 0x7ff8000000000000;
}

/// Rounds once to T. `Value` is Compute<T>, or double for a result that was computed with bits to spare.
template <Type T, class Value>
Bits put(Value value) {
  if constexpr (is_float(T)) {
    if (value != value) return quiet_nan<T>();
    if constexpr (T == Type::f16) {
      return detail::half_bits_from_double(value);
    } else if constexpr (T == Type::f32) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    } else {
      return std::bit_cast<Bits>(static_cast<double>(value));
    }
  } else {
    return static_cast<Bits>(value) & mask(T);
  }
}

// ---- from a type known when the program runs to one known when it is compiled ----

template <Type T>
using TypeTag = std::integral_constant<Type, T>;

/// Returns the Evaluator that `make(TypeTag<T>{})` makes for the type, or null unless `allowed(T)`.
template <bool (*allowed)(Type), class Make>
Evaluator for_type(Type type, Make make) {
  switch (type) {
#define WEFT_TYPE(T)                                                 \
  case Type::T:                                                      \
    if constexpr (allowed(Type::T)) return make(TypeTag<Type::T>{}); \
    return nullptr;
    WEFT_TYPE(b1)
    WEFT_TYPE(i8)
    WEFT_TYPE(i16)
    WEFT_TYPE(i32)
    WEFT_TYPE(i64)
    WEFT_TYPE(u8)
    WEFT_TYPE(u16)
    WEFT_TYPE(u32)
    WEFT_TYPE(u64)
    WEFT_TYPE(f16)
    WEFT_TYPE(f32)
    WEFT_TYPE(f64)
#undef WEFT_TYPE
    case Type::none: break;
  }
  return nullptr;
}

constexpr bool any_type(Type) { return true; }
constexpr bool real(Type t) { return is_float(t); }
constexpr bool integer(Type t) { return is_int(t); }
constexpr bool numeric(Type t) { return is_numeric(t); }
constexpr bool logical(Type t) { return is_bool(t) || is_int(t); }
constexpr bool word(Type t) { return t == Type::i32 || t == Type::u32; }

/// Evaluates F(tag, a, b, c) on bits.
template <bool (*allowed)(Type), auto F>
Evaluator on_bits(Type type) {
  return for_type<allowed>(type, [](auto tag) -> Evaluator {
    return [](Bits a, Bits b, Bits c) -> Bits { return F(decltype(tag){}, a, b, c); };
  });
}

/// Evaluates F(x, y), a value, on values.
template <bool (*allowed)(Type), auto F>
Evaluator on_values(Type type) {
  return for_type<allowed>(type, [](auto tag) -> Evaluator {
    constexpr Type T = decltype(tag)::value;
    return [](Bits a, Bits b, Bits) -> Bits { return put<T>(F(get<T>(a), get<T>(b))); };
  });
}

/// Evaluates F(x, y), a boolean, on values.
template <bool (*allowed)(Type), auto F>
Evaluator comparison(Type type) {
  return for_type<allowed>(type, [](auto tag) -> Evaluator {
    constexpr Type T = decltype(tag)::value;
    return [](Bits a, Bits b, Bits) -> Bits { return F(get<T>(a), get<T>(b)); };
  });
}

/// A number as it is; instead of any NaN a quiet one. C's pow() gives 1 beside a quiet NaN where it does for all
/// numbers.
double quiet(double x) { return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x; }

/// Evaluates F(x, y) in double, rounded once. For float16 and float32 this is closer to the true value than any device
/// comes.
template <auto F>
Evaluator in_double(Type type) {
  return for_type<real>(type, [](auto tag) -> Evaluator {
    constexpr Type T = decltype(tag)::value;
    return [](Bits a, Bits b, Bits) -> Bits {
      return put<T>(F(static_cast<double>(get<T>(a)), static_cast<double>(get<T>(b))));
    };
  });
}

// ---- operations that need more than an expression ----

constexpr auto divide = [](auto tag, Bits a, Bits b, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  const auto x = get<T>(a), y = get<T>(b);
  if constexpr (is_int(T)) {
    if (y == 0) return a;
    if constexpr (is_signed(T)) {
      if (y == -1) return (0 - a) & mask(T);  // wraps where the quotient does not fit
    }
  }
  return put<T>(x / y);
};

constexpr auto remainder = [](auto tag, Bits a, Bits b, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  const auto x = get<T>(a), y = get<T>(b);
  if constexpr (is_int(T)) {
    if (y == 0) return 0;
    if constexpr (is_signed(T)) {
      if (y == -1) return 0;
    }
    return put<T>(x % y);
  } else {
    // The product goes through memory, so that no compiler may fuse it with the difference.
    const volatile auto product = y * std::trunc(x / y);
    return put<T>(x - product);
  }
};

/// Evaluates min and max: returns the operand that is a number if the other is NaN, else b if first(b, a), and a
/// otherwise.
template <auto first>
Evaluator choice(Type type) {
  return on_bits<numeric, [](auto tag, Bits a, Bits b, Bits) -> Bits {
    constexpr Type T = decltype(tag)::value;
    const auto x = get<T>(a), y = get<T>(b);
    if constexpr (is_float(T)) {
      if (x != x) return y != y ? quiet_nan<T>() : b;
      if (y != y) return a;
    }
    return first(y, x) ? b : a;
  }>(type);
}

constexpr auto absolute = [](auto tag, Bits a, Bits, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  if constexpr (is_float(T)) {
    return a & (mask(T) >> 1);
  } else {
    return is_signed(T) && get<T>(a) < 0 ? (0 - a) & mask(T) : a;
  }
};

constexpr auto negate = [](auto tag, Bits a, Bits, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  return is_float(T) ? a ^ (1ull << (bits(T) - 1)) : (0 - a) & mask(T);
};

constexpr auto fused = [](auto tag, Bits a, Bits b, Bits c) -> Bits {
  constexpr Type T = decltype(tag)::value;
  if constexpr (T == Type::f16) {
    // The sum is exact in double unless the product lies more than 31 binades below c; both roundings then give c.
    return put<T>(static_cast<double>(get<T>(a)) * get<T>(b) + get<T>(c));
  } else {
    return put<T>(std::fma(get<T>(a), get<T>(b), get<T>(c)));
  }
};

constexpr auto shift_left = [](auto tag, Bits a, Bits b, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  return (a << (b & (bits(T) - 1))) & mask(T);
};

constexpr auto shift_right = [](auto tag, Bits a, Bits b, Bits) -> Bits {
  constexpr Type T = decltype(tag)::value;
  return put<T>(get<T>(a) >> (b & (bits(T) - 1)));
};

/// Converts a real number to an integer, toward zero and saturating; NaN gives 0.
template <Type To, class Real>
Bits truncate_to_int(Real value) {
  constexpr int digits = bits(To) - (is_signed(To) ? 1 : 0);
  constexpr Bits greatest = mask(To) >> (is_signed(To) ? 1 : 0);
  const double x = value;
  if (x != x) return 0;
  if (x >= (digits == 64 ? 0x1p64 : static_cast<double>(1ull << (digits & 63)))) return greatest;
  if constexpr (is_signed(To)) {
    constexpr double least = -static_cast<double>(1ull << digits);
    return x <= least ? 1ull << digits : static_cast<Bits>(static_cast<std::int64_t>(x)) & mask(To);
  } else {
    return x <= 0 ? 0 : static_cast<Bits>(x);
  }
}

template <Type From, Type To>
Bits convert(Bits a, Bits, Bits) {
  const auto x = get<From>(a);
  if constexpr (is_bool(To)) {
    return x != 0;
  } else if constexpr (is_bool(From)) {
    return put<To>(static_cast<Compute<To>>(x ? 1 : 0));
  } else if constexpr (is_float(From) && is_int(To)) {
    return truncate_to_int<To>(x);
  } else if constexpr (is_int(From) && To == Type::f16) {
    return put<To>(static_cast<double>(x));  // exact up to 2^53, and infinity from 65520 on
  } else if constexpr (is_int(From) && is_float(To)) {
    return put<To>(static_cast<Compute<To>>(x));
  } else {
    return put<To>(x);
  }
}

Evaluator conversion(Type from, Type to) {
  return for_type<any_type>(from, [to](auto source) -> Evaluator {
    return for_type<any_type>(
        to, [](auto target) -> Evaluator { return convert<decltype(source)::value, decltype(target)::value>; });
  });
}

Bits same_bits(Bits a, Bits, Bits) { return a; }
Bits choose(Bits condition, Bits if_true, Bits if_false) { return condition ? if_true : if_false; }

}  // namespace

// In one piece: a table that states the meaning of each operation, mostly in a line.
Evaluator evaluator(Op op, Type operands, Type result) {
  const Type t = operands;
  switch (op) {
    // Integers wrap: the low bits of 64-bit unsigned arithmetic are right for every width and signedness.
    case Op::add:
      return is_int(t) ? on_bits<integer, [](auto tag, Bits a, Bits b, Bits) { return (a + b) & mask(tag()); }>(t)
                       : on_values<real, [](auto x, auto y) { return x + y; }>(t);
    case Op::sub:
      return is_int(t) ? on_bits<integer, [](auto tag, Bits a, Bits b, Bits) { return (a - b) & mask(tag()); }>(t)
                       : on_values<real, [](auto x, auto y) { return x - y; }>(t);
    case Op::mul:
      return is_int(t) ? on_bits<integer, [](auto tag, Bits a, Bits b, Bits) { return (a * b) & mask(tag()); }>(t)
                       : on_values<real, [](auto x, auto y) { return x * y; }>(t);
    case Op::div: return on_bits<numeric, divide>(t);
    case Op::rem: return on_bits<numeric, remainder>(t);
    // The product of two 32-bit values fits 64 bits.
    case Op::mul_hi: return on_values<word, [](auto x, auto y) { return ((x * y) >> 32); }>(t);
    case Op::neg: return on_bits<numeric, negate>(t);
    case Op::abs: return on_bits<numeric, absolute>(t);
    case Op::detach: return on_bits<real, [](auto, Bits a, Bits, Bits) { return a; }>(t);
    case Op::min: return choice<[](auto x, auto y) { return x < y; }>(t);
    case Op::max: return choice<[](auto x, auto y) { return y < x; }>(t);
    case Op::fma: return on_bits<real, fused>(t);

    case Op::sqrt: return on_values<real, [](auto x, auto) { return std::sqrt(x); }>(t);
    case Op::rsqrt: return in_double<[](double x, double) { return 1 / std::sqrt(x); }>(t);
    case Op::exp: return in_double<[](double x, double) { return std::exp(x); }>(t);
    case Op::exp2: return in_double<[](double x, double) { return std::exp2(x); }>(t);
    case Op::log: return in_double<[](double x, double) { return std::log(x); }>(t);
    case Op::log2: return in_double<[](double x, double) { return std::log2(x); }>(t);
    case Op::pow: return in_double<[](double x, double y) { return std::pow(quiet(x), quiet(y)); }>(t);
    case Op::sin: return in_double<[](double x, double) { return std::sin(x); }>(t);
    case Op::cos: return in_double<[](double x, double) { return std::cos(x); }>(t);
    case Op::tan: return in_double<[](double x, double) { return std::tan(x); }>(t);
    case Op::asin: return in_double<[](double x, double) { return std::asin(x); }>(t);
    case Op::acos: return in_double<[](double x, double) { return std::acos(x); }>(t);
    case Op::atan: return in_double<[](double x, double) { return std::atan(x); }>(t);
    case Op::atan2: return in_double<[](double y, double x) { return std::atan2(y, x); }>(t);
    case Op::sinh: return in_double<[](double x, double) { return std::sinh(x); }>(t);
    case Op::cosh: return in_double<[](double x, double) { return std::cosh(x); }>(t);
    case Op::tanh: return in_double<[](double x, double) { return std::tanh(x); }>(t);
    case Op::floor: return on_values<real, [](auto x, auto) { return std::floor(x); }>(t);
    case Op::ceil: return on_values<real, [](auto x, auto) { return std::ceil(x); }>(t);
    case Op::trunc: return on_values<real, [](auto x, auto) { return std::trunc(x); }>(t);
    case Op::round_even: return on_values<real, [](auto x, auto) { return std::nearbyint(x); }>(t);
    case Op::is_nan: return comparison<real, [](auto x, auto) { return x != x; }>(t);
    case Op::is_inf: return comparison<real, [](auto x, auto) { return std::isinf(x); }>(t);

    case Op::eq: return comparison<any_type, [](auto x, auto y) { return x == y; }>(t);
    case Op::ne: return comparison<any_type, [](auto x, auto y) { return x != y; }>(t);
    case Op::lt: return comparison<numeric, [](auto x, auto y) { return x < y; }>(t);
    case Op::le: return comparison<numeric, [](auto x, auto y) { return x <= y; }>(t);
    case Op::select: return t == Type::none ? nullptr : choose;

    case Op::bit_and: return on_bits<logical, [](auto, Bits a, Bits b, Bits) { return a & b; }>(t);
    case Op::bit_or: return on_bits<logical, [](auto, Bits a, Bits b, Bits) { return a | b; }>(t);
    case Op::bit_xor: return on_bits<logical, [](auto, Bits a, Bits b, Bits) { return a ^ b; }>(t);
    case Op::bit_not: return on_bits<logical, [](auto tag, Bits a, Bits, Bits) { return a ^ mask(tag()); }>(t);
    case Op::popcount: return on_bits<integer, [](auto, Bits a, Bits, Bits) { return Bits(std::popcount(a)); }>(t);
    case Op::shl: return on_bits<integer, shift_left>(t);
    case Op::shr: return on_bits<integer, shift_right>(t);

    case Op::convert: return conversion(t, result);
    case Op::bitcast: return is_numeric(t) && is_numeric(result) && bits(t) == bits(result) ? same_bits : nullptr;
    default: return nullptr;  // memory, locals and control: the interpreter's
  }
}

Evaluator split_fma(Type type) {
  if (type != Type::f32 && type != Type::f64) return nullptr;
  return on_bits<real, [](auto tag, Bits a, Bits b, Bits c) {
    constexpr Type T = decltype(tag)::value;
    const auto product = get<T>(a) * get<T>(b);
    return put<T>(product + get<T>(c));
  }>(type);
}

std::uint64_t evaluate(Op op, Type operands, Type result, std::span<const std::uint64_t> args) {
  const Evaluator function = evaluator(op, operands, result);
  if (!function) internal_error("evaluate: the operation is not defined on these types");
  const auto arg = [&](std::size_t k) { return k < args.size() ? args[k] : 0; };
  const platform::FloatMode mode;
  return function(arg(0), arg(1), arg(2));
}

double to_double(Type type, std::uint64_t bits) {
  const Evaluator function = conversion(type, Type::f64);
  if (!function) internal_error("to_double: no type");
  const platform::FloatMode mode;
  return std::bit_cast<double>(function(bits, 0, 0));
}

std::uint64_t from_double(Type type, double value) {
  const Evaluator function = conversion(Type::f64, type);
  if (!function) internal_error("from_double: no type");
  const platform::FloatMode mode;
  Bits bits = std::bit_cast<Bits>(value);
  // The conversion truncates, so the value is rounded first. Near a limit of the type, the whole number is exact or
  // past the limit.
  if (is_int(type)) bits = evaluator(Op::round_even, Type::f64, Type::f64)(bits, 0, 0);
  return function(bits, 0, 0);
}

}  // namespace weft::ir
