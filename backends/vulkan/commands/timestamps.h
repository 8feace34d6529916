// Moments of a queue's clock.
#pragma once
#include <volk.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "../../backend.h"
#include "../device_object.h"
#include "commands.h"

namespace weft::backend::vulkan {

class VulkanDevice;

/// The clock of a queue. Drivers count ticks that wrap around after some bits; this clock continues beyond as long as
/// two values read in succession are less than half a round apart (34 s for ticks of 1 ns with 36 bits). Thread-safe.
class QueueClock {
 public:
  /// Nanoseconds since a moment that all pools share.
  std::int64_t follow(std::uint64_t ticks, std::uint32_t bits, double period);

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;  ///< ticks read last
  std::int64_t total_ = 0;  ///< ticks since the first that were read
  bool any_ = false;
};

/// A query pool, and memory to which the queue copies its results. Reading the pool itself waits, on Mesa's software
/// devices, until the queue is idle, which may need the reading thread. After they are dropped, both live on until the
/// work that uses them has run.
class VulkanTimestamps final : public Timestamps, private DeviceObject {
 public:
  /// Errors: Error(unsupported) when the queue has no clock.
  VulkanTimestamps(VulkanDevice& device, std::uint32_t places);
  ~VulkanTimestamps() override { abandon(); }
  VulkanTimestamps(const VulkanTimestamps&) = delete;
  VulkanTimestamps& operator=(const VulkanTimestamps&) = delete;

  /// The work that is measured must have run.
  std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) override;
  /// Records that slot `first` gets the moment at which all earlier commands have run; write_second() does so for the
  /// next slot.
  void write_first(Commands& commands, std::uint32_t first) const { commands.moment(pool_, first, 0); }
  /// \param grid_at  of the measured launch, see Grid
  void write_second(Commands& commands, std::uint32_t first, std::uint64_t grid_at);

 private:
  void abandon() override;

  VkQueryPool pool_ = VK_NULL_HANDLE;
  Allocation results_;                    ///< 8 bytes each
  Allocation grids_;                      ///< kGridBytes each: grids that launches read from memory
  std::vector<std::uint8_t> finds_grid_;  ///< by slot: whether the launch read one
  std::uint32_t bits_ = 64;
};

}  // namespace weft::backend::vulkan
