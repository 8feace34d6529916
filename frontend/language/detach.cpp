// Where gradients end by the user's word.
#include "detach.h"

namespace weft::detail {

void detach(tracing::Id* ids, int count, Loc loc) {
  const ir::Module& m = tracing::Trace::current(loc).module();
  for (int k = 0; k < count; ++k)
    if (ir::is_float(m[ids[k]].type)) ids[k] = tracing::unary(ir::Op::detach, ids[k], loc);
}

}  // namespace weft::detail
