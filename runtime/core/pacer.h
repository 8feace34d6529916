// Splits launches that would take too long into parts. Internal to the runtime.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "../../backends/backend.h"

namespace weft::detail {

class StreamClock;

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
  /// Makes a launch by as many calls of `record` as the budget requires; each part is submitted by itself. Short
  /// launches gather until together they reach the budget.
  /// \param whole   the grid of the whole launch
  /// \param record  records a part and returns its ticket
  template <class F>
  backend::Ticket launch(backend::Stream& stream, const std::shared_ptr<Pace>& pace, const Launch& launch,
                         const backend::Grid& whole, const F& record) {
    const bool measured = pace->wants(launch.groups);
    if (!measured && gather(*pace, launch)) return record(whole);
    return launch_with_care(stream, pace, launch, measured, std::cref(record));
  }

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
  /// Makes a launch that may need several parts, or a measurement.
  /// \param measured  whether to measure the launch if it stays whole
  backend::Ticket launch_with_care(backend::Stream& stream, const std::shared_ptr<Pace>& pace, const Launch& launch,
                                   bool measured, const std::function<backend::Ticket(const backend::Grid&)>& record);

  static constexpr std::uint32_t kAskEvery = 16;
  StreamClock& clock_;
  std::uint32_t since_asked_ = 0;  ///< launches since the device was asked what has run
  double gathered_ = 0;            ///< estimated seconds of the work recorded since the last submission
};

}  // namespace weft::detail
