// Traced quaternions and rigid transforms.
#pragma once
#include "../types/quaternion.h"
#include "vec_var.h"

namespace weft {

namespace detail {

template <class T, class U>
inline constexpr bool same_shape<quaternion<T>, quaternion<U>> = !std::is_same_v<T, U>;
template <class T, class U>
inline constexpr bool same_shape<transformation<T>, transformation<U>> = !std::is_same_v<T, U>;

template <class T>
struct PackOps<quaternion<T>> {
  using X = quaternion<T>;
  using V = Var<X>;
  using I = In<X>;
  using S = In<T>;

  WEFT_PACK_BY_PACK(+, add, true)
  WEFT_PACK_BY_PACK(-, sub, true)
  WEFT_PACK_BY_SCALAR(*, mul, true)
  WEFT_PACK_BY_SCALAR(/, div, true)
  WEFT_SCALAR_BY_PACK(*, mul, true)
  friend V operator-(I a) { return detail::each<X>(ir::Op::neg, a.id, a.loc); }
  /// The Hamilton product: the rotation b, then a.
  friend V operator*(I a, I b) {
    tracing::CallPlace place(b.loc);
    return detail::hamilton(V(a.id, FromId{}), V(b.id, FromId{}));
  }
  friend V& operator*=(V& a, I b) { return a = a * b; }
  friend const V& operator*=(const V& a, I) {
    WEFT_REFUSE_WRITE(X);
    return a;
  }
};

/// The parts x, y, z, w, like those of a vector of four, except for the operators.
template <class T>
struct VarParts<quaternion<T>> : VecInit<4, T> {
  using VecInit<4, T>::VecInit;
  using Parts = Components<4, Var<T>>;

  VarParts() = default;
  /// A quaternion from its vector part and its real part.
  VarParts(In<vec<3, T>> v, In<T> w)
      : VecInit<4, T>(Gathered<4, T>(Var<vec<3, T>>(v.id, FromId{}), Var<T>(w.id, FromId{})).id, FromId{}) {}
  Var<T>& operator[](HostIndex i) & { return part(i.in(4)); }
  const Var<T>& operator[](HostIndex i) const& { return part(i.in(4)); }
  Var<T> operator[](HostIndex i) && { return part(i.in(4)); }
  Var<T>& part(int i) { return static_cast<Parts&>(*this)[i]; }
  const Var<T>& part(int i) const { return static_cast<const Parts&>(*this)[i]; }
};

template <class T>
struct PackOps<transformation<T>> {
  using X = transformation<T>;
  using V = Var<X>;
  using I = In<X>;

  /// The transform b, then a.
  friend V operator*(I a, I b) {
    tracing::CallPlace place(b.loc);
    return detail::composed(V(a.id, FromId{}), V(b.id, FromId{}));
  }
  friend V& operator*=(V& a, I b) { return a = a * b; }
  friend const V& operator*=(const V& a, I) {
    WEFT_REFUSE_WRITE(X);
    return a;
  }
};

template <class T>
struct VarParts<transformation<T>> {
  Var<vec<3, T>> p;
  Var<quaternion<T>> q;

  VarParts() = default;
  VarParts(In<vec<3, T>> p, In<quaternion<T>> q) : p(p.id, FromId{}), q(q.id, FromId{}) {}
  VarParts(const tracing::Id* ids, FromId) : p(ids, FromId{}), q(ids + 3, FromId{}) {}
  explicit VarParts(const tracing::Named& named) : p(named), q(named.part(3 * sizeof(T), 3)) {}
  Var<T>& part(int i) { return i < 3 ? p.part(i) : q.part(i - 3); }
};

}  // namespace detail

}  // namespace weft
