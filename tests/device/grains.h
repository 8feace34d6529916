// The ways in which algorithms divide their work, for tests that must hold in each.
#pragma once
#include <weft/runtime/algorithms/options.h>

#include "../../runtime/core/state.h"

namespace weft::test {

/// Coarse and fine grain, which every device has, and the device's own way where that is neither of the two.
inline std::vector<Grain> grains_of(const Device& device) {
  std::vector<Grain> grains = {Grain::coarse, Grain::fine};
  if (device.state()->device->info().host_threads > 0) grains.insert(grains.begin(), Grain::automatic);
  return grains;
}

}  // namespace weft::test
