// Decides how many workgroups go into one dispatch.
#include "pacer.h"

#include <algorithm>

#include "stream_clock.h"

namespace weft::detail {

namespace {
constexpr std::uint32_t kGrowth = 8;
}  // namespace

std::uint32_t Pace::groups_within(double seconds, std::uint32_t block) const {
  const std::uint32_t first = std::max(1u, kFirstThreads / block);
  const double per_group = per_group_.load(std::memory_order_relaxed);
  if (per_group == 0) return first;
  const double most = std::max<double>(first, double(kGrowth) * largest_.load(std::memory_order_relaxed));
  return std::uint32_t(std::clamp(seconds / per_group, 1., std::min(most, 4e9)));
}

void Pace::measured(std::uint32_t groups, double seconds) {
  const double now = std::max(seconds, 1e-9) / groups, before = per_group_.load(std::memory_order_relaxed);
  const std::uint32_t largest = largest_.load(std::memory_order_relaxed);
  // A few workgroups do not fill a device, so the time of each says little about many.
  if (groups < largest / kGrowth && seconds < before * largest) return;
  // A longer time replaces the estimate at once; a shorter one is averaged with it.
  per_group_.store(now > before || groups > largest ? now : (now + before) / 2, std::memory_order_relaxed);
  if (groups > largest) largest_.store(groups, std::memory_order_relaxed);
}

backend::Ticket Pacer::launch_with_care(backend::Stream& stream, const std::shared_ptr<Pace>& pace,
                                        const Launch& launch, bool measured,
                                        const std::function<backend::Ticket(const backend::Grid&)>& record) {
  // Parts consist of rows, so rows are as many, and as short, as possible.
  const std::uint32_t width = (launch.groups - 1) / launch.max_groups + 1, rows = (launch.groups - 1) / width + 1;
  backend::Ticket last = 0;
  for (std::uint32_t first = 0; first < rows;) {
    const auto rows_within = [&] {
      return std::clamp(pace->groups_within(launch.budget, launch.block) / width, 1u, rows - first);
    };
    std::uint32_t n = rows_within();
    if (n < rows || pace->estimate(1) == 0 || since_asked_ >= kAskEvery) {
      clock_.collect(stream.own());
      since_asked_ = 0;
      n = rows_within();
    }
    const backend::Grid grid{width, n, 1, n < rows, first};
    const std::uint32_t groups = n * width;
    if (grid.part ? pace->wants(groups) : measured)
      last = clock_.measure(
          stream.own(), [&] { return record(grid); },
          [pace, groups](std::int64_t begin, std::int64_t end) { pace->measured(groups, double(end - begin) * 1e-9); });
    else
      last = record(grid);
    gathered_ += pace->estimate(groups);
    if (grid.part || gathered_ >= launch.budget) {
      stream.submit();
      gathered_ = 0;
    }
    first += n;
  }
  return last;
}

}  // namespace weft::detail
