// Traced matrices: R * C traced scalars, row-major like the host's.
#pragma once
#include "../types/mat.h"
#include "vec_var.h"

namespace weft {

namespace detail {

template <int R, int C, class T, class U>
inline constexpr bool same_shape<mat<R, C, T>, mat<R, C, U>> = !std::is_same_v<T, U>;

/// The product a * b of two matrices whose numbers of columns and rows agree.
template <int R, int K, int C, class T>
Var<mat<R, C, T>> product(const In<mat<R, K, T>>& a, const In<mat<K, C, T>>& b, Loc loc) {
  tracing::Id out[R * C];
  tracing::matmul(a.id, b.id, R, K, C, out, loc);
  return Var<mat<R, C, T>>(out, FromId{});
}

/// The operators of Var<mat>. Products follow the rules of matrices, not element by element.
template <int R, int C, class T>
struct PackOps<mat<R, C, T>> {
  using X = mat<R, C, T>;
  using V = Var<X>;
  using I = In<X>;
  using S = In<T>;

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
  /// The product with a vector as a row.
  friend Var<vec<C, T>> operator*(In<vec<R, T>> v, I a) {
    tracing::Id r[C];
    tracing::matmul(v.id, a.id, 1, R, C, r, a.loc);
    return Var<vec<C, T>>(r, FromId{});
  }
  // The conversion of the left factor brings the line; the right one tells its type.
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
  friend const V& operator*=(const V& a, I) requires(R == C) {
    WEFT_REFUSE_WRITE(X);
    return a;
  }
};

template <int R, int C, class T>
struct VarParts<mat<R, C, T>> {
  Var<T> m[R * C];

  VarParts() = default;
  /// A matrix with all elements equal.
  explicit VarParts(In<T> all) {
    for (Var<T>& e : m) e = Var<T>(all.id, FromId{});
  }
  /// A matrix of R * C elements, given row by row.
  template <class... A>
  requires(sizeof...(A) > 1 && (ScalarLike<A> && ...)) VarParts(const A&... parts)
      : VarParts(Gathered<R * C, T>(parts...).id, FromId{}) {}
  VarParts(const tracing::Id* ids, FromId) : VarParts(ids, Numbers()) {}
  explicit VarParts(const tracing::Named& named) : VarParts(named, Numbers()) {}

  static Var<mat<R, C, T>> identity(Loc loc = Loc::here()) requires(R == C) {
    return Var<mat<R, C, T>>(mat<R, C, T>::identity(), loc);
  }

  /// The element in row i, column j. A traced index out of range names the nearest element; in a variable, a traced
  /// index costs a select for each element.
  template <class I, class J>
  Var<T>& operator()(const I& i, const J& j, Loc loc = Loc::here()) & {
    return element(*this, i, j, loc);
  }
  template <class I, class J>
  const Var<T>& operator()(const I& i, const J& j, Loc loc = Loc::here()) const& {
    return element(*this, i, j, loc);
  }
  template <class I, class J>
  Var<T> operator()(const I& i, const J& j, Loc loc = Loc::here()) && {
    return element(*this, i, j, loc);
  }

  /// These give row i and column j, to read and to assign, as parts of the matrix.
  template <class I>
  Var<vec<C, T>>& row(const I& i, Loc loc = Loc::here()) & {
    return row_of(*this, i, loc);
  }
  template <class I>
  const Var<vec<C, T>>& row(const I& i, Loc loc = Loc::here()) const& {
    return row_of(*this, i, loc);
  }
  template <class I>
  Var<vec<C, T>> row(const I& i, Loc loc = Loc::here()) && {
    return row_of(*this, i, loc);
  }
  template <class J>
  Var<vec<R, T>>& col(const J& j, Loc loc = Loc::here()) & {
    return col_of(*this, j, loc);
  }
  template <class J>
  const Var<vec<R, T>>& col(const J& j, Loc loc = Loc::here()) const& {
    return col_of(*this, j, loc);
  }
  template <class J>
  Var<vec<R, T>> col(const J& j, Loc loc = Loc::here()) && {
    return col_of(*this, j, loc);
  }
  template <class I>
  void set_row(const I& i, In<vec<C, T>> v) {
    row(i, v.loc) = Var<vec<C, T>>(v.id, FromId{});
  }
  template <class J>
  void set_col(const J& j, In<vec<R, T>> v) {
    col(j, v.loc) = Var<vec<R, T>>(v.id, FromId{});
  }

  Var<T>& part(int i) { return m[i]; }
  const Var<T>& part(int i) const { return m[i]; }

 private:
  using Numbers = std::make_index_sequence<std::size_t(R* C)>;
  template <std::size_t... I>
  VarParts(const tracing::Id* ids, std::index_sequence<I...>) : m{Var<T>(ids[I], FromId{})...} {}
  template <std::size_t... I>
  VarParts(const tracing::Named& named, std::index_sequence<I...>) : m{Var<T>(named.part(I * sizeof(T), I))...} {}

  template <class I>
  static TracedIndex traced(const I& i, int n, Loc loc) {
    if constexpr (IntegerScalar<I>)
      return TracedIndex(HostIndex(i, loc).in(n), loc, FromId{});
    else
      return TracedIndex(i, loc);
  }
  /// The element of `a`, which is const only if the caller makes it so.
  template <class I, class J>
  static Var<T>& element(const VarParts& a, const I& i, const J& j, Loc loc) {
    Var<T>* m = const_cast<VarParts&>(a).m;
    if constexpr (IntegerScalar<I> && IntegerScalar<J>) {
      return m[HostIndex(i, loc).in(R)*C + HostIndex(j, loc).in(C)];
    } else {
      tracing::Slot* slots[R * C];
      for (int k = 0; k < R * C; ++k) slots[k] = &m[k].slot();
      const tracing::Id row = traced(i, R, loc).id, column = traced(j, C, loc).id;
      return variable_of<T>(tracing::name_of_part({slots, 1, row, R, column, C}, sizeof(T), loc));
    }
  }
  template <class I>
  static Var<vec<C, T>>& row_of(const VarParts& a, const I& i, Loc loc) {
    if constexpr (!IntegerScalar<I>) {
      const tracing::Named& named = a.m[0].slot().named();
      if (named.in_memory())
        return element_at<vec<C, T>>(
            tracing::part_at(named.address(), std::uint32_t(C * sizeof(T)), TracedIndex(i, loc).id, R, loc));
    }
    tracing::Slot* slots[C];
    for (int k = 0; k < C; ++k) slots[k] = &element(a, i, k, loc).slot();
    return variable_of<vec<C, T>>(tracing::name_of_all(slots, C));
  }
  template <class J>
  static Var<vec<R, T>>& col_of(const VarParts& a, const J& j, Loc loc) {
    tracing::Slot* slots[R];
    for (int k = 0; k < R; ++k) slots[k] = &element(a, k, j, loc).slot();
    return variable_of<vec<R, T>>(tracing::name_of_all(slots, R));
  }
};

}  // namespace detail

}  // namespace weft
