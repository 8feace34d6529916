// Binary search in sorted arrays, in kernels and on the host.
#pragma once
#include "../language/arr.h"

namespace weft {

namespace detail {

/// The first index in [lo, hi) whose element is not below the value, or with `above` is above it; hi if there is none.
tracing::Id search(const ArrLayout& arr, ir::Type type, tracing::Id lo, tracing::Id hi, tracing::Id value, bool above,
                   Loc loc);

template <class T>
int search(const T* sorted, int lo, int hi, T value, bool above) {
  while (lo < hi) {
    const int middle = lo + (hi - lo) / 2;
    if (above ? sorted[middle] <= value : sorted[middle] < value)
      lo = middle + 1;
    else
      hi = middle;
  }
  return lo;
}

template <class T>
inline constexpr bool is_number_sequence = requires(const T& c) {
  c.size();
  requires NumericScalar<std::remove_cvref_t<decltype(*c.data())>>;
};

/// The types of a search, from its arguments. The operands are checked here, so that a mistake is one short message.
template <class A>
struct Search {
  static constexpr bool ok = is_number_sequence<A>;
  static_assert(ok,
                "weft: what is searched is an Arr of numbers with one dimension, on the host a container of numbers");
  using index = int;
  template <class V>
  static int run(const A& sorted, int lo, int hi, const V& value, bool above, Loc) {
    using T = std::remove_cvref_t<decltype(*sorted.data())>;
    static_assert(std::is_convertible_v<const V&, T>, "weft: the value is not of the type of what is searched");
    return search<T>(sorted.data(), lo, hi, value, above);
  }
  static int size(const A& sorted, Loc) { return int(sorted.size()); }
};
template <class E>
struct Search<Var<Array<E, 1>>> {
  using T = std::remove_const_t<E>;
  static constexpr bool ok = NumericScalar<T>;
  static_assert(ok,
                "weft: what is searched is an Arr of numbers with one dimension, on the host a container of numbers");
  using index = Var<int>;
  template <class L, class H, class V>
  static Var<int> run(const Var<Array<E, 1>>& sorted, const L& lo, const H& hi, const V& value, bool above, Loc loc) {
    constexpr bool indices = std::is_convertible_v<const L&, In<int>> && std::is_convertible_v<const H&, In<int>>;
    constexpr bool match = std::is_convertible_v<const V&, In<T>>;
    static_assert(indices, "weft: lo and hi are Ints");
    static_assert(match, "weft: the value is not of the type of what is searched; convert it, as in Float(i)");
    if constexpr (indices && match) {
      tracing::CallPlace place(loc);
      return {search(sorted.layout(), scalar_type<T>(), In<int>(lo).id, In<int>(hi).id, In<T>(value).id, above, loc),
              FromId{}};
    } else {
      return {};
    }
  }
  static Var<int> size(const Var<Array<E, 1>>& sorted, Loc loc) { return sorted.shape(0, loc); }
};

/// Leaves iterators to the standard library, whose functions may be visible too.
template <class A>
concept NoIterator = !requires(const A& a) {
  *a;
};

}  // namespace detail

/// The first index in [lo, hi) whose element is not less than `value`; hi if there is none, lo if lo >= hi. Without lo
/// and hi it searches the whole array: the number of elements that are less than `value`.
/// \param sorted  ascending in [lo, hi); lo and hi lie in [0, size]. May be a row `a[i]` of a two-dimensional array, or
/// on the host any contiguous container of numbers.
/// Gradient: none. Cost: log2(hi - lo) + 1 reads.
template <detail::NoIterator A, class L, class H, class V>
typename detail::Search<A>::index lower_bound(const A& sorted, const L& lo, const H& hi, const V& value,
                                              Loc loc = Loc::here()) {
  if constexpr (detail::Search<A>::ok)
    return detail::Search<A>::run(sorted, lo, hi, value, false, loc);
  else
    return {};
}
template <detail::NoIterator A, class V>
typename detail::Search<A>::index lower_bound(const A& sorted, const V& value, Loc loc = Loc::here()) {
  using S = detail::Search<A>;
  if constexpr (S::ok)
    return S::run(sorted, 0, S::size(sorted, loc), value, false, loc);
  else
    return {};
}

/// The first index in [lo, hi) whose element is greater than `value`, with the rules of lower_bound.
template <detail::NoIterator A, class L, class H, class V>
typename detail::Search<A>::index upper_bound(const A& sorted, const L& lo, const H& hi, const V& value,
                                              Loc loc = Loc::here()) {
  if constexpr (detail::Search<A>::ok)
    return detail::Search<A>::run(sorted, lo, hi, value, true, loc);
  else
    return {};
}
template <detail::NoIterator A, class V>
typename detail::Search<A>::index upper_bound(const A& sorted, const V& value, Loc loc = Loc::here()) {
  using S = detail::Search<A>;
  if constexpr (S::ok)
    return S::run(sorted, 0, S::size(sorted, loc), value, true, loc);
  else
    return {};
}

}  // namespace weft
