// Traced packs: the common part of vectors, matrices, quaternions and transforms, which are fixed numbers of scalars of
// one type.
#pragma once
#include <cstring>
#include <utility>

#include "../types/layout.h"
#include "var.h"

namespace weft {

namespace detail {

template <class X>
concept Pack = !Scalar<X> && !std::is_const_v<X> && requires {
  Flat<X>::count;
};

/// The part that each type of pack adds: the parts and constructors of Var<X>, and its operators.
template <class X>
struct VarParts;
template <class X>
struct PackOps;
template <class X>
struct ValueOps;

/// A pair of packs of one shape, whose scalar types may differ.
template <class X, class Y>
inline constexpr bool same_shape = false;

/// A host index of a component. Errors: Error(invalid_kernel) when the check against the number of components fails.
class HostIndex {
 public:
  template <IntegerScalar T>
  HostIndex(T value, Loc loc = Loc::here()) : value_(static_cast<std::int64_t>(value)), loc_(loc) {}
  int in(int n) const { return value_ < 0 || value_ >= n ? tracing::index_out_of_range(value_, n, loc_) : int(value_); }

 private:
  std::int64_t value_;
  Loc loc_;
};

/// A traced index of a component; an index out of range means the nearest component.
class TracedIndex {
 public:
  template <IntegerScalar T>
  TracedIndex(const Var<T>& v, Loc loc = Loc::here()) : id(v.read(loc)), loc(loc) {}
  /// Takes a host number that is known to be in range.
  TracedIndex(int value, Loc loc, FromId) : id(tracing::literal_int(ir::Type::i32, value, loc)), loc(loc) {}

  tracing::Id id;
  Loc loc;
};

}  // namespace detail

template <detail::Pack X>
class In<X> {
  using T = typename Flat<X>::scalar;

 public:
  In(const Var<X>& v, Loc loc = Loc::here()) : loc(loc) { v.read(id, loc); }
  In(const X& v, Loc loc = Loc::here()) : loc(loc) {
    T parts[Flat<X>::count];
    std::memcpy(static_cast<void*>(parts), &v, sizeof parts);
    for (int i = 0; i < Flat<X>::count; ++i) id[i] = In<T>(parts[i], loc).id;
  }

  tracing::Id id[Flat<X>::count];
  Loc loc;
};

/// A traced vector, matrix, quaternion or transform; its parts are traced scalars.
template <detail::Pack X>
class Var<X> : public detail::VarParts<X>, public detail::PackOps<X>, public detail::ValueOps<X> {
  using Parts = detail::VarParts<X>;
  using T = typename Flat<X>::scalar;
  struct Converted {
    tracing::Id id[Flat<X>::count];
  };

 public:
  using host = X;
  using Parts::Parts;

  /// The pack of zeros.
  Var() = default;
  Var(const Var& v) : Parts(In<X>(v, Loc{}).id, detail::FromId{}) {}
  /// Another name for an element; its parts name parts of it.
  explicit Var(const tracing::Named& named) : Parts(named) {}
  Var(const X& v, Loc loc = Loc::here()) : Parts(In<X>(v, loc).id, detail::FromId{}) {}
  /// Converts each scalar by value.
  template <class Y>
  requires detail::same_shape<X, Y>
  explicit Var(const Var<Y>& v, Loc loc = Loc::here()) : Parts(convert(In<Y>(v, loc).id, loc).id, detail::FromId{}) {}

  /// Only a variable can be assigned: an assignment to the result of an expression would be lost.
  Var& operator=(const Var& v) & { return assign(In<X>(v, Loc{})); }
  template <class A>
  requires(!std::is_same_v<A, Var>) Var& operator=(const A& v) & {
    WEFT_REFUSE_ASSIGNMENT(X, A);
    if constexpr (std::is_convertible_v<const A&, In<X>>) assign(In<X>(v, Loc{}));
    return *this;
  }
  template <class A>
  const Var& operator=(const A&) const& {
    WEFT_REFUSE_WRITE(A);
    return *this;
  }

  void read(tracing::Id* out, Loc loc) const { tracing::read(Slots(*this).slot, Flat<X>::count, out, loc); }
  void update(ir::Op op, const tracing::Id* values, int step, Loc loc) {
    tracing::update(op, Slots(*this).slot, Flat<X>::count, values, step, loc);
  }

