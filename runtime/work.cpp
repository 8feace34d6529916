// What comes before device work is issued.
#include "work.h"

namespace weft::detail {

void before_issue(StreamState& on, const Work& work) {
  for (std::size_t k = 0; k < work.accesses.size(); ++k) {
    const Access& a = work.accesses[k];
    try {
      a.storage->order_before(on, a.changes);
    } catch (const Error& e) {
      if (!work.words) throw;
      throw work.words->refusal(e, k);
    }
  }
  for (const Access& a : work.accesses)
    if (a.elements) before_write(*a.elements, on, {.by = work.name, .argument = a.through});
}

backend::Ticket copy_bytes(StreamState& on, Storage& to, std::uint64_t to_address, Storage& from,
                           std::uint64_t from_address, std::uint64_t bytes) {
  const Access accesses[] = {{&from, false}, {&to, true}};
  return submit(on, {.name = "a copy", .accesses = accesses},
                [&](backend::Stream& s) { return s.copy(to_address, from_address, bytes); });
}

}  // namespace weft::detail
