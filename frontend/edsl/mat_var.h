// Traced matrices: R * C traced scalars, row-major like the host's.
#pragma once
#include "../types/mat.h"
#include "vec_var.h"

namespace weft {

namespace detail {

template <int R, int C, class T, class U>
inline constexpr bool same_shape<mat<R, C, T>, mat<R, C, U>> = !std::is_same_v<T, U>;

/// a * b of two matrices whose numbers of columns and rows agree.
template <int R, int K, int C, class T>
Var<mat<R, C, T>> product(const In<mat<R, K, T>>& a, const In<mat<K, C, T>>& b, Loc loc) {
  tracing::Id out[R * C];
  tracing::matmul(a.id, b.id, R, K, C, out, loc);
  return Var<mat<R, C, T>>(out, FromId{});
}

/// What Var<mat> and Ref<mat> have in common. Products are by the rules of matrices, not element by element.
template <int R, int C, class T>
struct PackOps<mat<R, C, T>> {
  using X = mat<R, C, T>;
  using V = Var<X>;
  using I = In<X>;
  using S = In<T>;

  WEFT_PACK_COMMON
  WEFT_PACK_BY_PACK(+, add, NumericScalar<T>)
  WEFT_PACK_BY_PACK(-, sub, NumericScalar<T>)
  WEFT_PACK_BY_SCALAR(*, mul, NumericScalar<T>)
  WEFT_PACK_BY_SCALAR(/, div, NumericScalar<T>)
  WEFT_SCALAR_BY_PACK(*, mul, NumericScalar<T>)
  friend V operator-(I a) requires NumericScalar<T> { return detail::each<X>(ir::Op::neg, a.id, a.loc); }
  friend Var<vec<R, T>> operator*(I a, In<vec<C, T>> v) {
    tracing::Id r[R];
    tracing::matmul(a.id, v.id, R, C, 1, r, v.loc);
    return Var<vec<R, T>>(r, FromId{});
  }
  /// The vector as a row.
  friend Var<vec<C, T>> operator*(In<vec<R, T>> v, I a) {
    tracing::Id r[C];
    tracing::matmul(v.id, a.id, 1, R, C, r, a.loc);
    return Var<vec<C, T>>(r, FromId{});
  }
  // The left factor is converted, which gives the line; the right one tells its type.
  template <class B>
  requires MatLike<B, C> && std::is_same_v<ElementOf<B>, T>
  friend auto operator*(I a, const B& b) {
    return detail::product<R, C, MatSize<HostOf<B>>::cols, T>(a, In<HostOf<B>>(b, a.loc), a.loc);
  }
  template <class A>
  requires(MatLike<A, 0, R> && !any_traced<A> && !std::is_same_v<A, X> && std::is_same_v<ElementOf<A>, T>) friend auto
  operator*(const A& a, I b) {
    return detail::product<MatSize<A>::rows, R, C, T>(In<A>(a, b.loc), b, b.loc);
  }
  friend V& operator*=(V& a, I b) requires(R == C) { return a = detail::product<R, C, C, T>(I(a, b.loc), b, b.loc); }
  friend const Ref<X>& operator*=(const Ref<X>& a, I b) requires(R == C) {
    return a = detail::product<R, C, C, T>(I(a, b.loc), b, b.loc);
  }
};

template <int R, int C, class T>
struct VarParts<mat<R, C, T>> {
  Var<T> m[R * C];

  VarParts() = default;
  /// All elements equal.
  explicit VarParts(In<T> all) {
    for (Var<T>& e : m) e = Var<T>(all.id, FromId{});
  }
  /// R * C elements, row by row.
  template <class... A>
  requires(sizeof...(A) > 1 && (ScalarLike<A> && ...)) VarParts(const A&... parts)
      : VarParts(Gathered<R * C, T>(parts...).id, FromId{}) {}
  VarParts(const tracing::Id* ids, FromId) : VarParts(ids, std::make_index_sequence<std::size_t(R* C)>()) {}

  static Var<mat<R, C, T>> identity(Loc loc = Loc::here()) requires(R == C) {
    return Var<mat<R, C, T>>(mat<R, C, T>::identity(), loc);
  }

