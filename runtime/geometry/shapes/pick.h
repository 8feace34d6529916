// The larger and the smaller of two numbers by one comparison, for the hot loops of queries.
#pragma once
#include "../../../frontend/library/vector.h"

namespace weft::lib {

/// a if it is larger, else b, also if one of them is NaN: max()'s rules for zeros and NaNs take software devices five
/// instructions more. Gradient: to the number that is picked.
template <class S>
S larger(const S& a, const S& b) {
  return select(FaceLike<S, bool>(a > b), a, b);
}
template <class S>
S smaller(const S& a, const S& b) {
  return select(FaceLike<S, bool>(a < b), a, b);
}

}  // namespace weft::lib
