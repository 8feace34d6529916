// Keeps elements before they change, and restores them.
#include "undo.h"

#include <algorithm>

#include "../work/capture.h"
#include "../work/element_write.h"
#include "../work/work.h"

namespace weft::detail {

void Places::add(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end) {
  Intervals& all = by_storage_[storage];
  auto next = all.lower_bound(begin);
  if (next != all.begin() && std::prev(next)->second >= begin) --next;
  while (next != all.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = all.erase(next);
  }
  all.emplace(begin, end);
}

void Places::remove(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end) {
  const auto known = by_storage_.find(storage);
  if (known == by_storage_.end()) return;
  Intervals& all = known->second;
  auto next = all.upper_bound(begin);
  if (next != all.begin() && std::prev(next)->second > begin) --next;
  while (next != all.end() && next->first < end) {
    const auto [first, last] = *next;
    next = all.erase(next);
    if (first < begin) all.emplace(first, begin);
    if (end < last) all.emplace(end, last);
  }
}

void Places::parts(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end, bool among,
                   const std::function<void(std::uint64_t, std::uint64_t)>& f) const {
  const auto known = by_storage_.find(storage);
  if (known == by_storage_.end()) {
    if (!among) f(begin, end);
    return;
  }
  const Intervals& all = known->second;
  auto next = all.upper_bound(begin);
  if (next != all.begin() && std::prev(next)->second > begin) --next;
  while (begin < end) {
    const bool last = next == all.end() || next->first >= end;
    const std::uint64_t gap_end = last ? end : next->first;
    if (!among && begin < gap_end) f(begin, gap_end);
    if (last) return;
    const std::uint64_t part_begin = std::max(begin, next->first), part_end = std::min(end, next->second);
    if (among && part_begin < part_end) f(part_begin, part_end);
    begin = next->second;
    ++next;
  }
}

void Places::prune() {
  std::erase_if(by_storage_, [](const auto& entry) { return entry.first.expired(); });
}

void StepUndoLog::keep(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end,
                       StreamState& stream) {
  if (storage->serial > since_) return;
  std::vector<Kept> made;
  places_.parts(storage, begin, end, false, [&](std::uint64_t from, std::uint64_t to) {
    const auto copy = allocate(storage->device, to - from);
    copy->is_copy = true;
    const ElementWrite elements{.to = copy, .from = storage, .list = {}, .whole = true};
    const std::uint64_t address = copy->allocation.address;
    elements.run([&] { copy_bytes(stream, *copy, address, *storage, from, to - from); });
    made.push_back({storage, from, to, copy, address});
  });
  for (Kept& kept : made) {
    places_.add(storage, kept.begin, kept.end);
    kept_.push_back(std::move(kept));
  }
}

void StepUndoLog::undo() {
  const Within taken_back(&Context::part_of_change, true);
  for (const Kept& k : kept_) {
    const auto storage = k.storage.lock();
    if (!storage) continue;
    const std::int64_t bytes = std::int64_t(k.end - k.begin);
    View to(storage, k.begin, bytes, 1);
    before_write(to, current_stream(*storage->device), {.by = "checkpointed()"});
    to.copy(View(k.copy, k.address, bytes, 1));
  }
  // Forgotten only here: after an error everything can still be restored.
  kept_.clear();
  places_ = {};
}

void StepUndoLog::append(StepUndoLog&& later) {
  for (const Kept& k : std::exchange(later.kept_, {})) {
    const auto storage = k.storage.lock();
    if (!storage || storage->serial > since_) continue;
    std::vector<Kept> parts;
    places_.parts(storage, k.begin, k.end, false, [&](std::uint64_t from, std::uint64_t to) {
      parts.push_back({k.storage, from, to, k.copy, k.address + (from - k.begin)});
    });
    for (Kept& part : parts) {
      places_.add(storage, part.begin, part.end);
      kept_.push_back(std::move(part));
    }
  }
  later.places_ = {};
}

void StepUndoLog::prune() {
  std::erase_if(kept_, [](const Kept& k) { return k.storage.expired(); });
  places_.prune();
}

}  // namespace weft::detail
