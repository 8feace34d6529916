// Traced matrices: R * C traced scalars, row-major like the host's.
#pragma once
#include "../types/mat.h"
#include "vec_var.h"

namespace weft {

template <int R, int C, class T>
class In<mat<R, C, T>> {
 public:
  In(const Var<mat<R, C, T>>& v, Loc loc = Loc::here()) : loc(loc) {
    for (int i = 0; i < R * C; ++i) id[i] = v.m[i].read(loc);
  }
  In(const Ref<mat<R, C, T>>& r, Loc loc = Loc::here()) : loc(loc) { r.read(id, loc); }
  In(const Ref<const mat<R, C, T>>& r, Loc loc = Loc::here()) : loc(loc) { r.read(id, loc); }
  In(const mat<R, C, T>& v, Loc loc = Loc::here()) : loc(loc) {
    for (int i = 0; i < R * C; ++i) id[i] = In<T>(v.m[i], loc).id;
  }

  trace::Id id[R * C];
  Loc loc;
};

namespace detail {

/// What Var<mat> and Ref<mat> have in common. Products are by the rules of matrices, not component by component.
template <int R, int C, class T>
struct MatOps {
  using V = Var<mat<R, C, T>>;
  using I = In<mat<R, C, T>>;

  friend V operator+(I a, I b) { return V::each(ir::Op::add, a.id, b.id, b.loc); }
  friend V operator-(I a, I b) { return V::each(ir::Op::sub, a.id, b.id, b.loc); }
  friend V operator*(I a, In<T> s) { return V::each_scalar(ir::Op::mul, a.id, s.id, s.loc); }
  friend V operator*(In<T> s, I a) { return V::each_scalar(ir::Op::mul, a.id, s.id, a.loc); }
  friend V operator/(I a, In<T> s) { return V::each_scalar(ir::Op::div, a.id, s.id, s.loc); }
  friend V operator-(I a) { return V::each(ir::Op::neg, a.id, nullptr, a.loc); }
  friend Var<vec<R, T>> operator*(I a, In<vec<C, T>> v) {
    trace::Id r[R];
    trace::matmul(a.id, v.id, R, C, 1, r, v.loc);
    return Var<vec<R, T>>(r, FromId{});
  }
  friend Var<mat<C, R, T>> transpose(I a) {
    trace::Id r[R * C];
    for (int i = 0; i < R; ++i)
      for (int j = 0; j < C; ++j) r[j * R + i] = a.id[i * C + j];
    return Var<mat<C, R, T>>(r, FromId{});
  }
};

}  // namespace detail

/// A traced matrix: m(i, j) with host indices is row i, column j.
template <int R, int C, class T>
class Var<mat<R, C, T>> : public detail::MatOps<R, C, T> {
 public:
  using host = mat<R, C, T>;
  Var<T> m[R * C];

  /// Zero.
  Var() = default;
  Var(const Var&) = default;
  Var(const host& v, Loc loc = Loc::here()) : Var(In<host>(v, loc).id, detail::FromId{}) {}
  Var(const Ref<host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  Var(const Ref<const host>& r, Loc loc = Loc::here()) : Var(In<host>(r, loc).id, detail::FromId{}) {}
  /// R * C elements, row by row.
  template <class... A>
  requires(sizeof...(A) == R * C && R * C > 1 && (std::convertible_to<A, In<T>> && ...)) Var(const A&... parts)
      : m{Var<T>(In<T>(parts).id, detail::FromId{})...} {}
  Var(const trace::Id* ids, detail::FromId) : Var(std::make_index_sequence<R * C>(), ids) {}

  Var& operator=(const Var& v) { return assign(In<host>(v, Loc{})); }
  template <class A>
  requires(!std::is_same_v<A, Var> && std::is_convertible_v<const A&, In<host>>) Var& operator=(const A& v) {
    return assign(In<host>(v, Loc{}));
  }
  Var& operator+=(In<host> b) { return *this = *this + b; }
  Var& operator-=(In<host> b) { return *this = *this - b; }
  Var& operator*=(In<T> b) { return *this = *this * b; }

  Var<T>& operator()(int i, int j) { return m[i * C + j]; }
  const Var<T>& operator()(int i, int j) const { return m[i * C + j]; }

  static Var each(ir::Op op, const trace::Id* a, const trace::Id* b, Loc loc) {
    trace::Id r[R * C];
    for (int i = 0; i < R * C; ++i) r[i] = b ? trace::binary(op, a[i], b[i], loc) : trace::unary(op, a[i], loc);
    return Var(r, detail::FromId{});
  }
  static Var each_scalar(ir::Op op, const trace::Id* a, trace::Id s, Loc loc) {
    trace::Id r[R * C];
    for (int i = 0; i < R * C; ++i) r[i] = trace::binary(op, a[i], s, loc);
    return Var(r, detail::FromId{});
  }

 private:
  Var& assign(const In<host>& v) {
    for (int i = 0; i < R * C; ++i) m[i] = Var<T>(v.id[i], detail::FromId{});
    return *this;
  }
  template <std::size_t... I>
  Var(std::index_sequence<I...>, const trace::Id* ids) : m{Var<T>(ids[I], detail::FromId{})...} {}
};

/// Product of two matrices.
template <int R, int K, int C, class T>
Var<mat<R, C, T>> operator*(const Var<mat<R, K, T>>& a, const Var<mat<K, C, T>>& b) {
  In<mat<R, K, T>> l(a);
  In<mat<K, C, T>> r(b);
  trace::Id out[R * C];
  trace::matmul(l.id, r.id, R, K, C, out, l.loc);
  return Var<mat<R, C, T>>(out, detail::FromId{});
}

namespace detail {
template <int R, int C, class T, class E>
class MatRef : public MatOps<R, C, T> {
 public:
  explicit MatRef(const trace::Address& at) : at_(at) {}
  MatRef(const MatRef&) = default;
  void read(trace::Id* out, Loc loc) const { trace::load(at_, scalar_type<T>(), R * C, out, loc); }
  const trace::Address& address() const { return at_; }
  /// One element of the matrix in the array.
  E operator()(int i, int j) const {
    trace::Address at = at_;
    at.offset += std::uint32_t((i * C + j) * ir::bytes(scalar_type<T>()));
    return E(at);
  }

 private:
  trace::Address at_;
};
}  // namespace detail

template <int R, int C, class T>
class Ref<mat<R, C, T>> : public detail::MatRef<R, C, T, Ref<T>> {
 public:
  using host = mat<R, C, T>;
  using detail::MatRef<R, C, T, Ref<T>>::MatRef;
  Ref(const Ref&) = default;
  const Ref& operator=(const Ref& r) const&& { return *this = In<host>(r, Loc{}); }
  /// `auto e = x[i]; e = x[j];` is refused, and with it std::swap(x[i], x[j]): it would move names, not values.
  const Ref& operator=(const Ref& r) const& = delete;
  const Ref& operator=(In<host> v) const {
    trace::store(this->address(), scalar_type<T>(), R * C, v.id, v.loc);
    return *this;
  }
  const Ref& operator+=(In<host> b) const { return *this = *this + b; }
  const Ref& operator-=(In<host> b) const { return *this = *this - b; }
  const Ref& operator*=(In<T> b) const { return *this = *this * b; }
};
template <int R, int C, class T>
class Ref<const mat<R, C, T>> : public detail::MatRef<R, C, T, Ref<const T>> {
 public:
  using host = mat<R, C, T>;
  using detail::MatRef<R, C, T, Ref<const T>>::MatRef;
  Ref(const Ref&) = default;
  Ref& operator=(const Ref&) = delete;
};

}  // namespace weft
