// Who is told that a structure is used by value.
#include "change.h"

#include <utility>

#include "../given_structures.h"

namespace weft::detail {

void refuse_change(DeviceState& device, std::span<const ArrayBase* const> written,
                   std::span<const ArrayBase* const> read) {
  StreamState& stream = current_stream(device);
  for (const auto& [list, writes] : {std::pair(written, true), std::pair(read, false)})
    for (const ArrayBase* a : list)
      if (!a->is_null()) a->storage()->order_before(stream, writes);
}

void use_form(const std::shared_ptr<FormCell>& cell, const Form& form) {
  GivenStructures* const given = GivenStructures::current();
  const bool captured = Capture::current();
  if (!captured && !(given && given->is_for_graph())) cell->check(form);
  if (!given) return taken_structures::note({cell, form});
  if (captured || recorder() || given->is_for_graph()) given->note({cell, form});
}

}  // namespace weft::detail
