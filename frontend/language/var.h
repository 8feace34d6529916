// Traced scalars: Var<T>, its operators and functions.
#pragma once
#include <vector>

#include "../types/functions.h"
#include "trace.h"

namespace weft {

/// The traced face of the host type T: a variable of a kernel. Reading and assigning it records instructions.
///
/// Elements of arrays are variables too, whose values lie in memory: `x[i]` is a `Var<T>&`, of an Arr<const T> a
/// `const Var<T>&`, as `p[i]` of a pointer is a `T&`. So `auto v = x[i]` reads the value, `auto& v = x[i]` is another
/// name for the element, and std::swap(x[i], x[j]) swaps. It lasts as long as the kernel is traced.
///
/// `Float x = 1;` declares, `Float y = x;` copies the value, `x = y;` assigns, under If and in loops too.
/// There is no implicit conversion between traced types; `Float(i)` converts. A host number adapts to the other
/// operand (`2 * x`), an integer literal to any numeric type, a real one to real types only.
template <class T>
class Var {
  static_assert(!std::is_same_v<T, T>,
                "weft: kernels do not know this type; declare a struct with WEFT_STRUCT(S, fields...) or as a two-face "
                "template");

 public:
  template <class A>
  Var& operator=(const A&);  // so that the assertion stays the only message
};

template <class T>
class In;

namespace detail {

template <class A>
class HostChoice;
template <class A>
class HostChoiceBase;

/// Refuses the assignment of an A to a variable or element of type T.
#define WEFT_REFUSE_ASSIGNMENT(T, A)                    \
  static_assert(std::is_convertible_v<const A&, In<T>>, \
                "weft: what is assigned is of another type; convert it, as in Float(i), Vec3(s) or Vec3d(v)")

/// False for every type, and evaluated only when a template is used.
template <class A>
inline constexpr bool is_writable = false;

/// Refuses to write to a const Var, and to one that is no variable.
#define WEFT_REFUSE_WRITE(A)                                                                                   \
  static_assert(detail::is_writable<A>,                                                                        \
                "weft: this cannot be written: it is an element of a read-only array (Arr<const T>), a const " \
                "variable, or the value of an expression")
}  // namespace detail

/// An operand: a traced value or a literal that adapts to T, and the source line where it stands.
template <Scalar T>
class In<T> {
 public:
  static constexpr ir::Type kType = scalar_type<T>();

  In(const Var<T>& v, Loc loc = Loc::here()) : id(v.read(loc)), loc(loc) {}
  template <LiteralFor<T> U>
  In(U value, Loc loc = Loc::here()) : id(literal(value, loc)), loc(loc) {}
  template <LiteralFor<T> U>
  requires(!std::is_same_v<U, T>) In(const detail::HostChoice<U>& c, Loc loc = Loc::here())
      : id(c.template as<T>(loc)), loc(loc) {}

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

/// The left operand of && and ||. Its construction opens the block in which the right operand is evaluated: operands of
/// an operator are evaluated in order, so the right one's instructions land inside.
template <bool Or>
class ShortCircuit {
 public:
  ShortCircuit(const Var<bool>& v, Loc loc = Loc::here());
  ShortCircuit(bool v, Loc loc = Loc::here());
  ~ShortCircuit() {
    if (open_) tracing::leave_short_circuit(exceptions_, loc_);
  }
  ShortCircuit(const ShortCircuit&) = delete;

  /// The result, given the right operand.
  tracing::Id end(tracing::Id right) {
    open_ = false;
    return tracing::end_short_circuit(id_, right, Or, loc_);
  }

