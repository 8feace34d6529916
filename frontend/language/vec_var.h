// Traced vectors: N traced scalars; operators and functions are C++ over those.
#pragma once
#include "../types/vec.h"
#include "face.h"
#include "pack.h"

namespace weft {

namespace detail {

template <int N, class T, class U>
inline constexpr bool same_shape<vec<N, T>, vec<N, U>> = !std::is_same_v<T, U>;

/// The operators of Var<vec>.
template <int N, class T>
struct PackOps<vec<N, T>> {
  using X = vec<N, T>;
  using V = Var<X>;
  using I = In<X>;
  using S = In<T>;

  WEFT_PACK_BY_PACK(+, add, NumericScalar<T>)
  WEFT_PACK_BY_PACK(-, sub, NumericScalar<T>)
  WEFT_PACK_BY_PACK(*, mul, NumericScalar<T>)
  WEFT_PACK_BY_PACK(/, div, NumericScalar<T>)
  WEFT_PACK_BY_PACK(%, rem, IntegerScalar<T>)
  WEFT_PACK_BY_PACK(&, bit_and, !RealScalar<T>)
  WEFT_PACK_BY_PACK(|, bit_or, !RealScalar<T>)
  WEFT_PACK_BY_PACK(^, bit_xor, !RealScalar<T>)
  WEFT_PACK_BY_PACK(<<, shl, IntegerScalar<T>)
  WEFT_PACK_BY_PACK(>>, shr, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(*, mul, NumericScalar<T>)
  WEFT_PACK_BY_SCALAR(/, div, NumericScalar<T>)
  WEFT_PACK_BY_SCALAR(%, rem, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(&, bit_and, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(|, bit_or, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(^, bit_xor, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(<<, shl, IntegerScalar<T>)
  WEFT_PACK_BY_SCALAR(>>, shr, IntegerScalar<T>)
  WEFT_SCALAR_BY_PACK(*, mul, NumericScalar<T>)
  WEFT_SCALAR_BY_PACK(/, div, NumericScalar<T>)
  friend V operator-(I a) requires NumericScalar<T> { return detail::each<X>(ir::Op::neg, a.id, a.loc); }
  friend V operator~(I a) requires IntegerScalar<T> { return detail::each<X>(ir::Op::bit_not, a.id, a.loc); }
  friend V operator!(I a) requires std::is_same_v<T, bool> { return detail::each<X>(ir::Op::bit_not, a.id, a.loc); }
  /// Chooses component by component.
  friend V select(In<vec<N, bool>> c, I a, I b) { return detail::each_select<X>(c.id, 1, a.id, b.id, c.loc); }
};

template <std::size_t, class A>
using Each = A;

/// The constructor from N numbers. It is no template, so each operand brings the line on which it stands.
template <int N, class T, class I = std::make_index_sequence<std::size_t(N)>>
struct VecInit;
template <int N, class T, std::size_t... I>
struct VecInit<N, T, std::index_sequence<I...>> : Components<N, Var<T>> {
  VecInit() : Components<N, Var<T>>{} {}
  VecInit(Each<I, In<T>>... parts) requires(N > 1) : Components<N, Var<T>>{Var<T>(parts.id, FromId{})...} {}
  VecInit(const tracing::Id* ids, FromId) : Components<N, Var<T>>{Var<T>(ids[I], FromId{})...} {}
  explicit VecInit(const tracing::Named& named) : Components<N, Var<T>>{Var<T>(named.part(I * sizeof(T), I))...} {}
};

/// The components of a vector that is put together from numbers and shorter vectors.
template <int N, class T>
struct Gathered {
  tracing::Id id[N];

  template <class... A>
  explicit Gathered(const A&... parts) {
    constexpr bool right_count = ((Scalar<HostOf<A>> ? 1 : Flat<HostOf<A>>::count) + ...) == N;
    constexpr bool right_types =
        ((std::is_convertible_v<const A&, In<T>> || (!ScalarLike<A> && std::is_same_v<ElementOf<A>, T>)) && ...);
    static_assert(right_count, "weft: the parts of a vector do not add up to its number of components");
    static_assert(right_types,
                  "weft: a part of a vector is of another element type; convert it, as in Float(i) or Vec2(v)");
    if constexpr (right_count && right_types) {
      tracing::Id* at = id;
      (put(at, parts), ...);
    }
  }

 private:
  template <class A>
  static void put(tracing::Id*& at, const A& part) {
    if constexpr (ScalarLike<A>) {
      *at++ = In<T>(part, Loc{}).id;
    } else {
      const In<HostOf<A>> ids(part, Loc{});
      for (tracing::Id i : ids.id) *at++ = i;
    }
  }
};

template <int N, class T>
struct VarParts<vec<N, T>> : VecInit<N, T> {
  using Parts = Components<N, Var<T>>;
  using VecInit<N, T>::VecInit;

  VarParts() = default;
  /// A vector with all components equal.
  explicit VarParts(In<T> all) : VecInit<N, T>(Repeated(all.id).id, FromId{}) {}
  /// A vector of as many numbers and shorter vectors as fill it: Vec4(v, 1) of a Vec3 v.
  template <class... A>
  requires(sizeof...(A) > 1 && ((ScalarLike<A> || VecLike<A>)&&...) &&
           !(sizeof...(A) == N && (std::is_convertible_v<const A&, In<T>> && ...))) VarParts(const A&... parts)
      : VecInit<N, T>(Gathered<N, T>(parts...).id, FromId{}) {}

  /// Component i. A traced index out of range names the nearest component; in a variable, a traced index costs a select
  /// for each component.
  Var<T>& operator[](HostIndex i) & { return part(i.in(N)); }
  const Var<T>& operator[](HostIndex i) const& { return part(i.in(N)); }
  Var<T> operator[](HostIndex i) && { return part(i.in(N)); }
  Var<T>& operator[](const TracedIndex& i) & { return chosen(*this, i); }
  const Var<T>& operator[](const TracedIndex& i) const& { return chosen(*this, i); }
  Var<T> operator[](const TracedIndex& i) && { return chosen(*this, i); }

  Var<T>& part(int i) { return static_cast<Parts&>(*this)[i]; }
  const Var<T>& part(int i) const { return static_cast<const Parts&>(*this)[i]; }

 private:
  static Var<T>& chosen(const VarParts& v, const TracedIndex& i) {
    tracing::Slot* slots[N];
    for (int k = 0; k < N; ++k) slots[k] = &const_cast<VarParts&>(v).part(k).slot();
    return variable_of<T>(tracing::name_of_part({.slots = slots, .column = i.id, .columns = N}, sizeof(T), i.loc));
  }
  struct Repeated {
    tracing::Id id[N];
    explicit Repeated(tracing::Id all) {
      for (tracing::Id& i : id) i = all;
    }
  };
};

}  // namespace detail

/// The choice component by component between two vectors of the host: select(c, vec3{..}, vec3{..}).
template <int N, class T>
Var<vec<N, T>> select(std::type_identity_t<In<vec<N, bool>>> c, const vec<N, T>& a, const vec<N, T>& b) {
  return select(Var<vec<N, bool>>(c.id, detail::FromId{}), Var<vec<N, T>>(a, c.loc), Var<vec<N, T>>(b, c.loc));
}

// These operators take a host vector and a traced number, because no class of the host names the traced operators.
#define WEFT_HOST_VEC_BY_VAR(symbol)                                    \
  template <int N, class T>                                             \
  Var<vec<N, T>> operator symbol(const vec<N, T>& a, const Var<T>& s) { \
    return Var<vec<N, T>>(a) symbol s;                                  \
  }                                                                     \
  template <int N, class T>                                             \
  Var<vec<N, T>> operator symbol(const Var<T>& s, const vec<N, T>& a) { \
    return s symbol Var<vec<N, T>>(a);                                  \
  }
WEFT_HOST_VEC_BY_VAR(*)
WEFT_HOST_VEC_BY_VAR(/)
#undef WEFT_HOST_VEC_BY_VAR

}  // namespace weft
