// Traced scalars: Var<T>, its operators and functions.
#pragma once
#include <vector>

#include "../types/scalar.h"
#include "trace.h"

namespace weft {

/// The traced face of the host type T: a variable of a kernel. Reading and assigning it records instructions.
///
/// `Float x = 1;` declares, `Float y = x;` copies the value, `x = y;` assigns, under If and in loops too.
/// There is no implicit conversion between traced types; `Float(i)` converts. A host number adapts to the other
/// operand (`2 * x`), an integer literal to any numeric type, a real one to real types only.
template <class T>
class Var {
  static_assert(!std::is_same_v<T, T>,
                "weft: kernels do not know this type; declare a struct with WEFT_STRUCT(S, fields...) or as a two-face "
                "template");
};

/// An element of an array: reads when used as a value, writes when assigned. `auto e = x[i]` is another name for the
/// element, not a copy; `Float e = x[i]` reads it.
template <class T>
class Ref;

template <class T>
class In;

namespace detail {
template <class T>
class ComponentAt;

/// Refuses the assignment of an A to a variable or element of type T.
#define WEFT_REFUSE_ASSIGNMENT(T, A)                    \
  static_assert(std::is_convertible_v<const A&, In<T>>, \
                "weft: what is assigned is of another type; convert it, as in Float(i), Vec3(s) or Vec3d(v)")
}  // namespace detail

/// An operand: a traced value or a literal that adapts to T, and the source line where it stands.
template <Scalar T>
class In<T> {
 public:
  static constexpr ir::Type kType = scalar_type<T>();

  In(const Var<T>& v, Loc loc = Loc::here()) : id(v.read(loc)), loc(loc) {}
  In(const Ref<T>& r, Loc loc = Loc::here()) : id(r.read(loc)), loc(loc) {}
  In(const Ref<const T>& r, Loc loc = Loc::here()) : id(r.read(loc)), loc(loc) {}
  In(const detail::ComponentAt<T>& c, Loc loc = Loc::here()) : id(c.read(loc)), loc(loc) {}
  template <LiteralFor<T> U>
  In(U value, Loc loc = Loc::here()) : id(literal(value, loc)), loc(loc) {}

  tracing::Id id;
  Loc loc;

 private:
  template <class U>
  static tracing::Id literal(U value, Loc loc) {
    if constexpr (RealScalar<U>)
      return tracing::literal_real(kType, double(value), loc);
    else if constexpr (std::is_unsigned_v<U>)
      return tracing::literal_uint(kType, std::uint64_t(value), loc);
    else
      return tracing::literal_int(kType, std::int64_t(value), loc);
  }
};

namespace detail {

/// Marks the constructors that wrap an instruction.
struct FromId {};

/// Left operand of && and ||. Its construction opens the block in which the right operand is evaluated: operands of
/// an operator are evaluated in order, so the right one's instructions land inside.
template <bool Or>
class ShortCircuit {
 public:
  ShortCircuit(const Var<bool>& v, Loc loc = Loc::here());
  ShortCircuit(const Ref<bool>& v, Loc loc = Loc::here());
  ShortCircuit(const Ref<const bool>& v, Loc loc = Loc::here());
  ShortCircuit(const ComponentAt<bool>& v, Loc loc = Loc::here());
  ShortCircuit(bool v, Loc loc = Loc::here());

