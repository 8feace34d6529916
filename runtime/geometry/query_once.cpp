// Loops over queries that would find nothing are refused.
#include "query_once.h"

#include "../../frontend/support/error.h"

namespace weft::detail {

void QueryOnce::begin() {
  ir::Builder& builder = Trace::current(loc_).builder();
  if (begun_) ir::fail(builder.module(), loc_, "a query is gone through twice: make one for each loop");
  if (builder.loop_since(made_in_))
    ir::fail(builder.module(), loc_,
             "a query that was made outside a loop is gone through in it: it would find nothing from the second round "
             "on; make it inside");
  begun_ = true;
}

}  // namespace weft::detail
