// The larger and the smaller of two numbers by one comparison, for the hot loops of queries.
#pragma once
#include "../../../frontend/library/vector.h"

namespace weft::lib {

/// a where it is the larger one, else b: b too where one of them is NaN. What max() says of zeros and NaNs takes
/// software devices five instructions more. Gradient: to the one that is picked.
template <class S>
S larger(const S& a, const S& b) {
  return select(FaceLike<S, bool>(a > b), a, b);
}
template <class S>
S smaller(const S& a, const S& b) {
  return select(FaceLike<S, bool>(a < b), a, b);
}

}  // namespace weft::lib
