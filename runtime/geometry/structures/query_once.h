// That a query is gone through once. Internal to the library's queries.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/trace.h"

namespace weft::detail {

/// Made with its query; begin() stands at the head of a range-for over it.
class QueryOnce {
 public:
  explicit QueryOnce(Loc loc) : loc_(loc), made_in_(tracing::Trace::current(loc).builder().region()) {}

  /// Errors: Error(invalid_kernel) for a second range-for, and for one in a loop of the kernel around which the query
  /// was made: it would be at its end from the second round on, and find nothing without a word.
  void begin();
  bool begun() const { return begun_; }

 private:
  Loc loc_;
  ir::RegionId made_in_;
  bool begun_ = false;
};

/// Has debug mode report a limit of a query that is negative or NaN, with which nothing is found.
/// \param limit  what it is: "radius", "max_t"
void check_limit(const char* query, const char* limit, const Float& x, Loc loc);

}  // namespace weft::detail
