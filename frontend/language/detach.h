// detach(): a value without its gradient.
#pragma once
#include "face.h"
#include "struct_var.h"

namespace weft {

namespace detail {
/// Replaces each real scalar by one through which no gradient passes.
void detach(tracing::Id* ids, int count, Loc loc);
}  // namespace detail

/// Makes the value of x a constant, through which reverse mode carries no gradient. `detach(x * x) * x` has the
/// derivative x^2.
///
/// Takes a value of any face and type: scalars, vectors, matrices, quaternions, structs, elements of arrays. Integers
/// and booleans never carry a gradient. A host value is returned unchanged.
/// Cost: none.
template <class A>
auto detach(const A& x, [[maybe_unused]] Loc loc = Loc::here()) {
  using T = HostOf<A>;
  if constexpr (!any_traced<A>) {
    return A(x);
  } else {
    constexpr bool is_value = [] {
      if constexpr (requires { detail::Layout<T>::count; }) return !detail::Layout<T>::holds_arrays;
      return false;
    }();
    static_assert(is_value, "weft::detach: takes values; detach the elements that are read from an array");
    if constexpr (is_value) {
      constexpr int count = detail::Layout<T>::count;
      tracing::Id ids[count];
      const In<T> in(x, loc);
      if constexpr (Scalar<T>)
        ids[0] = in.id;
      else
        for (int k = 0; k < count; ++k) ids[k] = in.id[k];
      detail::detach(ids, count, loc);
      return detail::from_ids<T>(ids);
    }
  }
}

}  // namespace weft
