// Binary search over a traced array.
#include "search.h"

#include "../language/control.h"

namespace weft::detail {

tracing::Id search(const ArrLayout& arr, ir::Type type, tracing::Id lo, tracing::Id hi, tracing::Id value, bool above,
                   Loc loc) {
  tracing::CallPlace place(loc);
  Var<int> first(lo, FromId{}), last(hi, FromId{});
  While (first < last) {
    Var<int> middle = first + ((last - first) >> 1);
    const Index index(middle);
    tracing::Id element;
    tracing::load(address_of(arr, &index, 1), type, 1, &element, loc);
    Var<bool> below(tracing::binary(above ? ir::Op::le : ir::Op::lt, element, value, loc), FromId{});
    first = select(below, middle + 1, first);
    last = select(below, last, middle);
  }
  return first.read(loc);
}

}  // namespace weft::detail
