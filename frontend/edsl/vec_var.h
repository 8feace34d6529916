// Traced vectors: N traced scalars; operators and functions are C++ over those.
#pragma once
#include <utility>

#include "../types/vec.h"
#include "var.h"

namespace weft {

template <int N, class T>
class In<vec<N, T>> {
 public:
  In(const Var<vec<N, T>>& v, Loc loc = Loc::here()) : loc(loc) {
    for (int i = 0; i < N; ++i) id[i] = v[i].read(loc);
  }
  In(const Ref<vec<N, T>>& r, Loc loc = Loc::here()) : loc(loc) { r.read(id, loc); }
  In(const Ref<const vec<N, T>>& r, Loc loc = Loc::here()) : loc(loc) { r.read(id, loc); }
  In(const vec<N, T>& v, Loc loc = Loc::here()) : loc(loc) {
    for (int i = 0; i < N; ++i) id[i] = In<T>(v[i], loc).id;
  }

  trace::Id id[N];
  Loc loc;
};

namespace detail {

/// What Var<vec> and Ref<vec> have in common.
template <int N, class T>
struct VecOps {
  using V = Var<vec<N, T>>;
  using I = In<vec<N, T>>;
  using S = In<T>;

  friend V operator+(I a, I b) { return V::each(ir::Op::add, a.id, b.id, b.loc); }
  friend V operator-(I a, I b) { return V::each(ir::Op::sub, a.id, b.id, b.loc); }
  friend V operator*(I a, I b) { return V::each(ir::Op::mul, a.id, b.id, b.loc); }
  friend V operator/(I a, I b) { return V::each(ir::Op::div, a.id, b.id, b.loc); }
  friend V operator*(I a, S s) { return V::each_scalar(ir::Op::mul, a.id, s.id, s.loc); }
  friend V operator*(S s, I a) { return V::each_scalar(ir::Op::mul, a.id, s.id, a.loc); }
  friend V operator/(I a, S s) { return V::each_scalar(ir::Op::div, a.id, s.id, s.loc); }
  friend V operator-(I a) { return V::each(ir::Op::neg, a.id, nullptr, a.loc); }
  friend V(min)(I a, I b) { return V::each(ir::Op::min, a.id, b.id, b.loc); }
  friend V(max)(I a, I b) { return V::each(ir::Op::max, a.id, b.id, b.loc); }
  friend V abs(I a) { return V::each(ir::Op::abs, a.id, nullptr, a.loc); }
  friend V select(In<bool> c, I a, I b) {
    trace::Id r[N];
    for (int i = 0; i < N; ++i) r[i] = trace::ternary(ir::Op::select, c.id, a.id[i], b.id[i], c.loc);
    return V(r, FromId{});
  }
  /// True where all components are equal.
  friend Var<bool> operator==(I a, I b) { return Var<bool>(trace::all_equal(a.id, b.id, N, b.loc), FromId{}); }
  friend Var<bool> operator!=(I a, I b) {
    return Var<bool>(trace::logical_not(trace::all_equal(a.id, b.id, N, b.loc), b.loc), FromId{});
  }
  friend Var<T> dot(I a, I b) { return Var<T>(trace::dot(a.id, b.id, N, a.loc), FromId{}); }
  friend Var<T> length(I a) requires RealScalar<T> {
    return Var<T>(trace::unary(ir::Op::sqrt, trace::dot(a.id, a.id, N, a.loc), a.loc), FromId{});
  }
  friend Var<T> length_sq(I a) { return Var<T>(trace::dot(a.id, a.id, N, a.loc), FromId{}); }
  /// a / |a|; zero for a zero vector.
  friend V normalize(I a) requires RealScalar<T> {
    trace::Id r[N];
    trace::normalize(a.id, N, r, a.loc);
    return V(r, FromId{});
  }
  friend V cross(I a, I b) requires(N == 3) {
    trace::Id r[3];
    trace::cross(a.id, b.id, r, a.loc);
    return V(r, FromId{});
  }
};

}  // namespace detail

/// A traced vector with the components x, y, z, w (or v[i] with a host index). Operators work component by component.
template <int N, class T>
class Var<vec<N, T>> : public Components<N, Var<T>>, public detail::VecOps<N, T> {
  using Parts = Components<N, Var<T>>;

 public:
  using host = vec<N, T>;

