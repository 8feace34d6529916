// Changes of a structure that may fail on the way. Internal.
#pragma once
#include <atomic>
#include <memory>

#include "../capture.h"
#include "../observe.h"

namespace weft::detail {

/// Calls f(), which changes a structure; where that throws (memory may run out), `mark` says so to all who look at the
/// structure, until a change of all of it takes that back. In a capture the mark is that of what is to come, and one
/// that fails puts back what it was.
template <class F>
void change(const std::shared_ptr<std::atomic<bool>>& mark, const F& f) {
  if (Capture* c = Capture::current()) c->if_it_fails([mark, was = bool(*mark)] { *mark = was; });
  try {
    f();
  } catch (...) {
    *mark = true;
    throw;
  }
}

/// A structure is given to a launch by value, in the form that its host's members say: captured work needs that when it
/// runs, and so does a launch that is made later; any other needs it now.
/// Errors: as FormCell::check()
inline void use_form(const std::shared_ptr<FormCell>& cell, const Form& form) {
  if (GivenStructures::are_noted()) return GivenStructures::note({cell, form});
  const bool captured = Capture::current();
  if (!captured) cell->check(form);
  if (captured || recorder()) given_forms::note({cell, form});
}

}  // namespace weft::detail
