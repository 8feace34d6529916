// Asks in advance whether a structure may be changed.
#include "change.h"

#include <utility>
#include <vector>

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

}  // namespace weft::detail
