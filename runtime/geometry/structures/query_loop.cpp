// Refuses loops over queries that would find nothing, and reports limits that find nothing.
#include "query_loop.h"

#include <fmt/format.h>

#include "../../../frontend/language/checks.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/support/error.h"

namespace weft::detail {

void QueryOnce::begin() {
  ir::Builder& builder = tracing::Trace::current(loc).builder();
  if (begun_) ir::fail(builder.module(), loc, "a query is gone through twice: make one for each loop");
  if (builder.loop_since(made_in_))
    ir::fail(builder.module(), loc,
             "a query that was made outside a loop is gone through in it: it would find nothing from the second round "
             "on; make it inside");
  begun_ = true;
}

void check_limit(const char* query, const char* limit, const Float& x, Loc loc) {
  if (!tracing::Trace::current(loc).debug().checks) return;
  assert_(In<bool>(x >= 0.f, loc), fmt::format("{}: the {} is", query, limit), x);
}

}  // namespace weft::detail
