// Loops of kernels over the results of a query.
#pragma once
#include <memory>
#include <optional>

#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/control.h"

namespace weft::detail {

/// Makes sure that a query is gone through only once. Made with its query.
class QueryOnce {
 public:
  explicit QueryOnce(Loc loc) : loc(loc), made_in_(tracing::Trace::current(loc).builder().region()) {}

  /// Called at the head of a range-for over the query. Throws Error(invalid_kernel) for a second one, and for one in a
  /// loop of the kernel around which the query was made: from the second round on the query would be at its end, and
  /// silently find nothing.
  void begin();

  const Loc loc;

 private:
  ir::RegionId made_in_;
  bool begun_ = false;
};

/// The state of a query that finds results one by one. Each kind of query implements next().
template <class R>
class QueryState : public QueryOnce {
 public:
  using QueryOnce::QueryOnce;
  virtual ~QueryState() = default;

  /// See QueryLoop::next().
  virtual Bool next(R& found, Loc loc) = 0;

  /// Opens the kernel's loop of a range-for; returns the result of a round.
  virtual R open() {
    loop_.emplace(Block::Kind::while_, loc);
    loop_->enter([&] {
      tracing::CallPlace place(loc, tracing::Rounding::as_written);
      return condition(next(found_, loc), loc);
    });
    return found_;
  }
  virtual void close() { loop_->leave(); }

 protected:
  std::optional<Block> loop_;  ///< that of a range-for, while it is open

 private:
  R found_;
};

/// The results of a query, see TreeQuery.
template <class R>
class QueryLoop {
 public:
  explicit QueryLoop(std::unique_ptr<QueryState<R>> state) : state_(std::move(state)) {}

  /// Finds the next result: sets `found` to it and returns true; at the end `found` stays as it is.
  Bool next(R& found, Loc loc = Loc::here()) {
    tracing::CallPlace place(loc, tracing::Rounding::as_written);
    return state_->next(found, loc);
  }

  struct End {};
  struct Iterator {
    QueryState<R>* state;
    bool fresh = true;
    R operator*() const { return state->open(); }
    void operator++() {
      state->close();
      fresh = false;
    }
    bool operator!=(End) const { return fresh; }
  };
  /// Errors: Error(invalid_kernel) for a second loop over the same query, and for one inside a loop of the kernel
  /// around which the query was made.
  Iterator begin() {
    state_->begin();
    return {state_.get()};
  }
  End end() { return {}; }

 protected:
  std::unique_ptr<QueryState<R>> state_;
};

/// Makes debug mode report a query's limit that is negative or NaN, with which nothing is found.
/// \param limit  the name of the limit: "radius", "max_t"
void check_limit(const char* query, const char* limit, const Float& x, Loc loc);

}  // namespace weft::detail
