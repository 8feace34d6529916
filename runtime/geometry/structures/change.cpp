// Asks in advance whether a structure may be changed, and whether it may have an array.
#include "change.h"

#include <utility>
#include <vector>

#include "../../../frontend/support/invalid.h"
#include "../../work/work.h"

namespace weft::detail {

void require_array(const Device& device, const ArrayBase& array, const char* structure, const char* what) {
  if (array.is_null()) invalid("{} is given a null array of {}", structure, what);
  if (array.is_freed()) invalid("{} is given {} that were freed", structure, what);
  if (array.device() != device)
    invalid("{} on device {} is given {} on device {}", structure, device.name(), what,
            name_beside(*array.storage()->device, *device.state()));
}

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