  tracing::Id id;
  Loc loc;
};

/// What Var<T> and Ref<T> have in common; found by argument-dependent lookup through either.
template <class T>
struct ScalarOps {
  using V = Var<T>;
  using I = In<T>;
  /// Bool, by the name that compilers show where it is the condition of a native if or while. (A conversion to bool
  /// that says more when it is used would make && and || ambiguous.) Dependent, so that it may be incomplete here.
  using needs_If_While_or_select = Var<std::conditional_t<Scalar<T>, bool, T>>;
#define WEFT_BINARY(symbol, op, R, constraint)                                  \
  friend R operator symbol(I a, I b) requires constraint {                      \
    return R(tracing::binary(ir::Op::op, a.id, b.id, b.loc), detail::FromId{}); \
  }
#define WEFT_REVERSED(symbol, op, R, constraint)                                \
  friend R operator symbol(I a, I b) requires constraint {                      \
    return R(tracing::binary(ir::Op::op, b.id, a.id, b.loc), detail::FromId{}); \
  }
#define WEFT_UNARY_FUNCTION(name, op, R, constraint) \
  friend R name(I a) requires constraint { return R(tracing::unary(ir::Op::op, a.id, a.loc), detail::FromId{}); }
#define WEFT_BINARY_FUNCTION(name, op, constraint)                              \
  friend V name(I a, I b) requires constraint {                                 \
    return V(tracing::binary(ir::Op::op, a.id, b.id, b.loc), detail::FromId{}); \
  }
  WEFT_BINARY(+, add, V, NumericScalar<T>)
  WEFT_BINARY(-, sub, V, NumericScalar<T>)
  WEFT_BINARY(*, mul, V, NumericScalar<T>)
  WEFT_BINARY(/, div, V, NumericScalar<T>)
  WEFT_BINARY(%, rem, V, NumericScalar<T>)
  WEFT_BINARY(==, eq, needs_If_While_or_select, true)
  WEFT_BINARY(!=, ne, needs_If_While_or_select, true)
  WEFT_BINARY(<, lt, needs_If_While_or_select, NumericScalar<T>)
  WEFT_BINARY(<=, le, needs_If_While_or_select, NumericScalar<T>)
  WEFT_REVERSED(>, lt, needs_If_While_or_select, NumericScalar<T>)
  WEFT_REVERSED(>=, le, needs_If_While_or_select, NumericScalar<T>)
  WEFT_BINARY(&, bit_and, V, (!RealScalar<T>))
  WEFT_BINARY(|, bit_or, V, (!RealScalar<T>))
  WEFT_BINARY(^, bit_xor, V, (!RealScalar<T>))
  WEFT_BINARY(<<, shl, V, IntegerScalar<T>)
  WEFT_BINARY(>>, shr, V, IntegerScalar<T>)
  WEFT_UNARY_FUNCTION(operator-, neg, V, NumericScalar<T>)
  WEFT_UNARY_FUNCTION(operator~, bit_not, V, IntegerScalar<T>)
  WEFT_UNARY_FUNCTION(popcount, popcount, V, IntegerScalar<T>)
  WEFT_UNARY_FUNCTION(operator!, bit_not, needs_If_While_or_select, (std::is_same_v<T, bool>))

  // Magnitude and choice. In parentheses: windows.h may define min and max.
  WEFT_UNARY_FUNCTION(abs, abs, V, NumericScalar<T>)
  WEFT_BINARY_FUNCTION((min), min, NumericScalar<T>)
  WEFT_BINARY_FUNCTION((max), max, NumericScalar<T>)
  friend V clamp(I x, I lo, I hi) requires NumericScalar<T> {
    return V(tracing::binary(ir::Op::min, tracing::binary(ir::Op::max, x.id, lo.id, x.loc), hi.id, x.loc), FromId{});
  }
  friend V sign(I x) requires NumericScalar<T> { return V(tracing::sign(x.id, x.loc), FromId{}); }
  friend V select(In<bool> c, I a, I b) {
    return V(tracing::ternary(ir::Op::select, c.id, a.id, b.id, c.loc), FromId{});
  }
  friend V floor_div(I a, I b) requires NumericScalar<T> { return V(tracing::floor_div(a.id, b.id, b.loc), FromId{}); }
  friend V mul_hi(I a, I b) requires(IntegerScalar<T> && sizeof(T) == 4) {
    return V(tracing::binary(ir::Op::mul_hi, a.id, b.id, b.loc), FromId{});
  }

