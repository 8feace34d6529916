// Quaternions and rigid transforms on the host.
#pragma once
#include "vec.h"

namespace weft {

namespace detail {

// These functions serve both faces: Q is quaternion<T> or Var<quaternion<T>>, V the vector type that goes with it.

template <class Q>
constexpr Q hamilton(const Q& a, const Q& b) {
  return Q(a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, a.w * b.y + a.y * b.w + a.z * b.x - a.x * b.z,
           a.w * b.z + a.z * b.w + a.x * b.y - a.y * b.x, a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z);
}

template <class V>
constexpr V cross3(const V& a, const V& b) {
  return V(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

/// q v q* = v + 2 w (u x v) + 2 u x (u x v) for the unit quaternion q = u + w.
template <class Q, class V>
constexpr V rotated(const Q& q, const V& v) {
  const V u(q.x, q.y, q.z), t = cross3(u, v) * 2;
  return v + t * q.w + cross3(u, t);
}

template <class X>
constexpr X composed(const X& a, const X& b) {
  return X(a.p + rotated(a.q, b.p), hamilton(a.q, b.q));
}

}  // namespace detail

/// A quaternion x i + y j + z k + w, with the real part last. Rotations are unit quaternions. Zero by default; the
/// identity rotation is quat_identity().
template <class T>
struct quaternion : Components<4, T> {
  static_assert(RealScalar<T>, "weft: a quaternion is made of half, float or double");
  using scalar = T;

  constexpr quaternion() : Components<4, T>{} {}
  template <LiteralFor<T> X, LiteralFor<T> Y, LiteralFor<T> Z, LiteralFor<T> W>
  constexpr quaternion(X x, Y y, Z z, W w)
      : Components<4, T>{detail::literal_as<T>(x), detail::literal_as<T>(y), detail::literal_as<T>(z),
                         detail::literal_as<T>(w)} {}
  /// Makes a quaternion from its vector part and real part.
  template <LiteralFor<T> W>
  constexpr quaternion(const vec<3, T>& v, W w) : Components<4, T>{v.x, v.y, v.z, detail::literal_as<T>(w)} {}
  template <class U>
  requires(!std::is_same_v<U, T>) explicit constexpr quaternion(const quaternion<U>& q)
      : Components<4, T>{cast<T>(q.x), cast<T>(q.y), cast<T>(q.z), cast<T>(q.w)} {}

  WEFT_LINEAR_OPERATORS(quaternion, T, 4, [i])
  /// Hamilton's product: the rotation b, then a.
  friend constexpr quaternion operator*(const quaternion& a, const quaternion& b) { return detail::hamilton(a, b); }
  friend constexpr quaternion& operator*=(quaternion& a, const quaternion& b) { return a = a * b; }
  friend constexpr bool operator==(const quaternion& a, const quaternion& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
  }
};

template <class T>
struct Flat<quaternion<T>> {
  using scalar = T;
  static constexpr int count = 4;
};

template <class T>
constexpr quaternion<T> select(std::same_as<bool> auto c, const quaternion<T>& a, const quaternion<T>& b) {
  return c ? a : b;
}

/// A rigid transform: the rotation q, then the translation p. Seven scalars, p before q. Zero by default; the identity
/// transform is transform_identity().
template <class T>
struct transformation {
  static_assert(RealScalar<T>, "weft: a transform is made of half, float or double");
  using scalar = T;
  vec<3, T> p;
  quaternion<T> q;

  constexpr transformation() = default;
  constexpr transformation(const vec<3, T>& p, const quaternion<T>& q) : p(p), q(q) {}
  template <class U>
  requires(!std::is_same_v<U, T>) explicit constexpr transformation(const transformation<U>& t) : p(t.p), q(t.q) {}

  /// The transform b, then a.
  friend constexpr transformation operator*(const transformation& a, const transformation& b) {
    return detail::composed(a, b);
  }
  friend constexpr transformation& operator*=(transformation& a, const transformation& b) { return a = a * b; }
  friend constexpr bool operator==(const transformation& a, const transformation& b) {
    return a.p == b.p && a.q == b.q;
  }
};

template <class T>
struct Flat<transformation<T>> {
  using scalar = T;
  static constexpr int count = 7;
};

template <class T>
constexpr transformation<T> select(std::same_as<bool> auto c, const transformation<T>& a, const transformation<T>& b) {
  return c ? a : b;
}

}  // namespace weft