  /// Row i, column j. Traced indices cost a select for each element, and those out of range name the nearest.
  Var<T>& operator()(HostIndex i, HostIndex j) { return m[i.in(R)*C + j.in(C)]; }
  const Var<T>& operator()(HostIndex i, HostIndex j) const { return m[i.in(R)*C + j.in(C)]; }
  ComponentAt<T> operator()(const TracedIndex& i, const TracedIndex& j) {
    return ComponentAt<T>(
        this, [](void* v, int k) -> Var<T>& { return static_cast<VarParts*>(v)->m[k]; }, i.id, R, j.id, C);
  }
  ComponentAt<T> operator()(HostIndex i, const TracedIndex& j) { return (*this)(TracedIndex(i, R), j); }
  ComponentAt<T> operator()(const TracedIndex& i, HostIndex j) { return (*this)(i, TracedIndex(j, C)); }
  Var<T> operator()(const TracedIndex& i, const TracedIndex& j) const {
    tracing::Id ids[R * C];
    read(ids, i.loc);
    return Var<T>(tracing::pick(ids, R, C, i.id, j.id, j.loc), FromId{});
  }
  Var<T> operator()(HostIndex i, const TracedIndex& j) const { return (*this)(TracedIndex(i, R), j); }
  Var<T> operator()(const TracedIndex& i, HostIndex j) const { return (*this)(i, TracedIndex(j, C)); }

  /// Copies; const, since an assignment to them would be lost. Indices of either face.
  template <class I>
  const Var<vec<C, T>> row(const I& i, Loc loc = Loc::here()) const {
    tracing::Id r[C];
    for (int j = 0; j < C; ++j) r[j] = element(i, j, loc);
    return Var<vec<C, T>>(r, FromId{});
  }
  template <class I>
  const Var<vec<R, T>> col(const I& j, Loc loc = Loc::here()) const {
    tracing::Id r[R];
    for (int i = 0; i < R; ++i) r[i] = element(i, j, loc);
    return Var<vec<R, T>>(r, FromId{});
  }
  template <class I>
  void set_row(const I& i, In<vec<C, T>> v) {
    for (int j = 0; j < C; ++j) (*this)(index(i, v.loc), HostIndex(j)) = Var<T>(v.id[j], FromId{});
  }
  template <class I>
  void set_col(const I& j, In<vec<R, T>> v) {
    for (int i = 0; i < R; ++i) (*this)(HostIndex(i), index(j, v.loc)) = Var<T>(v.id[i], FromId{});
  }

  Var<T>& part(int i) { return m[i]; }
  void read(tracing::Id* out, Loc loc) const {
    for (int i = 0; i < R * C; ++i) out[i] = m[i].read(loc);
  }

 private:
  template <std::size_t... I>
  VarParts(const tracing::Id* ids, std::index_sequence<I...>) : m{Var<T>(ids[I], FromId{})...} {}
  template <class I>
  static auto index(const I& i, Loc loc) {
    if constexpr (IntegerScalar<I>)
      return HostIndex(i, loc);
    else
      return TracedIndex(i, loc);
  }
  template <class I, class J>
  tracing::Id element(const I& i, const J& j, Loc loc) const {
    return (*this)(index(i, loc), index(j, loc)).read(loc);
  }
};

template <int R, int C, class T, class E>
class RefParts<mat<R, C, T>, E> : public RefBase<mat<R, C, T>> {
  using Row = std::conditional_t<std::is_const_v<E>, const vec<C, T>, vec<C, T>>;

 public:
  using RefBase<mat<R, C, T>>::RefBase;
  RefParts(const RefParts&) = default;
  /// One element of the matrix in the array. Traced indices out of range name the nearest.
  Ref<E> operator()(HostIndex i, HostIndex j) const { return Ref<E>(this->part(this->address(), i.in(R)*C + j.in(C))); }
  Ref<E> operator()(const TracedIndex& i, const TracedIndex& j) const {
    return Ref<E>(tracing::part_at(row_at(i), std::uint32_t(sizeof(T)), j.id, C, j.loc));
  }
  Ref<E> operator()(HostIndex i, const TracedIndex& j) const {
    return Ref<E>(tracing::part_at(this->part(this->address(), i.in(R)*C), std::uint32_t(sizeof(T)), j.id, C, j.loc));
  }
  Ref<E> operator()(const TracedIndex& i, HostIndex j) const { return Ref<E>(this->part(row_at(i), j.in(C))); }
  /// A row of the matrix in the array, to read and to assign.
  Ref<Row> row(HostIndex i) const { return Ref<Row>(this->part(this->address(), i.in(R)*C)); }
  Ref<Row> row(const TracedIndex& i) const { return Ref<Row>(row_at(i)); }

 private:
  tracing::Address row_at(const TracedIndex& i) const {
    return tracing::part_at(this->address(), std::uint32_t(C * sizeof(T)), i.id, R, i.loc);
  }
};

}  // namespace detail

}  // namespace weft
