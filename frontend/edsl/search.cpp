// Binary search over a traced array.
#include "search.h"

#include "control.h"

namespace weft::detail {

trace::Id search(const ArrLayout& arr, ir::Type type, trace::Id lo, trace::Id hi, trace::Id value, bool above,
                 Loc loc) {
  trace::CallPlace place(loc);
  Var<int> first(lo, FromId{}), last(hi, FromId{});
  While (first < last) {
    Var<int> middle = first + ((last - first) >> 1);
    const Index index(middle);
    trace::Id element;
    trace::load(address_of(arr, &index, 1), type, 1, &element, loc);
    Var<bool> below(trace::binary(above ? ir::Op::le : ir::Op::lt, element, value, loc), FromId{});
    first = select(below, middle + 1, first);
    last = select(below, last, middle);
  }
  return first.read(loc);
}

}  // namespace weft::detail
