// Order of captured work among all other work.
#include "captured_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../frontend/support/error.h"
#include "observe.h"
#include "view.h"

namespace weft::detail {

namespace {
// Those that the capture has not told already: tapes from outside.
void tell_watchers(const std::shared_ptr<Storage>& storage, StreamState& copies) {
  if (!storage->watched() || !storage->bytes) return;
  const View all(storage, storage->allocation.address, std::int64_t(storage->bytes), 1);
  for (const auto& watcher : storage->watchers())
    if (!watcher->captured) watcher->before_write(all, copies);
}
}  // namespace

CapturedMemory::CapturedMemory(Capture& capture, const char* what, const char* again)
    : brings_(std::move(capture.brings)),
      by_handles_(capture.by_handles),
      device_(&capture.device()),
      what_(what),
      again_(again) {
  std::erase_if(brings_, [](const Bring& b) { return b.idle; });
  used_.reserve(capture.used.size());
  for (auto& [storage, use] : capture.used) used_.push_back(std::move(use));
}

template <class F>
void CapturedMemory::each(F f) const {
  for (const Capture::Used& u : used_) f(u);
  for (const auto& [launch, memory] : given_)
    for (const Capture::Used& u : memory) f(u);
}

bool CapturedMemory::is_given(const Storage& storage) const {
  return std::ranges::any_of(given_, [&](const auto& given) {
    return std::ranges::any_of(given.second, [&](const Capture::Used& u) { return u.storage.get() == &storage; });
  });
}

void CapturedMemory::check_present() const {
  const auto check = [&](const Storage& storage) {
    if (storage.is_freed())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} works on an array that was freed since it was made: {} again", what_, again_));
  };
  each([&](const Capture::Used& u) { check(*u.storage); });
  for (const Bring& b : brings_)
    for (const std::shared_ptr<Storage>& storage : b.list) check(*storage);
}

namespace {
// What is behind handles is read alone.
bool leads_on(const Storage& storage) { return storage.has_references() && !storage.is_handle; }
}  // namespace

void CapturedMemory::check_elements() const {
  References now;
  each([&](const Capture::Used& u) {
    if (!leads_on(*u.storage)) return;
    if (!u.refers && !is_given(*u.storage))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("elements of an array that {} works on have come to hold arrays since it was made: "
                              "{} again",
                              what_, again_));
    u.storage->reach(now);
  });
  for (const Bring& b : brings_)
    for (const std::shared_ptr<Storage>& storage : b.list) storage->reach(now);
  if (std::ranges::any_of(now, &Storage::is_freed))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("elements of an array that {} works on may hold an array that was freed: assign all of "
                            "them anew, outside of it",
                            what_));
}

CapturedMemory::Reached CapturedMemory::order_before(StreamState& on, StreamState& copies) const {
  check_present();
  check_elements();
  Reached reached;
  // Until nothing is added: one copy may bring what a later one has, in the next round of a loop.
  reached.brought.resize(brings_.size());
  for (bool added = !brings_.empty(); added;) {
    added = false;
    for (std::size_t k = 0; k < brings_.size(); ++k) {
      Bring::Begun begun = brings_[k].begin();
      added |= begun.added;
      // Nothing is let go of here: the end of memory may ask for what the caller has locked.
      References& before = reached.brought[k].list;
      begun.list.insert(begun.list.end(), before.begin(), before.end());
      reached.brought[k] = std::move(begun);
    }
  }
  each([&](const Capture::Used& u) {
    if (u.writes) tell_watchers(u.storage, copies);
    u.storage->order_before(on, u.writes);
    if (leads_on(*u.storage)) u.storage->reach(reached.by_elements);
  });
  for (const auto& storage : reached.by_elements) {
    tell_watchers(storage, copies);
    storage->order_before(on, true);
  }
  // Where it changes what a mesh is of, that is stale by now.
  if (by_handles_) reached.by_handles = device_->handles.all(on);
  for (const auto& storage : reached.by_handles) {
    if (storage->is_freed())
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} goes by handles, and an array was freed that a structure stands on which kernels "
                              "find by its handle",
                              what_));
    storage->order_before(on, false);
  }
  return reached;
}

void CapturedMemory::touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const {
  each([&](const Capture::Used& u) { u.storage->touched(on, ticket, u.writes); });
  for (const auto& storage : reached.by_elements) storage->touched(on, ticket, true);
  for (const auto& storage : reached.by_handles) storage->touched(on, ticket, false);
}

void CapturedMemory::has_brought(const Reached& reached) const {
  // Several may write one memory, and one what another has written: each goes on from where this run was with it.
  std::map<const Storage*, std::uint64_t> versions;
  for (std::size_t k = 0; k < reached.brought.size(); ++k) versions[brings_[k].to.get()] = reached.brought[k].version;
  for (std::size_t k = 0; k < brings_.size(); ++k) {
    // Of a run that was not prepared nothing is known.
    Bring::Begun begun = k < reached.brought.size() ? reached.brought[k] : Bring::Begun();
    std::uint64_t& version = versions[brings_[k].to.get()];
    begun.version = version;
    if (const auto from = versions.find(brings_[k].from.get()); from != versions.end())
      begun.from_version = from->second;
    const std::uint64_t after = brings_[k].end(begun);
    if (version != 0) version = after;
  }
}

std::vector<std::shared_ptr<const void>> CapturedMemory::pins() const {
  std::vector<std::shared_ptr<const void>> all;
  each([&](const Capture::Used& u) { all.push_back(u.storage->pin()); });
  return all;
}

std::vector<Capture::Used> CapturedMemory::give(std::size_t launch, std::vector<Capture::Used> memory) {
  return std::exchange(given_[launch], std::move(memory));
}

}  // namespace weft::detail
