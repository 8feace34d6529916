// Query pools, and the conversion of ticks into nanoseconds.
#include "timestamps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/invalid.h"
#include "../device.h"

namespace weft::backend::vulkan {

VulkanTimestamps::VulkanTimestamps(VulkanDevice& device, std::uint32_t places)
    : DeviceObject(device), finds_grid_(places) {
  bits_ = device_.adapter().timestamp_bits;
  if (bits_ == 0) unsupported("{} ({}) has no clock to measure work by", device_.info().name, device_.info().adapter);
  VkQueryPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  create.queryType = VK_QUERY_TYPE_TIMESTAMP;
  create.queryCount = places;
  const VkResult made = device_.vk().vkCreateQueryPool(device_.handle(), &create, nullptr, &pool_);
  device_.check_made(made, pool_, "vkCreateQueryPool");
  try {
    results_ = device_.allocate(std::size_t{places} * sizeof(std::uint64_t), MemoryKind::readback);
    grids_ = device_.allocate(std::size_t{places} * kGridBytes, MemoryKind::readback);
  } catch (...) {
    abandon();
    throw;
  }
}

void VulkanTimestamps::abandon() {
  if (device_.detached()) return;
  if (!pool_) return;
  device_.retirement().drop({Retired::Kind::queries, (std::uint64_t)pool_});
  device_.free(results_);
  device_.free(grids_);
  pool_ = VK_NULL_HANDLE;
}

// Only after the launch has run is it known whether it had workgroups.
void VulkanTimestamps::write_second(Commands& commands, std::uint32_t first, std::uint64_t grid_at) {
  commands.moment(pool_, first + 1, results_.address + first * sizeof(std::uint64_t));
  finds_grid_[first] = grid_at != 0;
  if (grid_at) commands.copy(grids_.address + first * kGridBytes, grid_at, kGridBytes);
}

std::optional<std::array<std::int64_t, 2>> VulkanTimestamps::read(std::uint32_t first) {
  device_.check_alive();
  if (finds_grid_[first]) {
    std::array<std::uint32_t, 3> grid{};
    std::memcpy(grid.data(), grids_.host + first * kGridBytes, kGridBytes);
    if (std::ranges::count(grid, 0u)) return {};
  }
  std::array<std::uint64_t, 2> ticks{};
  std::memcpy(ticks.data(), results_.host + first * sizeof(std::uint64_t), sizeof ticks);
  const double period = device_.adapter().properties.limits.timestampPeriod;
  return std::array{device_.clock().follow(ticks[0], bits_, period), device_.clock().follow(ticks[1], bits_, period)};
}

std::int64_t QueueClock::follow(std::uint64_t ticks, std::uint32_t bits, double period) {
  std::lock_guard lock(mutex_);
  if (!any_) last_ = ticks;
  any_ = true;
  // The difference, as a signed number of `bits` bits.
  const std::uint32_t unused = 64 - bits;
  total_ += static_cast<std::int64_t>((ticks - last_) << unused) >> unused;
  last_ = ticks;
  return static_cast<std::int64_t>(std::llround(static_cast<double>(total_) * period));
}

}  // namespace weft::backend::vulkan
