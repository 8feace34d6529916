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

/// The clock of a queue. Drivers count in ticks that begin anew after some bits: moments are followed beyond that as
/// long as no two that are read one after the other lie half a round apart (34 s where ticks of 1 ns have 36 bits).
/// Thread-safe.
class QueueClock {
 public:
  /// Nanoseconds since a moment that is the same for all pools.
  std::int64_t follow(std::uint64_t ticks, std::uint32_t bits, double period);

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;  ///< ticks that were read last
  std::int64_t total_ = 0;  ///< ticks since the first that were read
  bool any_ = false;
};

/// A pool of queries, and memory that the queue copies their results to: to ask the pool itself waits, with Mesa's
/// software devices, until the queue is idle, which may need whoever asks. Once they are dropped, both live on until
/// the work that uses them has run.
class VulkanTimestamps final : public Timestamps, private DeviceObject {
 public:
  /// Errors: Error(unsupported) when the queue has no clock.
  VulkanTimestamps(VulkanDevice& device, std::uint32_t places);
  ~VulkanTimestamps() override { abandon(); }
  VulkanTimestamps(const VulkanTimestamps&) = delete;
  VulkanTimestamps& operator=(const VulkanTimestamps&) = delete;

  /// The work whose moments they are has run.
  std::optional<std::array<std::int64_t, 2>> read(std::uint32_t first) override;
  /// Record that place `first` gets the moment at which all commands before have run, and later that the one after it
  /// does.
  void write_first(Commands& commands, std::uint32_t first) const { commands.moment(pool_, first, 0); }
  /// \param grid_at  of the launch that is measured, see Grid
  void write_second(Commands& commands, std::uint32_t first, std::uint64_t grid_at);

 private:
  void abandon() override;

  VkQueryPool pool_ = VK_NULL_HANDLE;
  Allocation results_;                    ///< of 8 bytes each
  Allocation grids_;                      ///< of kGridBytes each: those that launches found in memory
  std::vector<std::uint8_t> finds_grid_;  ///< by place, whether it did
  std::uint32_t bits_ = 64;
};

}  // namespace weft::backend::vulkan
