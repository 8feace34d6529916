// Loops over queries that would find nothing are refused, radii that find nothing reported.
#include "query_once.h"

#include "../../frontend/edsl/checks.h"
#include "../../frontend/edsl/report.h"
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

void check_radius(const char* query, const Float& radius, Loc loc) {
  if (!Trace::current(loc).debug().checks) return;
  assert_(In<bool>(radius >= 0.f, loc), std::string(query) + ": the radius is", radius);
}

}  // namespace weft::detail
