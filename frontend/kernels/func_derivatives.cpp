// The inputs of gradient functions in addition to the function's own.
#include "func_derivatives.h"

namespace weft::detail {

void next_gradient(FuncInputs& from, std::span<const Leaf> leaves, tracing::Id* out) {
  for (std::size_t k = 0; k < leaves.size(); ++k)
    out[k] = ir::is_float(leaves[k].type) ? from.next() : tracing::zero(leaves[k].type);
}

ArrLayout gradient_of(const ArrLayout& arr, Loc loc) {
  tracing::Trace& t = tracing::Trace::owner_of(arr.trace, loc);
  const std::vector<tracing::Trace::Call>& calls = t.kernel().calls;
  if (calls.empty() || !calls.back().gradient)
    ir::fail(t.module(), loc,
             "gradient() of an array is known in the gradient function of a func() only, see grad(); not in what that "
             "calls");
  ArrLayout gradient = arr;
  if (arr.base != ir::kNone) gradient.base = t.builder().pure(ir::Op::gradient_base, ir::Type::u64, {arr.base}, loc);
  return gradient;
}

}  // namespace weft::detail