 private:
  struct Slots {
    tracing::Slot* slot[Flat<X>::count];
    explicit Slots(const Var& v) {
      for (int i = 0; i < Flat<X>::count; ++i) slot[i] = &const_cast<Var&>(v).part(i).slot();
    }
  };
  Var& assign(const In<X>& v) {
    tracing::assign(Slots(*this).slot, Flat<X>::count, v.id, v.loc);
    return *this;
  }
  static Converted convert(const tracing::Id* ids, Loc loc) {
    Converted c;
    for (int i = 0; i < Flat<X>::count; ++i) c.id[i] = tracing::convert(scalar_type<T>(), ids[i], loc);
    return c;
  }
};

namespace detail {

/// Applies one operation to each scalar of two packs.
template <class X>
Var<X> each(ir::Op op, const tracing::Id* a, const tracing::Id* b, Loc loc) {
  tracing::Id r[Flat<X>::count];
  tracing::each(op, a, 1, b, 1, Flat<X>::count, r, loc);
  return Var<X>(r, FromId{});
}
/// Applies one operation to each scalar of a pack and one scalar.
template <class X>
Var<X> each_by_scalar(ir::Op op, const tracing::Id* a, tracing::Id s, Loc loc) {
  tracing::Id r[Flat<X>::count];
  tracing::each(op, a, 1, &s, 0, Flat<X>::count, r, loc);
  return Var<X>(r, FromId{});
}
template <class X>
Var<X> scalar_by_each(ir::Op op, tracing::Id s, const tracing::Id* a, Loc loc) {
  tracing::Id r[Flat<X>::count];
  tracing::each(op, &s, 0, a, 1, Flat<X>::count, r, loc);
  return Var<X>(r, FromId{});
}
template <class X>
Var<X> each(ir::Op op, const tracing::Id* a, Loc loc) {
  tracing::Id r[Flat<X>::count];
  for (int i = 0; i < Flat<X>::count; ++i) r[i] = tracing::unary(op, a[i], loc);
  return Var<X>(r, FromId{});
}
template <class X>
Var<X> each_select(const tracing::Id* c, int step, const tracing::Id* a, const tracing::Id* b, Loc loc) {
  tracing::Id r[Layout<X>::count];
  for (int i = 0; i < Layout<X>::count; ++i) r[i] = tracing::ternary(ir::Op::select, c[i * step], a[i], b[i], loc);
  return Var<X>(r, FromId{});
}

/// The operators of every value of several scalars: packs and records.
template <class X>
struct ValueOps {
  /// True where all scalars are equal.
  friend ScalarOps<bool>::needs_If_While_or_select operator==(In<X> a, In<X> b) {
    return Var<bool>(tracing::all_equal(a.id, b.id, Layout<X>::count, b.loc), FromId{});
  }
  friend ScalarOps<bool>::needs_If_While_or_select operator!=(In<X> a, In<X> b) {
    return Var<bool>(tracing::logical_not(tracing::all_equal(a.id, b.id, Layout<X>::count, b.loc), b.loc), FromId{});
  }
  friend Var<X> select(In<bool> c, In<X> a, In<X> b) { return each_select<X>(&c.id, 0, a.id, b.id, c.loc); }
};

// Declares operators of packs as friends of PackOps<X>: V is Var<X>, I is In<X>, S is In of the scalar.
#define WEFT_PACK_UPDATE(symbol, op, B, constraint, ids, step)             \
  friend V& operator symbol##=(V& a, B b) requires(constraint) {           \
    a.update(ir::Op::op, ids, step, b.loc);                                \
    return a;                                                              \
  }                                                                        \
  friend const V& operator symbol##=(const V& a, B) requires(constraint) { \
    WEFT_REFUSE_WRITE(X);                                                  \
    return a;                                                              \
  }
#define WEFT_PACK_BY_PACK(symbol, op, constraint)                                                                    \
  friend V operator symbol(I a, I b) requires(constraint) { return detail::each<X>(ir::Op::op, a.id, b.id, b.loc); } \
  WEFT_PACK_UPDATE(symbol, op, I, constraint, b.id, 1)
#define WEFT_PACK_BY_SCALAR(symbol, op, constraint)                  \
  friend V operator symbol(I a, S s) requires(constraint) {          \
    return detail::each_by_scalar<X>(ir::Op::op, a.id, s.id, s.loc); \
  }                                                                  \
  WEFT_PACK_UPDATE(symbol, op, S, constraint, &b.id, 0)
#define WEFT_SCALAR_BY_PACK(symbol, op, constraint)                  \
  friend V operator symbol(S s, I a) requires(constraint) {          \
    return detail::scalar_by_each<X>(ir::Op::op, s.id, a.id, a.loc); \
  }

}  // namespace detail

/// The choice between two packs of the host: select(c, vec3{..}, vec3{..}).
template <detail::Pack X>
Var<X> select(In<bool> c, const X& a, const X& b) {
  return select(c, Var<X>(a, c.loc), Var<X>(b, c.loc));
}

}  // namespace weft
