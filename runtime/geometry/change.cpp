// Who is told that a structure is used by value.
#include "change.h"

#include "../given_structures.h"

namespace weft::detail {

void use_form(const std::shared_ptr<FormCell>& cell, const Form& form) {
  GivenStructures* const given = GivenStructures::current();
  if (given && given->is_for_graph()) return given->note({cell, form});
  Capture* const capture = Capture::current();
  if (!capture) cell->check(form);
  if (given && (capture || recorder())) return given->note({cell, form});
  if (capture)
    capture->forms.need({cell, form});
  else if (Recorder* const r = recorder())
    r->taking({cell, form});
}

}  // namespace weft::detail