  /// Zero.
  Var() : Parts{} {}
  Var(const Var&) = default;
  /// All components equal.
  explicit Var(In<T> all) : Var(std::make_index_sequence<N>(), [&](int) { return all.id; }) {}
  Var(In<T> x, In<T> y) requires(N == 2) : Parts{Var<T>(x.id, detail::FromId{}), Var<T>(y.id, detail::FromId{})} {}
  Var(In<T> x, In<T> y, In<T> z) requires(N == 3)
      : Parts{Var<T>(x.id, detail::FromId{}), Var<T>(y.id, detail::FromId{}), Var<T>(z.id, detail::FromId{})} {}
  Var(In<T> x, In<T> y, In<T> z, In<T> w) requires(N == 4)
      : Parts{Var<T>(x.id, detail::FromId{}), Var<T>(y.id, detail::FromId{}), Var<T>(z.id, detail::FromId{}),
              Var<T>(w.id, detail::FromId{})} {}
  Var(const host& v, Loc loc = Loc::here()) : Var(In<host>(v, loc).id, detail::FromId{}) {}
  Var(const Ref<host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  Var(const Ref<const host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  /// Converts each component by value.
  template <class U>
  requires(!std::is_same_v<U, T>) explicit Var(const Var<vec<N, U>>& v, Loc loc = Loc::here())
      : Var(std::make_index_sequence<N>(),
            [&](int i) { return trace::convert(scalar_type<T>(), v[i].read(loc), loc); }) {}
  Var(const trace::Id* ids, detail::FromId) : Var(std::make_index_sequence<N>(), [&](int i) { return ids[i]; }) {}

  Var& operator=(const Var& v) { return assign(In<host>(v, Loc{})); }
  template <class A>
  requires(!std::is_same_v<A, Var> && std::is_convertible_v<const A&, In<host>>) Var& operator=(const A& v) {
    return assign(In<host>(v, Loc{}));
  }
  Var& operator+=(In<host> b) { return *this = *this + b; }
  Var& operator-=(In<host> b) { return *this = *this - b; }
  Var& operator*=(In<host> b) { return *this = *this * b; }
  Var& operator/=(In<host> b) { return *this = *this / b; }
  Var& operator*=(In<T> b) { return *this = *this * b; }
  Var& operator/=(In<T> b) { return *this = *this / b; }

  static Var each(ir::Op op, const trace::Id* a, const trace::Id* b, Loc loc) {
    trace::Id r[N];
    for (int i = 0; i < N; ++i) r[i] = b ? trace::binary(op, a[i], b[i], loc) : trace::unary(op, a[i], loc);
    return Var(r, detail::FromId{});
  }
  static Var each_scalar(ir::Op op, const trace::Id* a, trace::Id s, Loc loc) {
    trace::Id r[N];
    for (int i = 0; i < N; ++i) r[i] = trace::binary(op, a[i], s, loc);
    return Var(r, detail::FromId{});
  }

 private:
  Var& assign(const In<host>& v) {
    for (int i = 0; i < N; ++i) (*this)[i] = Var<T>(v.id[i], detail::FromId{});
    return *this;
  }
  template <std::size_t... I, class F>
  Var(std::index_sequence<I...>, F id) : Parts{Var<T>(id(int(I)), detail::FromId{})...} {}
};

namespace detail {
/// The element functions of Ref<vec> and Ref<const vec>.
template <int N, class T, class R>
class VecRef : public Components<N, R>, public VecOps<N, std::remove_const_t<T>> {
 public:
  explicit VecRef(const trace::Address& at) : VecRef(at, std::make_index_sequence<N>()) {}
  VecRef(const VecRef&) = default;
  const trace::Address& address() const { return (*this)[0].address(); }
  void read(trace::Id* out, Loc loc) const { trace::load(address(), scalar_type<T>(), N, out, loc); }

 private:
  static trace::Address part(trace::Address at, std::size_t i) {
    at.offset += std::uint32_t(i * ir::bytes(scalar_type<T>()));
    return at;
  }
  template <std::size_t... I>
  VecRef(const trace::Address& at, std::index_sequence<I...>) : Components<N, R>{R(part(at, I))...} {}
};
}  // namespace detail

/// A vector in an array; its components are references too (`x[i].y = 0`).
template <int N, class T>
class Ref<vec<N, T>> : public detail::VecRef<N, T, Ref<T>> {
 public:
  using host = vec<N, T>;
  using detail::VecRef<N, T, Ref<T>>::VecRef;
  Ref(const Ref&) = default;
  const Ref& operator=(const Ref& r) const&& { return *this = In<host>(r, Loc{}); }
  /// `auto e = x[i]; e = x[j];` is refused, and with it std::swap(x[i], x[j]): it would move names, not values.
  const Ref& operator=(const Ref& r) const& = delete;
  const Ref& operator=(In<host> v) const {
    trace::store(this->address(), scalar_type<T>(), N, v.id, v.loc);
    return *this;
  }
  const Ref& operator+=(In<host> b) const { return *this = *this + b; }
  const Ref& operator-=(In<host> b) const { return *this = *this - b; }
  const Ref& operator*=(In<host> b) const { return *this = *this * b; }
  const Ref& operator/=(In<host> b) const { return *this = *this / b; }
  const Ref& operator*=(In<T> b) const { return *this = *this * b; }
  const Ref& operator/=(In<T> b) const { return *this = *this / b; }
};
template <int N, class T>
class Ref<const vec<N, T>> : public detail::VecRef<N, T, Ref<const T>> {
 public:
  using host = vec<N, T>;
  using detail::VecRef<N, T, Ref<const T>>::VecRef;
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;
};

/// select(c, vec3{..}, vec3{..}): host vectors in both branches.
template <int N, class T>
Var<vec<N, T>> select(In<bool> c, const vec<N, T>& a, const vec<N, T>& b) {
  return select(c, Var<vec<N, T>>(a), Var<vec<N, T>>(b));
}

// A host vector scaled by a traced number: no class of the host's names the traced operators.
template <int N, class T>
Var<vec<N, T>> operator*(const vec<N, T>& a, const Var<T>& s) {
  return Var<vec<N, T>>(a) * s;
}
template <int N, class T>
Var<vec<N, T>> operator*(const Var<T>& s, const vec<N, T>& a) {
  return Var<vec<N, T>>(a) * s;
}

}  // namespace weft
