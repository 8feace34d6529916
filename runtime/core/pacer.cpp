// Decides how many threads and workgroups go into one dispatch.
#include "pacer.h"

#include <fmt/format.h>

#include <algorithm>

#include "../../frontend/support/error.h"
#include "state.h"

namespace weft::detail {

namespace {
constexpr std::uint32_t kGrowth = 8;
}  // namespace

std::int64_t steps_per_dispatch(const DeviceState& device, const ir::Interface& i, const Extent& threads,
                                std::int64_t count) {
  if (!i.wide || i.tid_rank == 0) return std::min(count, device.max_threads);
  if (threads[0] > INT32_MAX && i.narrow_tid)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch over {} threads along dimension 0, where the kernel asks for tid(), which counts "
                            "to 2^31 - 1: use tid64()",
                            threads[0]),
                i.name, i.narrow_tid);
  const std::int64_t rest = count / threads[0];
  if (rest > device.max_threads)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch over {} threads in the dimensions after the first; {} are possible", rest,
                            device.max_threads),
                i.name, i.loc);
  return std::min(threads[0], device.max_threads / rest);
}

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

bool Pacer::Parts::next_rows() {
  // Parts consist of rows, so rows are as many, and as short, as possible.
  const std::uint32_t width = (launch_.groups - 1) / launch_.max_groups + 1, rows = (launch_.groups - 1) / width + 1;
  if (first_row_ == rows) return false;
  const auto rows_within = [&] {
    return std::clamp(pace_->groups_within(launch_.budget, launch_.block) / width, 1u, rows - first_row_);
  };
  std::uint32_t n = rows_within();
  if (n < rows || pace_->estimate(1) == 0 || pacer_.since_asked_ >= kAskEvery) {
    pacer_.clock_.collect(stream_.own());
    pacer_.since_asked_ = 0;
    n = rows_within();
  }
  grid_ = {width, n, 1, n < rows, first_row_};
  first_row_ += n;
  const std::uint32_t groups = n * width;
  if (grid_.part ? pace_->wants(groups) : measured_)
    measurement_.emplace(pacer_.clock_, stream_.own(), [pace = pace_, groups](std::int64_t begin, std::int64_t end) {
      pace->measured(groups, double(end - begin) * 1e-9);
    });
  return true;
}

void Pacer::Parts::end_rows() {
  if (measurement_) measurement_->given(ticket_);
  measurement_.reset();
  pacer_.gathered_ += pace_->estimate(grid_.x * grid_.y);
  if (!grid_.part && pacer_.gathered_ < launch_.budget) return;
  stream_.submit();
  pacer_.gathered_ = 0;
}

}  // namespace weft::detail
