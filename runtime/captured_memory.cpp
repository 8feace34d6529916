// Order of captured work among all other work.
#include "captured_memory.h"

#include <fmt/format.h>

#include <algorithm>

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
    : by_handles_(capture.by_handles), device_(&capture.device()), what_(what), again_(again) {
  used_.reserve(capture.used.size());
  for (auto& [storage, use] : capture.used) used_.push_back(std::move(use));
}

CapturedMemory::Reached CapturedMemory::order_before(StreamState& on, StreamState& copies) const {
  Reached reached;
  for (const Capture::Used& u : used_) {
    Storage& storage = *u.storage;
    if (u.writes) tell_watchers(u.storage, copies);
    storage.order_before(on, u.writes);
    if (storage.has_references() && !storage.is_handle) {  // what is behind handles is read alone, see below
      if (!u.refers)
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("elements of an array that {} works on have come to hold arrays since it was made: "
                                "{} again",
                                what_, again_));
      storage.reach(reached.by_elements);
    }
  }
  // What the elements hold now, and what is behind the handles that there are now.
  for (const auto& storage : reached.by_elements) {
    tell_watchers(storage, copies);
    storage->order_before(on, true);
  }
  if (by_handles_) reached.by_handles = device_->handles.all(on);
  for (const auto& storage : reached.by_handles) storage->order_before(on, false);
  return reached;
}

void CapturedMemory::touched(StreamState& on, backend::Ticket ticket, const Reached& reached) const {
  for (const Capture::Used& u : used_) u.storage->touched(on, ticket, u.writes);
  for (const auto& storage : reached.by_elements) storage->touched(on, ticket, true);
  for (const auto& storage : reached.by_handles) storage->touched(on, ticket, false);
}

void CapturedMemory::add(const std::shared_ptr<Storage>& storage, bool writes) {
  const auto known = std::ranges::find(used_, storage, &Capture::Used::storage);
  if (known == used_.end()) {
    used_.push_back({storage, writes, true});  // commands that are exchanged are ordered with all others
    return;
  }
  known->writes = known->writes || writes;
  known->refers = true;
}

}  // namespace weft::detail