 private:
  tracing::Id id_;
  Loc loc_;
  bool open_ = true;
  int exceptions_ = tracing::exceptions();
};

/// The operators and functions of Var<T>; found by argument-dependent lookup.
template <class T>
struct ScalarOps {
  using V = Var<T>;
  using I = In<T>;
  /// The type Bool, by the name that compilers show if it is the condition of a native if or while. (A conversion to
  /// bool that says more when it is used would make && and || ambiguous.) Dependent, so that it may be incomplete here.
  using needs_If_While_or_select = Var<std::conditional_t<Scalar<T>, bool, T>>;
#define WEFT_BINARY(symbol, op, R, constraint)                                  \
  friend R operator symbol(I a, I b) requires constraint {                      \
    return R(tracing::binary(ir::Op::op, a.id, b.id, b.loc), detail::FromId{}); \
  }
#define WEFT_REVERSED(symbol, op, R, constraint)                                \
  friend R operator symbol(I a, I b) requires constraint {                      \
    return R(tracing::binary(ir::Op::op, b.id, a.id, b.loc), detail::FromId{}); \
  }
#define WEFT_UNARY(symbol, op, R, constraint)                            \
  friend R operator symbol(I a) requires constraint {                    \
    return R(tracing::unary(ir::Op::op, a.id, a.loc), detail::FromId{}); \
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
  WEFT_UNARY(-, neg, V, NumericScalar<T>)
  WEFT_UNARY(~, bit_not, V, IntegerScalar<T>)
  WEFT_UNARY(!, bit_not, needs_If_While_or_select, (std::is_same_v<T, bool>))
#undef WEFT_BINARY
#undef WEFT_REVERSED
#undef WEFT_UNARY

#define WEFT_FUNCTION_1(name, R, constraint, code) \
  friend R(name)(I a) requires constraint { return R(code(a.id, a.loc), detail::FromId{}); }
#define WEFT_FUNCTION_2(name, R, constraint, code) \
  friend R(name)(I a, I b) requires constraint { return R(code(a.id, b.id, b.loc), detail::FromId{}); }
#define WEFT_FUNCTION_3(name, R, constraint, code) \
  friend R(name)(I a, I b, I c) requires constraint { return R(code(a.id, b.id, c.id, a.loc), detail::FromId{}); }
#define WEFT_RESULT_T V
#define WEFT_RESULT_bool needs_If_While_or_select
#define WEFT_CODE_op(op) \
  tracing::Operation { ir::Op::op }
#define WEFT_CODE_composed(function) tracing::function
#define WEFT_FUNCTION(name, arity, operands, result, host, traced, vectors) \
  WEFT_FUNCTION_##arity(name, WEFT_RESULT_##result, operands<T>, WEFT_CODE_##traced)
#include "../types/functions.def"
#undef WEFT_FUNCTION
#undef WEFT_CODE_composed
#undef WEFT_CODE_op
#undef WEFT_RESULT_bool
#undef WEFT_RESULT_T
#undef WEFT_FUNCTION_3
#undef WEFT_FUNCTION_2
#undef WEFT_FUNCTION_1
  friend V popcount(I a) requires IntegerScalar<T> {
    return V(tracing::unary(ir::Op::popcount, a.id, a.loc), FromId{});
  }
  friend V mul_hi(I a, I b) requires(IntegerScalar<T> && sizeof(T) == 4) {
    return V(tracing::binary(ir::Op::mul_hi, a.id, b.id, b.loc), FromId{});
  }
  friend V select(In<bool> c, I a, I b) {
    return V(tracing::ternary(ir::Op::select, c.id, a.id, b.id, c.loc), FromId{});
  }

  /// These short-circuit: the right operand is evaluated only if the left one does not decide.
  friend needs_If_While_or_select operator&&(ShortCircuit<false> a, I b) requires std::is_same_v<T, bool> {
    return V(a.end(b.id), FromId{});
  }
  friend needs_If_While_or_select operator||(ShortCircuit<true> a, I b) requires std::is_same_v<T, bool> {
    return V(a.end(b.id), FromId{});
  }
};

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
  template <LiteralFor<T> U>
  requires(!std::is_same_v<U, T>) Var(const detail::HostChoiceBase<U>& c, Loc loc = Loc::here())
      : slot_(c.whole().template as<T>(loc)) {}
  /// Converts a choice; one that was assigned since is converted as any variable is.
  template <LiteralFor<T> U>
  requires(!std::is_same_v<U, T>) explicit Var(const detail::HostChoice<U>& c, Loc loc = Loc::here())
      : slot_(c.is_assigned() ? tracing::convert(kType, c.read(loc), loc) : c.template as<T>(loc)) {}
  /// Converts by value: real to integer truncates toward zero and saturates, NaN gives 0 (docs/semantics.md).
  template <Scalar U>
  requires(!std::is_same_v<U, T>) explicit Var(const Var<U>& v, Loc loc = Loc::here())
      : slot_(tracing::convert(kType, v.read(loc), loc)) {}
  Var(tracing::Id id, detail::FromId) : slot_(id) {}
  /// Another name for an element.
  explicit Var(const tracing::Named& named) : slot_(named, kType) {}

