// Finds the memory of living handles, and keeps the memory of those that are gone.
#include "handles.h"

#include <algorithm>
#include <iterator>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "generation.h"
#include "state.h"

namespace weft::detail {

void Handles::add(const std::shared_ptr<Storage>& element, std::shared_ptr<const Generation> structure) {
  std::vector<Element> ended;  // destroyed after the lock is released, because watchers may end with their structures
  {
    std::lock_guard lock(mutex_);
    const auto gone = std::ranges::partition(elements_, [](const Element& e) { return !e.storage.expired(); });
    ended.assign(std::make_move_iterator(gone.begin()), std::make_move_iterator(gone.end()));
    elements_.erase(gone.begin(), gone.end());
    elements_.push_back({element, std::move(structure)});
    element->is_handle = true;
  }
  changed();
}

void Handles::gone(const std::shared_ptr<Storage>& element) {
  std::shared_ptr<const Generation> dropped;  // destroyed after the lock is released, because a watcher may end with it
  std::lock_guard lock(mutex_);
  for (Element& e : elements_)
    if (!e.storage.owner_before(element) && !element.owner_before(e.storage)) dropped = std::move(e.structure);
}

void Handles::changed() {
  std::shared_ptr<const References> dropped;  // destroyed after the lock is released, because memory may go with it
  std::lock_guard lock(mutex_);
  ++changes_;
  dropped.swap(beyond_);
}

void Handles::bury(const backend::Allocation& element, std::span<const Written> writes) {
  {
    std::lock_guard lock(mutex_);
    graves_.push_back(element);
    for (const Written& w : writes) {
      const auto known = std::ranges::find(buried_, w.stream, &Written::stream);
      if (known == buried_.end())
        buried_.push_back(w);
      else
        known->ticket = std::max(known->ticket, w.ticket);
    }
  }
  changed();
}

void Handles::end(backend::Device& device) {
  for (const backend::Allocation& grave : graves_) device.free(grave);
  graves_.clear();
}

void Handles::refuse_unbuilt() {
  References kept;  // destroyed after the lock is released, because the last handle of a storage must not go under it
  bool unbuilt = false;
  {
    std::lock_guard lock(mutex_);
    for (const Element& e : elements_) {
      if (!e.structure || e.structure->held() != Generation::kNone) continue;
      auto storage = e.storage.lock();
      unbuilt |= bool(storage);
      kept.push_back(std::move(storage));
    }
  }
  if (unbuilt)
    invalid(
        "a kernel goes by handles while a mesh or a hierarchy of boxes needs its rebuild(): the indices of the mesh "
        "have changed, or its last refit or rebuild failed");
}

References Handles::all(StreamState& stream) {
  refuse_unbuilt();
  References found;
  std::vector<Written> waits;
  std::shared_ptr<const References> beyond;
  std::uint64_t changes = 0;
  {
    std::lock_guard lock(mutex_);
    for (const Element& e : elements_)
      if (auto storage = e.storage.lock()) found.push_back(std::move(storage));
    std::ranges::copy_if(buried_, std::back_inserter(waits), [&](const Written& b) { return b.stream != &stream; });
    beyond = beyond_;
    changes = changes_;
  }
  // Streams share a queue, on which what comes now then comes after.
  for (const Written& b : waits) b.stream->start(b.ticket);
  if (!waits.empty()) {
    std::lock_guard lock(mutex_);
    std::erase_if(buried_, [&](const Written& b) { return std::ranges::find(waits, b) != waits.end(); });
  }
  if (!beyond) {
    References reached;
    for (const std::shared_ptr<Storage>& element : found) {
      References of_one;
      element->reach(of_one);
      reached.insert(reached.end(), of_one.begin(), of_one.end());
    }
    make_unique(reached);
    beyond = std::make_shared<const References>(std::move(reached));
    std::lock_guard lock(mutex_);
    if (changes == changes_) beyond_ = beyond;
  }
  found.insert(found.end(), beyond->begin(), beyond->end());
  return found;
}

}  // namespace weft::detail