  // Real functions; accuracy in docs/semantics.md.
  WEFT_UNARY_FUNCTION(sqrt, sqrt, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(rsqrt, rsqrt, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(exp, exp, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(exp2, exp2, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(log, log, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(log2, log2, V, RealScalar<T>)
  WEFT_BINARY_FUNCTION(pow, pow, RealScalar<T>)
  WEFT_UNARY_FUNCTION(sin, sin, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(cos, cos, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(tan, tan, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(asin, asin, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(acos, acos, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(atan, atan, V, RealScalar<T>)
  WEFT_BINARY_FUNCTION(atan2, atan2, RealScalar<T>)
  WEFT_UNARY_FUNCTION(sinh, sinh, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(cosh, cosh, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(tanh, tanh, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(floor, floor, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(ceil, ceil, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(trunc, trunc, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(rint, round_even, V, RealScalar<T>)
  WEFT_UNARY_FUNCTION(isnan, is_nan, needs_If_While_or_select, RealScalar<T>)
  WEFT_UNARY_FUNCTION(isinf, is_inf, needs_If_While_or_select, RealScalar<T>)
#undef WEFT_BINARY
#undef WEFT_REVERSED
#undef WEFT_UNARY_FUNCTION
#undef WEFT_BINARY_FUNCTION
  friend V round(I a) requires RealScalar<T> { return V(tracing::round_away(a.id, a.loc), FromId{}); }
  friend needs_If_While_or_select isfinite(I a) requires RealScalar<T> {
    return needs_If_While_or_select(tracing::is_finite(a.id, a.loc), FromId{});
  }
  friend V fma(I a, I b, I c) requires RealScalar<T> {
    return V(tracing::ternary(ir::Op::fma, a.id, b.id, c.id, a.loc), FromId{});
  }

  /// Short circuit: the right operand is evaluated only where the left one does not decide.
  friend needs_If_While_or_select operator&&(ShortCircuit<false> a, I b) requires std::is_same_v<T, bool> {
    return V(tracing::end_short_circuit(a.id, b.id, false, a.loc), FromId{});
  }
  friend needs_If_While_or_select operator||(ShortCircuit<true> a, I b) requires std::is_same_v<T, bool> {
    return V(tracing::end_short_circuit(a.id, b.id, true, a.loc), FromId{});
  }
};

/// The assignments that Var and Ref have in common.
#define WEFT_COMPOUND_ASSIGNMENTS(Self, T, qualifier)                       \
  Self operator+=(In<T> b) qualifier { return update(ir::Op::add, b); }     \
  Self operator-=(In<T> b) qualifier { return update(ir::Op::sub, b); }     \
  Self operator*=(In<T> b) qualifier { return update(ir::Op::mul, b); }     \
  Self operator/=(In<T> b) qualifier { return update(ir::Op::div, b); }     \
  Self operator%=(In<T> b) qualifier { return update(ir::Op::rem, b); }     \
  Self operator&=(In<T> b) qualifier { return update(ir::Op::bit_and, b); } \
  Self operator|=(In<T> b) qualifier { return update(ir::Op::bit_or, b); }  \
  Self operator^=(In<T> b) qualifier { return update(ir::Op::bit_xor, b); } \
  Self operator<<=(In<T> b) qualifier { return update(ir::Op::shl, b); }    \
  Self operator>>=(In<T> b) qualifier { return update(ir::Op::shr, b); }

}  // namespace detail

template <Scalar T>
class Var<T> : public detail::ScalarOps<T> {
 public:
  using host = T;
  static constexpr ir::Type kType = scalar_type<T>();

  /// Zero (false).
  Var() : slot_(tracing::zero(kType)) {}
  Var(const Var&) = default;
  template <LiteralFor<T> U>
  Var(U value, Loc loc = Loc::here()) : slot_(In<T>(value, loc).id) {}
  /// Reads an element of an array.
  Var(const Ref<T>& r, Loc loc = Loc::here()) : slot_(r.read(loc)) {}
  Var(const Ref<const T>& r, Loc loc = Loc::here()) : slot_(r.read(loc)) {}
  /// Reads a component of a variable, chosen by a traced index.
  Var(const detail::ComponentAt<T>& c, Loc loc = Loc::here()) : slot_(c.read(loc)) {}
  /// Converts by value: real to integer truncates toward zero and saturates, NaN gives 0 (docs/semantics.md).
  template <Scalar U>
  requires(!std::is_same_v<U, T>) explicit Var(const Var<U>& v, Loc loc = Loc::here())
      : slot_(tracing::convert(kType, v.read(loc), loc)) {}
  template <Scalar U>
  requires(!std::is_same_v<std::remove_const_t<U>, T>) explicit Var(const Ref<U>& r, Loc loc = Loc::here())
      : slot_(tracing::convert(kType, r.read(loc), loc)) {}
  template <class U>
  requires(!std::is_same_v<U, T>) explicit Var(const detail::ComponentAt<U>& c, Loc loc = Loc::here())
      : slot_(tracing::convert(kType, c.read(loc), loc)) {}
  Var(tracing::Id id, detail::FromId) : slot_(id) {}

  /// Only of a variable: what an expression gives is lost when it is assigned.
  Var& operator=(const Var&) & = default;
  /// A literal or an element of an array. (A parameter of type In<T> would be ambiguous with the two above.)
  template <class A>
  requires(!std::is_same_v<A, Var>) Var& operator=(const A& a) & {
    WEFT_REFUSE_ASSIGNMENT(T, A);
    if constexpr (std::is_convertible_v<const A&, In<T>>) {
      In<T> v(a, Loc{});
      slot_.assign(v.id, v.loc);
    }
    return *this;
  }
  WEFT_COMPOUND_ASSIGNMENTS(Var&, T, &)

  Var& operator++() & requires NumericScalar<T> { return *this += 1; }
  Var& operator--() & requires NumericScalar<T> { return *this -= 1; }
  Var operator++(int) & requires NumericScalar<T> {
    Var before(*this);
    *this += 1;
    return before;
  }
  Var operator--(int) & requires NumericScalar<T> {
    Var before(*this);
    *this -= 1;
    return before;
  }

  tracing::Id read(Loc loc = {}) const { return slot_.read(loc); }

 private:
  Var& update(ir::Op op, In<T> b) {
    slot_.assign(tracing::binary(op, slot_.read(b.loc), b.id, b.loc), b.loc);
    return *this;
  }
  tracing::Slot slot_;
};

namespace detail {

/// A component of a traced vector or matrix, chosen by a traced index: v[i] of a variable v. Reads by selection when it
/// is used as a value; assigned, it gives each component its old or the new value.
template <class T>
class ComponentAt : public ScalarOps<T> {
 public:
  using host = T;
  using Part = Var<T>& (*)(void* whole, int k);
  ComponentAt(void* whole, Part part, tracing::Id row, int rows, tracing::Id column, int columns)
      : whole_(whole), part_(part), row_(row), column_(column), rows_(rows), columns_(columns) {}
  ComponentAt(const ComponentAt&) = default;

  const ComponentAt& operator=(const ComponentAt& c) const&& { return *this = In<T>(c, Loc{}); }
  /// `auto e = v[i]; e = v[j];` is refused: it would move names, not values.
  const ComponentAt& operator=(const ComponentAt& c) const& = delete;
  const ComponentAt& operator=(In<T> v) const {
    for (int i = 0; i < rows_; ++i)
      for (int j = 0; j < columns_; ++j) {
        tracing::Id here = tracing::picks(column_, j, columns_, v.loc);
        if (rows_ > 1) here = tracing::binary(ir::Op::bit_and, tracing::picks(row_, i, rows_, v.loc), here, v.loc);
        Var<T>& part = part_(whole_, i * columns_ + j);
        part = Var<T>(tracing::ternary(ir::Op::select, here, v.id, part.read(v.loc), v.loc), FromId{});
      }
    return *this;
  }
  template <class A>
  requires(!std::is_convertible_v<const A&, In<T>>) const ComponentAt& operator=(const A&) const {
    WEFT_REFUSE_ASSIGNMENT(T, A);
    return *this;
  }
  WEFT_COMPOUND_ASSIGNMENTS(const ComponentAt&, T, const)

  tracing::Id read(Loc loc = {}) const {
    std::vector<tracing::Id> ids;
    for (int k = 0; k < rows_ * columns_; ++k) ids.push_back(part_(whole_, k).read(loc));
    return rows_ > 1 ? tracing::pick(ids.data(), rows_, columns_, row_, column_, loc)
                     : tracing::pick(ids.data(), columns_, 1, column_, loc);
  }

 private:
  const ComponentAt& update(ir::Op op, In<T> b) const {
    return *this = In<T>(Var<T>(tracing::binary(op, read(b.loc), b.id, b.loc), FromId{}), b.loc);
  }
  void* whole_;
  Part part_;
  tracing::Id row_, column_;
  int rows_, columns_;
};

template <bool Or>
ShortCircuit<Or>::ShortCircuit(const ComponentAt<bool>& v, Loc loc) : id(v.read(loc)), loc(loc) {
  tracing::begin_short_circuit(id, Or, loc);
}
template <bool Or>
ShortCircuit<Or>::ShortCircuit(const Var<bool>& v, Loc loc) : id(v.read(loc)), loc(loc) {
  tracing::begin_short_circuit(id, Or, loc);
}
template <bool Or>
ShortCircuit<Or>::ShortCircuit(bool v, Loc loc) : id(tracing::literal_int(ir::Type::b1, v, loc)), loc(loc) {
  tracing::begin_short_circuit(id, Or, loc);
}
}  // namespace detail

/// select(c, 1, 0): host values in both branches take the type that they have.
template <class A, class B>
requires(Scalar<A>&& std::is_same_v<A, B>) Var<A> select(In<bool> c, A a, B b) {
  return Var<A>(tracing::ternary(ir::Op::select, c.id, In<A>(a).id, In<A>(b).id, c.loc), detail::FromId{});
}

/// The same bits as another type of the same width: bitcast<int>(x) of a Float.
template <Scalar T, Scalar U>
requires(sizeof(T) == sizeof(U) && NumericScalar<T> && NumericScalar<U>) Var<T> bitcast(const Var<U>& v,
                                                                                        Loc loc = Loc::here()) {
  return Var<T>(tracing::bitcast(scalar_type<T>(), v.read(loc), loc), detail::FromId{});
}

namespace detail {
template <class I>
struct Coordinates2 {
  Var<I> i, j;
};
template <class I>
struct Coordinates3 {
  Var<I> i, j, k;
};
template <class I>
struct Coordinates4 {
  Var<I> i, j, k, l;
};
template <class I>
Var<I> coordinate(int k, int n, Loc loc) {
  return Var<I>(tracing::thread_coordinate(scalar_type<I>(), k, n, loc), FromId{});
}
template <class I, int N>
auto coordinates(Loc loc) {
  auto at = [&](int k) { return coordinate<I>(k, N, loc); };
  if constexpr (N == 2) {
    return Coordinates2<I>{at(0), at(1)};
  } else if constexpr (N == 3) {
    return Coordinates3<I>{at(0), at(1), at(2)};
  } else {
    return Coordinates4<I>{at(0), at(1), at(2), at(3)};
  }
}
}  // namespace detail

/// Coordinates of this thread in the launch: `Int i = tid();` or `auto [i, j] = tid<2>();`, the last one running
/// fastest. A kernel asks for one number of coordinates, and is launched over as many dimensions.
/// A launch over 2^31 threads or more along the first dimension needs tid64().
inline Var<int> tid(Loc loc = Loc::here()) { return detail::coordinate<int>(0, 1, loc); }
template <int N>
requires(N >= 2 && N <= 4) auto tid(Loc loc = Loc::here()) { return detail::coordinates<int, N>(loc); }

/// The same in 64 bits.
inline Var<std::int64_t> tid64(Loc loc = Loc::here()) { return detail::coordinate<std::int64_t>(0, 1, loc); }
template <int N>
requires(N >= 2 && N <= 4) auto tid64(Loc loc = Loc::here()) { return detail::coordinates<std::int64_t, N>(loc); }

}  // namespace weft