  /// Assigns to a variable only: the result of an expression would be lost with the assignment.
  Var& operator=(const Var&) & = default;
  /// Assigns a literal. (A parameter of type In<T> would be ambiguous with the two above.)
  template <class A>
  requires(!std::is_same_v<A, Var>) Var& operator=(const A& a) & {
    WEFT_REFUSE_ASSIGNMENT(T, A);
    if constexpr (std::is_convertible_v<const A&, In<T>>) {
      In<T> v(a, Loc{});
      slot_.assign(v.id, v.loc);
    }
    return *this;
  }
  template <class A>
  const Var& operator=(const A&) const& {
    WEFT_REFUSE_WRITE(A);
    return *this;
  }
#define WEFT_UPDATE(symbol, op)                                              \
  Var& operator symbol(In<T> b)& { return update(ir::Op::op, b.id, b.loc); } \
  const Var& operator symbol(In<T>) const& {                                 \
    WEFT_REFUSE_WRITE(T);                                                    \
    return *this;                                                            \
  }
  WEFT_UPDATE(+=, add)
  WEFT_UPDATE(-=, sub)
  WEFT_UPDATE(*=, mul)
  WEFT_UPDATE(/=, div)
  WEFT_UPDATE(%=, rem)
  WEFT_UPDATE(&=, bit_and)
  WEFT_UPDATE(|=, bit_or)
  WEFT_UPDATE(^=, bit_xor)
  WEFT_UPDATE(<<=, shl)
  WEFT_UPDATE(>>=, shr)
#undef WEFT_UPDATE

  Var& operator++() & requires NumericScalar<T> { return *this += 1; }
  Var& operator--() & requires NumericScalar<T> { return *this -= 1; }
  /// Returns the value before.
  Var operator++(int) & requires NumericScalar<T> { return step(ir::Op::add); }
  Var operator--(int) & requires NumericScalar<T> { return step(ir::Op::sub); }

  tracing::Id read(Loc loc = {}) const { return slot_.read(loc); }

  tracing::Slot& slot() { return slot_; }
  const tracing::Slot& slot() const { return slot_; }

 private:
  Var& update(ir::Op op, tracing::Id b, Loc loc) {
    tracing::Slot* slot = &slot_;
    tracing::update(op, &slot, 1, &b, 0, loc);
    return *this;
  }
  Var step(ir::Op op) {
    Var before(*this);
    update(op, In<T>(1).id, slot_.loc());  // which is atomic where the element is a gradient
    return before;
  }
  tracing::Slot slot_;
};

namespace detail {

/// The type of an array's elements in a kernel: const where the array is read only.
template <class T>
struct ElementFace {
  using type = Var<T>;
};
template <class T>
struct ElementFace<const T> {
  using type = const Var<T>;
};

/// The variable that names an element.
template <class T>
Var<std::remove_const_t<T>>& variable_of(const tracing::Named& named) {
  using V = Var<std::remove_const_t<T>>;
  return *std::construct_at(static_cast<V*>(tracing::allocate(sizeof(V), alignof(V))), named);
}
template <class T>
typename ElementFace<T>::type& element_at(const tracing::Address& at) {
  return variable_of<T>(tracing::name_of(at));
}

template <bool Or>
ShortCircuit<Or>::ShortCircuit(const Var<bool>& v, Loc loc) : id_(v.read(loc)), loc_(loc) {
  tracing::begin_short_circuit(id_, Or, loc);
}
template <bool Or>
ShortCircuit<Or>::ShortCircuit(bool v, Loc loc) : id_(tracing::literal_int(ir::Type::b1, v, loc)), loc_(loc) {
  tracing::begin_short_circuit(id_, Or, loc);
}
}  // namespace detail

namespace detail {
/// The part of a HostChoice that adapts. It is a base class, so that `Float x = n` takes it, while Float(n) converts.
template <class A>
class HostChoiceBase {
 public:
  const HostChoice<A>& whole() const { return static_cast<const HostChoice<A>&>(*this); }
};

/// The result of select(c, 1, 0): a variable of the host numbers' type, which adapts to other types as they would.
template <class A>
class HostChoice : public Var<A>, public HostChoiceBase<A> {
 public:
  HostChoice(const In<bool>& c, A a, A b, Loc loc)
      : HostChoice(tracing::ternary(ir::Op::select, c.id, In<A>(a, loc).id, In<A>(b, loc).id, loc), c, a, b) {}
  HostChoice(const HostChoice&) = default;
  using Var<A>::operator=;
  Var<A>& operator=(const HostChoice& c) & { return *this = static_cast<const Var<A>&>(c); }

