// Notes and forgets changes to a tape's arrays that the tape does not record.
#include "outside_changes.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::detail {

namespace {

/// Most parts of one storage that are told apart.
constexpr std::size_t kMostNoted = 256;

// Views for notes do not own the memory, because it keeps its watchers only as long as others keep it.
std::shared_ptr<Storage> unheld(const ArrayBase& a) { return {std::shared_ptr<Storage>(), a.storage().get()}; }
View unheld_view(const ArrayBase& a) { return View(a, unheld(a), a.address()); }
View bytes_of(const ArrayBase& a, std::uint64_t begin, std::uint64_t end) {
  return View(unheld(a), begin, std::int64_t(end - begin), 1);
}

std::string text(const Change& change) {
  if (!change.argument) return change.by;
  return fmt::format("kernel \"{}\" (through {})", change.by, change.argument);
}

}  // namespace

bool OutsideChanges::remove(List& list, const ArrayBase& elements) {
  const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
  bool all = true;
  List rest;
  std::erase_if(list, [&](const Noted& n) {
    if (!may_overlap(n.where, elements)) return false;
    if (same_elements(n.where, elements)) return true;
    const bool inside = begin <= n.where.address() && n.where.end() <= end;
    if (elements.is_contiguous() && (inside || n.where.is_contiguous())) {
      if (n.where.address() < begin) rest.push_back({bytes_of(elements, n.where.address(), begin), n.by});
      if (end < n.where.end()) rest.push_back({bytes_of(elements, end, n.where.end()), n.by});
      return true;
    }
    all = false;
    return false;
  });
  list.insert(list.end(), rest.begin(), rest.end());
  return all;
}

std::optional<std::string> OutsideChanges::find(const List& list, const ArrayBase& elements) {
  const auto found = std::ranges::find_if(list, [&](const Noted& n) { return may_overlap(n.where, elements); });
  return found == list.end() ? std::nullopt : std::optional(found->by);
}

void OutsideChanges::add(List& list, const ArrayBase& elements, const Change& change) {
  if (std::ranges::any_of(list, [&](const Noted& n) { return same_elements(n.where, elements); })) return;
  if (!list.empty() && list.back().where.is_contiguous() && elements.is_contiguous()) {
    View& last = list.back().where;
    const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
    if (begin <= last.end() && last.address() <= end) {
      last = bytes_of(elements, std::min(begin, last.address()), std::max(end, last.end()));
      return;
    }
  }
  if (list.size() < kMostNoted) {
    list.push_back({unheld_view(elements), text(change)});
    return;
  }
  const Storage& all = *elements.storage();
  const std::uint64_t first = all.allocation.address;
  state_.replaced.clear();
  state_.unknown.assign(1, {bytes_of(elements, first, first + all.bytes), text(change) + " and others"});
}

void OutsideChanges::note(const ArrayBase& elements, const Change& change, Recorder::Hears hears) {
  const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
  Places::Intervals recorded;
  state_.of_records.parts(elements.storage(), begin, end, true,
                          [&](std::uint64_t from, std::uint64_t to) { recorded.emplace(from, to); });
  // A repeated step begins with elements unknown here, and replacing too many does no harm. Changes that are not
  // allowed were refused the first time.
  if (hears == Recorder::Hears::again) {
    if (change.replaces_all) add(state_.replaced, elements, change);
    return;
  }
  if (recorded.empty()) return;
  if (change.replaces_all) {
    if (hears == Recorder::Hears::nothing) add(state_.replaced, elements, change);
    remove(state_.unknown, elements);
    if (elements.is_contiguous()) state_.of_records.remove(elements.storage(), begin, end);
  } else if (hears == Recorder::Hears::nothing || !before_walk_) {
    if (elements.is_contiguous())
      for (const auto& [from, to] : recorded) add(state_.unknown, bytes_of(elements, from, to), change);
    else
      add(state_.unknown, elements, change);
  }
}

void OutsideChanges::before_write(const ArrayBase& elements, StreamState&, const Change& change) {
  const Context& context = Context::here();
  if (elements.size() == 0 || context.part_of_change || context.going_back == tape_) return;
  const Recorder* const r = recorder();
  const Recorder::Hears hears = r ? r->hears_for(*tape_) : Recorder::Hears::nothing;
  if (hears == Recorder::Hears::all) return;
  const std::lock_guard lock(mutex_);
  note(elements, change, hears);
  set_flags();
}

bool OutsideChanges::follows(const ArrayBase& elements) {
  bool any = false;
  const std::lock_guard lock(mutex_);
  state_.of_records.parts(elements.storage(), elements.address(), elements.address() + elements.extent_bytes(), true,
                          [&](std::uint64_t, std::uint64_t) { any = true; });
  return any;
}

void OutsideChanges::set_flags() {
  const bool any = !state_.replaced.empty() || !state_.unknown.empty();
  *count_ += int(any) - int(any_.exchange(any));
  last_written_stays_ = false;
}

void OutsideChanges::record_write(const ArrayBase& elements) {
  const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
  if (last_written_stays_ && last_begin_ <= begin && end <= last_end_) return;
  const std::lock_guard lock(mutex_);
  state_.of_records.add(elements.storage(), begin, end);
  last_begin_ = begin;
  last_end_ = end;
  last_written_stays_ = true;
}

void OutsideChanges::record_replacement(const ArrayBase& elements) {
  if (!any_) return;
  const std::lock_guard lock(mutex_);
  remove(state_.unknown, elements);
  set_flags();
}

std::optional<std::string> OutsideChanges::record_changes(const ArrayBase& elements) {
  if (!any_) return {};
  const std::lock_guard lock(mutex_);
  std::optional<std::string> rest;
  for (List* list : {&state_.replaced, &state_.unknown})
    if (!remove(*list, elements)) rest = find(*list, elements);
  set_flags();
  return rest;
}

std::vector<View> OutsideChanges::take_replaced() {
  if (!any_) return {};
  const std::lock_guard lock(mutex_);
  std::vector<View> all;
  for (const Noted& n : std::exchange(state_.replaced, {})) all.push_back(n.where);
  set_flags();
  return all;
}

std::optional<std::string> OutsideChanges::unknown_change(const ArrayBase& elements) const {
  if (!any_) return {};
  const std::lock_guard lock(mutex_);
  return find(state_.unknown, elements);
}

void OutsideChanges::begin_walk() {
  const std::lock_guard lock(mutex_);
  before_walk_ = state_;
  state_.replaced.clear();
  state_.unknown.clear();
  set_flags();
}

void OutsideChanges::end_walk() {
  const std::lock_guard lock(mutex_);
  if (!before_walk_) return;
  State now = std::exchange(state_, *std::exchange(before_walk_, {}));
  for (auto list : {&State::replaced, &State::unknown})
    (state_.*list).insert((state_.*list).end(), (now.*list).begin(), (now.*list).end());
  set_flags();
}

}  // namespace weft::detail
