// Changes of a structure that may fail on the way, and its use by value. Internal.
#pragma once
#include <atomic>
#include <memory>
#include <span>

#include "../capture.h"
#include "../observe.h"
#include "../taken_structures.h"

namespace weft::detail {

/// Calls f(), which changes a structure; where that throws (memory may run out), `mark` says so to all who look at the
/// structure, until a change of all of it takes that back. In a capture the mark is that of what is to come, and one
/// that fails puts back what it was.
template <class F>
void change(const std::shared_ptr<std::atomic<bool>>& mark, const F& f) {
  if (Capture* c = Capture::current()) c->if_it_fails([mark, was = bool(*mark)] { *mark = was; });
  try {
    const taken_structures::Building building;
    f();
  } catch (...) {
    *mark = true;
    throw;
  }
}

/// Asks, outside of a capture and before a structure's members say otherwise, what may refuse the work that is to
/// change it. Errors: those of work that writes `written` and reads `read`: a recording that is not submitted works on
/// them.
void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read);

/// A structure's data are taken, in the form that its host's members say: for an argument of a launch, or by
/// themselves. A captured launch needs that form when it runs, and so does the way back of a tape that is captured;
/// what is not captured needs it now. Errors: as FormCell::check()
void use_form(const std::shared_ptr<FormCell>& cell, const Form& form);

}  // namespace weft::detail
