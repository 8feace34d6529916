// Splits launches that have too many threads, or would take too long, into parts. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "../../backends/backend.h"
#include "../detail/sizes.h"
#include "stream_clock.h"

namespace weft::detail {

struct DeviceState;

/// How many steps of the first dimension (threads, when the kernel asks for no coordinates) one dispatch takes.
/// Errors: Error(unsupported) for a launch with more threads than the kernel can count.
std::int64_t steps_per_dispatch(const DeviceState& device, const ir::Interface& i, const Extent& threads,
                                std::int64_t count);

/// How long the workgroups of a program take on its device, estimated from measured launches. Thread-safe.
class Pace {
 public:
  /// How many workgroups of `block` threads to give the device at a time. The number grows at most eightfold from one
  /// measurement to the next, because threads need not take equally long.
  std::uint32_t groups_within(double seconds, std::uint32_t block) const;
  /// The estimated seconds of so many workgroups; 0 while nothing is known.
  double estimate(std::uint32_t groups) const { return per_group_.load(std::memory_order_relaxed) * groups; }
  /// Whether to measure a launch of so many workgroups: nothing is known about that size, or nothing was measured
  /// recently.
  bool wants(std::uint32_t groups) {
    // It does no harm if two threads count as one.
    const std::uint32_t since = since_.load(std::memory_order_relaxed) + 1;
    since_.store(since, std::memory_order_relaxed);
    return since % kMeasureEvery == 0 || groups / 4 > largest_.load(std::memory_order_relaxed) ||
           per_group_.load(std::memory_order_relaxed) == 0;
  }
  void measured(std::uint32_t groups, double seconds);

  /// Threads of a part while nothing is known: they fill a large GPU a few times over.
  static constexpr std::uint32_t kFirstThreads = 1 << 16;

 private:
  static constexpr std::uint32_t kMeasureEvery = 64;
  std::atomic<double> per_group_ = 0;  ///< seconds; 0: not known
  std::atomic<std::uint32_t> largest_ = 0, since_ = 0;
};

/// Keeps the submissions of one stream short. Guarded by the stream's lock.
class Pacer {
 public:
  explicit Pacer(StreamClock& clock) : clock_(clock) {}

  struct Launch {
    std::uint32_t groups;  ///< workgroups, of `block` threads
    std::uint32_t block;
    std::uint32_t max_groups;  ///< the most workgroups along one dimension of a dispatch
    double budget;             ///< seconds
  };
  /// The parts of a launch that its caller gives the stream: as many as the budget requires, each submitted by itself.
  /// Short launches stay whole, and gather until together they reach the budget.
  ///
  ///   Pacer::Parts parts(pacer, stream, pace, launch, whole);
  ///   while (parts.next()) parts.given(stream.launch(program, parts.grid(), ...));
  class Parts {
   public:
    /// \param whole  the grid of the whole launch
    Parts(Pacer& pacer, backend::Stream& stream, const std::shared_ptr<Pace>& pace, const Launch& launch,
          const backend::Grid& whole)
        : pacer_(pacer),
          stream_(stream),
          pace_(pace),
          launch_(launch),
          measured_(pace->wants(launch.groups)),
          careful_(measured_ || !pacer.gather(*pace, launch)),
          grid_(whole) {}
    /// Whether a part is left, which has grid() then.
    bool next() { return careful_ ? next_rows() : !std::exchange(begun_, true); }
    const backend::Grid& grid() const { return grid_; }
    /// The stream has the part, and gave it this ticket.
    void given(backend::Ticket ticket) {
      ticket_ = ticket;
      if (careful_) end_rows();
    }
    /// The ticket of the last part.
    backend::Ticket ticket() const { return ticket_; }

   private:
    bool next_rows();
    void end_rows();

    Pacer& pacer_;
    backend::Stream& stream_;
    const std::shared_ptr<Pace>& pace_;
    const Launch launch_;
    const bool measured_;  ///< whether to measure the launch if it stays whole
    const bool careful_;   ///< it may need several parts, or a measurement
    backend::Grid grid_;
    bool begun_ = false;           ///< of a launch without care: its one part was asked for
    std::uint32_t first_row_ = 0;  ///< of the next part
    backend::Ticket ticket_ = 0;
    std::optional<StreamClock::Measurement> measurement_;  ///< of the part that is given now
  };

 private:
  /// Adds a launch to those that gather, and returns whether nothing else has to be done. For most launches that is so:
  /// the estimate is short, and the device is asked only now and then what has run, which costs as much as a small
  /// launch.
  bool gather(const Pace& pace, const Launch& launch) {
    if (++since_asked_ >= kAskEvery) return false;
    const double gathered = gathered_ + pace.estimate(launch.groups);
    if (gathered >= launch.budget) return false;
    gathered_ = gathered;
    return true;
  }
  static constexpr std::uint32_t kAskEvery = 16;
  StreamClock& clock_;
  std::uint32_t since_asked_ = 0;  ///< launches since the device was asked what has run
  double gathered_ = 0;            ///< estimated seconds of the work recorded since the last submission
};

}  // namespace weft::detail
