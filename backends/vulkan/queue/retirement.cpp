// Deferred freeing, by comparing tickets.
#include "retirement.h"

#include <algorithm>

namespace weft::backend::vulkan {

namespace {
// Without an allocation to trigger it, the device is asked for its progress once per so many drops.
constexpr std::size_t kPollEvery = 64;
}  // namespace

void Retirement::add(std::shared_ptr<Timeline> timeline) {
  std::lock_guard lock(mutex_);
  timelines_.push_back(std::move(timeline));
}

void Retirement::remove(const std::shared_ptr<Timeline>& timeline) {
  std::lock_guard lock(mutex_);
  timeline->reach(~Ticket{0});
  timeline->submitted.store(~Ticket{0});
  std::erase(timelines_, timeline);
  release_ready_locked();
}

void Retirement::drop(const Retired& thing) {
  std::lock_guard lock(mutex_);
  if (!groups_.empty() && ++since_poll_ >= kPollEvery) poll_locked();
  release_ready_locked();
  needs_.clear();
  for (const auto& timeline : timelines_) {
    const Ticket recorded = timeline->recorded.load(std::memory_order_acquire);
    if (recorded > timeline->completed.load(std::memory_order_acquire)) needs_.emplace_back(timeline, recorded);
  }
  if (needs_.empty()) {
    release_(thing);
    return;
  }
  if (groups_.empty() || groups_.back().needs != needs_) {
    if (spare_.empty()) spare_.emplace_back();
    groups_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    groups_.back().needs = needs_;
  }
  groups_.back().things.push_back(thing);
  needs_.clear();
}

void Retirement::poll_locked() {
  since_poll_ = 0;
  for (const auto& timeline : timelines_)
    if (timeline->completed.load() < timeline->submitted.load()) timeline->reach(poll_(timeline->semaphore));
}

bool Retirement::release_ready_locked() {
  bool released = false;
  while (!groups_.empty()) {
    Group& group = groups_.front();
    const bool ready = std::all_of(group.needs.begin(), group.needs.end(), [](const auto& need) {
      return need.first->completed.load(std::memory_order_acquire) >= need.second;
    });
    if (!ready) break;
    for (const Retired& thing : group.things) release_(thing);
    released = released || !group.things.empty();
    group.needs.clear();
    group.things.clear();
    if (spare_.size() < 64) spare_.push_back(std::move(group));
    groups_.pop_front();
  }
  return released;
}

bool Retirement::collect() {
  std::lock_guard lock(mutex_);
  if (groups_.empty()) return false;
  poll_locked();
  return release_ready_locked();
}

void Retirement::hurry() {
  std::lock_guard lock(mutex_);
  for (const Group& group : groups_)
    for (const auto& [timeline, ticket] : group.needs)
      if (timeline->submitted.load() < ticket) timeline->submit_soon.store(true, std::memory_order_relaxed);
}

std::optional<std::vector<Need>> Retirement::comes_free() {
  std::lock_guard lock(mutex_);
  if (groups_.empty()) return {};
  const auto& needs = groups_.front().needs;
  if (!std::ranges::all_of(needs, [](const Need& need) { return need.first->submitted.load() >= need.second; }))
    return {};
  return needs;
}

std::vector<Need> Retirement::submitted() {
  std::lock_guard lock(mutex_);
  std::vector<Need> all;
  for (const auto& timeline : timelines_) all.emplace_back(timeline, timeline->submitted.load());
  return all;
}

// The semaphore of a removed timeline cannot be read, but then all its work has run.
bool Retirement::reached_locked(Timeline& timeline, Ticket ticket) {
  if (timeline.completed.load(std::memory_order_acquire) >= ticket) return true;
  if (timeline.submitted.load() < ticket) return false;
  timeline.reach(poll_(timeline.semaphore));
  return timeline.completed.load() >= ticket;
}

bool Retirement::reached(const std::shared_ptr<Timeline>& timeline, Ticket ticket) {
  std::lock_guard lock(mutex_);
  return reached_locked(*timeline, ticket);
}

bool Retirement::idle() {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(timelines_, [&](const auto& timeline) {
    return reached_locked(*timeline, timeline->recorded.load(std::memory_order_acquire));
  });
}

void Retirement::release_all() {
  std::lock_guard lock(mutex_);
  for (const Group& group : groups_)
    for (const Retired& thing : group.things) release_(thing);
  groups_.clear();
}

}  // namespace weft::backend::vulkan