  bool is_assigned() const { return this->slot().is_assigned(); }
  /// The choice as one of type T.
  /// Errors: Error(invalid_kernel) if it was kept by `auto` and is assigned, before or (for a use in a loop) later.
  template <class T>
  tracing::Id as(Loc loc) const {
    this->slot().expect_no_assignment(loc);
    return tracing::ternary(ir::Op::select, condition_, In<T>(a_, loc).id, In<T>(b_, loc).id, loc);
  }

 private:
  HostChoice(tracing::Id made, const In<bool>& c, A a, A b) : Var<A>(made, FromId{}), condition_(c.id), a_(a), b_(b) {}
  tracing::Id condition_;
  A a_, b_;
};
}  // namespace detail

namespace detail {
/// Whether a choice may be made of host values of these types: of one type, or numbers that meet in one. A half meets
/// no other type, which it would round; nor do numbers with and without a sign.
template <class A, class B>
inline constexpr bool make_a_choice = std::is_same_v<A, B> ||
                                      (NumericScalar<A> && NumericScalar<B> && !std::is_same_v<A, half> &&
                                       !std::is_same_v<B, half> &&
                                       (std::is_signed_v<A> == std::is_signed_v<B> || RealScalar<A> || RealScalar<B>));
/// Converts a value to the type in which a choice's values meet.
/// Errors: Error(invalid_kernel) for an integer that the real type cannot hold.
template <class T, class A>
T meeting(A value, Loc loc) {
  if constexpr (RealScalar<T> && IntegerScalar<A>) {
    constexpr auto most = std::uint64_t(1) << std::numeric_limits<T>::digits;
    const auto bits = std::uint64_t(value);
    if ((std::cmp_less(value, 0) ? 0 - bits : bits) > most)
      tracing::refuse(loc, "select() of a real number and of " + std::to_string(value) +
                               ", which its type cannot hold: write both as numbers of one type");
  }
  return T(value);
}
}  // namespace detail

/// Chooses between two host values: select(c, 1, 0). They adapt to the operand beside them or to the variable that they
/// are assigned to, as without a choice; by themselves they keep their type, or take that in which two types meet.
template <Scalar A, Scalar B>
requires(detail::make_a_choice<A, B>) detail::HostChoice<detail::HostCommon<A, B>> select(In<bool> c, A a, B b) {
  using T = detail::HostCommon<A, B>;
  if constexpr (std::is_same_v<A, B>)
    return detail::HostChoice<T>(c, a, b, c.loc);
  else
    return detail::HostChoice<T>(c, detail::meeting<T>(a, c.loc), detail::meeting<T>(b, c.loc), c.loc);
}

/// Reads the bits of a value as another type of the same width: bitcast<int>(x) of a Float.
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

/// The coordinates of this thread in the launch: `Int i = tid();` or `auto [i, j] = tid<2>();`, the last one running
/// fastest. A kernel asks for one number of coordinates, and is launched over as many dimensions.
/// A launch over 2^31 threads or more along the first dimension needs tid64().
inline Var<int> tid(Loc loc = Loc::here()) { return detail::coordinate<int>(0, 1, loc); }
template <int N>
requires(N >= 2 && N <= 4) auto tid(Loc loc = Loc::here()) { return detail::coordinates<int, N>(loc); }

/// The coordinates of tid() in 64 bits.
inline Var<std::int64_t> tid64(Loc loc = Loc::here()) { return detail::coordinate<std::int64_t>(0, 1, loc); }
template <int N>
requires(N >= 2 && N <= 4) auto tid64(Loc loc = Loc::here()) { return detail::coordinates<std::int64_t, N>(loc); }

}  // namespace weft
