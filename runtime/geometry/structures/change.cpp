// What may refuse a change of a structure, and its use by value.
#include "change.h"

#include <utility>
#include <vector>

#include "../../detail/given_structures.h"
#include "../../work/work.h"

namespace weft::detail {

void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read) {
  StreamState& stream = current_stream(device);
  std::vector<Access> accesses;
  for (const auto& [list, writes] : {std::pair(written, true), std::pair(read, false)})
    for (const ArrayBase* a : list)
      if (a && !a->is_null()) accesses.push_back({a->storage().get(), writes});
  order(stream, accesses);
}

void use_form(const std::shared_ptr<FormCell>& cell, const Form& form) {
  if (Context::here().makes_structure) return;
  GivenStructures* const given = GivenStructures::current();
  const bool later = Capture::current() || (given && given->is_for_graph());
  if (!later && !cell->holds(form)) refuse_held(form);
  if (given && (later || recorder())) given->note({cell, form});
}

}  // namespace weft::detail
