// Makes sure that a query is gone through only once. Internal to the library's queries.
#pragma once
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/trace.h"

namespace weft::detail {

/// Made with its query; begin() is called at the head of a range-for over it.
class QueryOnce {
 public:
  explicit QueryOnce(Loc loc) : loc_(loc), made_in_(tracing::Trace::current(loc).builder().region()) {}

  /// Throws Error(invalid_kernel) for a second range-for, and for one in a loop of the kernel around which the query
  /// was made: from the second round on the query would be at its end, and silently find nothing.
  void begin();
  bool begun() const { return begun_; }

 private:
  Loc loc_;
  ir::RegionId made_in_;
  bool begun_ = false;
};

/// Makes debug mode report a query's limit that is negative or NaN, with which nothing is found.
/// \param limit  the name of the limit: "radius", "max_t"
void check_limit(const char* query, const char* limit, const Float& x, Loc loc);

}  // namespace weft::detail
