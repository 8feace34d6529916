// The steps of issuing device work.
#include "work.h"

#include "capture.h"

namespace weft::detail {

void order_each(StreamState& on, std::span<const Access> accesses, const DeviceWork::Words* words) {
  for (std::size_t k = 0; k < accesses.size(); ++k) {
    try {
      accesses[k].storage->order_before(on, accesses[k].changes);
    } catch (const Error& e) {
      if (!words) throw;
      throw words->refusal(e, k);
    }
  }
}

void note_captured(StreamState& on, std::span<const Access> accesses) {
  for (const Access& a : accesses) on.capture->touch(a.storage->shared_from_this(), a.changes);
}

backend::Ticket copy_bytes(StreamState& on, Storage& to, std::uint64_t to_address, Storage& from,
                           std::uint64_t from_address, std::uint64_t bytes) {
  const Access accesses[] = {{&from, false}, {&to, true}};
  return submit(on, {.name = "a copy", .accesses = accesses},
                [&](backend::Stream& s) { return s.copy(to_address, from_address, bytes); });
}

}  // namespace weft::detail
