// Orders captured work among all other work.
#include "captured_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/view.h"
#include "../work/observe.h"

namespace weft::detail {

CapturedMemory::CapturedMemory(Capture& capture, const char* what, const char* again)
    : element_writes_(std::move(capture.writes)),
      taped_(std::move(capture.taped_elements)),
      uses_(std::move(capture.uses)),
      serial_(capture.serial),
      by_handles_(capture.by_handles),
      device_(&capture.device()),
      what_(what),
      again_(again) {
  capture.refuse_changed("the capture ends");
  for (const Capture::TapedElements& t : taped_)
    if (std::ranges::any_of(element_writes_, [&](const ElementWrite& w) { return w.to == t.storage; }))
      unsupported(
          "elements that hold arrays are assigned or copied while {}, after a tape has recorded a launch that follows "
          "them: each launch of the graph would begin with other elements; assign them before",
          capture.doing());
  used_.reserve(capture.used.size());
  for (auto& [storage, use] : capture.used) used_.push_back(std::move(use));
}

template <class F>
void CapturedMemory::each(F f) const {
  for (const Capture::Touched& u : used_) f(u);
  for (const auto& [launch, given] : given_)
    for (const Capture::Touched& u : given.memory) f(u);
}

void CapturedMemory::check_present() const {
  const auto refuse = [&](const std::string& since, const std::string& again, const std::string& kernel, Loc loc) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} works on an array that was freed since {}: {} again", what_, since, again), kernel,
                loc);
  };
  for (const Capture::Touched& u : used_) {
    if (!u.storage->is_freed()) continue;
    if (!u.kernel) refuse("it was made", again_, {}, {});
    // Another array may have been set for the argument since.
    refuse(fmt::format("it was made, {}{}", u.kernel->params[u.parameter].name, given_.empty() ? "" : " as captured"),
           again_, u.kernel->name, u.kernel->loc);
  }
  for (const auto& [launch, given] : given_)
    for (const Capture::Touched& u : given.memory)
      if (u.storage->is_freed())
        refuse(fmt::format("it was set, {}", u.kernel->params[u.parameter].name), "set() the node", u.kernel->name,
               u.kernel->loc);
  for (const ElementWrite& w : element_writes_)
    if (std::ranges::any_of(w.list, [](const auto& s) { return s->is_freed(); })) refuse("it was made", again_, {}, {});
  check_structures();
}

// Many launches may be given one structure, which each run checks once. A launch that set() has given other arguments
// needs only the structures among these.
const std::vector<Capture::StructureNeed>& CapturedMemory::needed() const {
  if (needed_found_) return needed_;
  needed_.clear();
  for (const Capture::StructureNeed& use : uses_)
    if (!given_.contains(use.launch)) needed_.push_back(use);
  for (const auto& [launch, given] : given_) needed_.insert(needed_.end(), given.uses.begin(), given.uses.end());
  const auto data = [](const Capture::StructureNeed& use) { return std::pair(use.structure, use.number); };
  std::ranges::stable_sort(needed_, {}, data);
  needed_.erase(std::ranges::unique(needed_, {}, data).begin(), needed_.end());
  needed_found_ = true;
  return needed_;
}

bool CapturedMemory::uses(const Generation* structure) const {
  return std::ranges::any_of(needed(),
                             [&](const Capture::StructureNeed& use) { return use.structure.get() == structure; });
}

void CapturedMemory::check_structures() const {
  const auto is_built_here = [&](const Capture::StructureNeed& use) {
    return std::ranges::any_of(
        uses_, [&](const Capture::StructureNeed& u) { return u.first && u.structure == use.structure; });
  };
  for (const Capture::StructureNeed& use : needed()) {
    const std::uint64_t held = use.structure->held();
    if (held == use.number || (held == Generation::kNone && is_built_here(use))) continue;
    const std::string refusal =
        held == Generation::kNone
            ? fmt::format(
                  "{} works on {}, of which the device holds nothing that may be asked: indices of a mesh have "
                  "changed, its last refit or rebuild failed, or what builds it has not run. Call its "
                  "rebuild(), or launch that; if it is gone, {} again",
                  what_, use.what(), again_)
            : fmt::format(
                  "{} works on {}, and the device holds another one: it was built otherwise since, or in other "
                  "memory. {} again",
                  what_, use.what(), again_);
    throw Error(ErrorKind::invalid_argument, refusal, use.kernel ? use.kernel->name : "",
                use.kernel ? use.kernel->loc : Loc());
  }
}

void CapturedMemory::check_given(std::span<const StructureUse> given) const {
  for (const StructureUse& use : given)
    for (const Capture::StructureNeed& built : uses_) {
      if (built.launch != SIZE_MAX || built.structure != use.structure) continue;
      if (built.changed) invalid("arguments are set with {}, whose indices the graph changes", use.what());
      if (built.number != use.number)
        invalid("arguments are set with {}, which the graph builds as {}, of another size or in other memory",
                use.what(), built.what());
    }
}

void CapturedMemory::refuse_first_builds() const {
  for (const Capture::StructureNeed& use : uses_)
    if (use.first) unsupported("{} is built for the first time by {}: build it before", use.what(), what_);
}

// Calls f for tapes from outside the capture, and for structures on the memory that the capture did not know. The
// capture has told all other watchers.
template <class F>
void CapturedMemory::each_watcher(const Write& write, const F& f) const {
  if (!write.to.storage()->watched() || write.to.size() == 0) return;
  const auto is_told = [&](const Watcher& w) {
    return !w.stands_on(write.to) || (write.by_itself && w.serial < serial_);
  };
  for (const auto& w : write.to.storage()->watchers())
    if (!w->captured && !(w->structure() && is_told(*w))) f(w);
}

namespace {
// Whether to follow the elements of the memory. Those of handles are not followed, because Handles::all() finds what
// they lead to, which kernels only read.
bool leads_on(const Storage& storage) { return storage.may_hold_arrays && !storage.is_handle; }

// Whether the two tell the same watchers: elements lead to the same memory.
bool writes_same(const CapturedMemory::Found& a, const CapturedMemory::Found& b) {
  const auto memory = [](const CapturedMemory::Write& w) { return w.to.storage().get(); };
  return std::ranges::equal(a.writes, b.writes, {}, memory, memory);
}
}  // namespace

void CapturedMemory::check_elements(References& looked_at) const {
  References now;
  each([&](const Capture::Touched& u) {
    if (leads_on(*u.storage)) u.storage->reach(now);
  });
  for (const ElementWrite& w : element_writes_)
    for (const std::shared_ptr<Storage>& storage : w.list) storage->reach(now);
  const bool freed = std::ranges::any_of(now, &Storage::is_freed);
  looked_at.insert(looked_at.end(), now.begin(), now.end());
  if (freed)
    invalid(
        "elements of an array that {} works on may hold an array that was freed: assign all of them anew, outside of "
        "it",
        what_);
  for (const Capture::TapedElements& t : taped_)
    if (t.storage->references() != t.list)
      invalid(
          "elements of an array were assigned since {} was made, and a tape in it goes back through arrays that these "
          "elements held: {} again",
          what_, again_);
}

// Follows the writes in the order of the run, beginning with what memory refers to now.
void CapturedMemory::find_coming(Found& found) const {
  const auto of = [&](Storage* s) -> Found::Referring& {
    const auto [entry, first] = found.referring.try_emplace(s);
    Found::Referring& r = entry->second;
    if (first) r.before = s->references();
    if (first && r.before) r.after = *r.before;
    return r;
  };
  const auto run = [&](const ElementWrite& w) {
    const HeldMemory brought = w.brought(w.from ? of(w.from.get()).after : HeldMemory());
    Found::Referring& to = of(w.to.get());
    if (w.whole) to.after = {};
    to.whole |= w.whole;
    found.coming[w.to.get()].add(brought);
    return to.after.add(brought);
  };
  for (auto w = element_writes_.begin(); w != element_writes_.end();) {
    if (!w->conditional) {
      run(*w++);
      continue;
    }
    // Conditions that follow each other are repeated as long as any of them brings something new.
    const auto end = std::find_if(w, element_writes_.end(), [](const auto& other) { return !other.conditional; });
    for (bool added = true; added;) {
      added = false;
      for (auto k = w; k != end; ++k) added |= run(*k);
    }
    w = end;
  }
}

void CapturedMemory::find_writes(Found& found) const {
  const auto through_elements = [&](const Capture::Touched& u) {
    if (!u.changes || !leads_on(*u.storage)) return;
    References held;
    u.storage->reach(held, found.coming);
    for (const auto& s : held) found.writes.push_back({.to = View::all_of(s), .by_elements = true});
  };
  for (const Capture::Touched& u : used_) {
    // The watchers of that time were told in the capture which of the elements change.
    if (u.writes) found.writes.push_back({.to = View::all_of(u.storage), .by_itself = true});
    through_elements(u);
  }
  for (const auto& [launch, given] : given_) {
    for (const View& changed : given.changed) found.writes.push_back({.to = changed});
    for (const Capture::Touched& u : given.memory) through_elements(u);
  }
}

void CapturedMemory::find(Reached& reached) const {
  check_elements(reached.looked_at);
  find_coming(reached.found);
  for (const auto& [to, held] : reached.found.coming)
    to->refuse_circle(held.others, reached.looked_at, reached.found.coming);
  find_writes(reached.found);
}

void CapturedMemory::tell(StreamState& copies, const Found& found) const {
  for (const Write& write : found.writes)
    each_watcher(write, [&](const std::shared_ptr<Watcher>& w) {
      if (!w->structure()) return w->before_write(write.to, copies, {.by = what_});
      // It is not known whether the run uses the structure before or after the change.
      if (by_handles_ || uses(w->structure()))
        invalid(
            "{} changes indices of a mesh, which it did not there when it was made, and uses meshes: {} again{}; where "
            "elements lead to the indices, let elements of a separate array hold them",
            what_, again_, given_.empty() ? "" : ", or set() the node otherwise");
    });
}

bool CapturedMemory::follows_elements() const {
  bool any = by_handles_ || !element_writes_.empty();
  each([&](const Capture::Touched& u) { any = any || u.storage->may_hold_arrays; });
  return any;
}

// Watchers are told without the lock, because they copy elements under locks of their own. Other threads may assign
// arrays to elements meanwhile: what elements lead to is then found again, and told of, until it has stayed the same.
void CapturedMemory::order_before(StreamState& on, StreamState& copies, Reached& reached) const {
  check_present();
  find(reached);
  tell(copies, reached.found);
  while (follows_elements()) {
    reached.elements = device_->lock_elements();
    reached.earlier.push_back(std::exchange(reached.found, {}));  // may be the last to refer to memory
    find(reached);
    if (writes_same(reached.found, reached.earlier.back())) break;
    reached.elements.unlock();
    tell(copies, reached.found);
  }
  reach(on, reached);
  // Structures are told when nothing can refuse the run any more.
  tell_structures(on, reached);
  for (const auto& [to, held] : reached.found.coming) {
    Found::Referring& r = reached.found.referring.at(to);
    r.unprepared = to->references();
    r.before = to->add_references(held);
  }
  reached.prepared = true;
}

void CapturedMemory::reach(StreamState& on, Reached& reached) const {
  const ComingReferences& coming = reached.found.coming;
  each([&](const Capture::Touched& u) {
    if (!u.changes && leads_on(*u.storage)) u.storage->reach(reached.read_by_elements, coming);
  });
  for (const Write& write : reached.found.writes)
    if (write.by_elements) reached.by_elements.push_back(write.to.storage());
  make_unique(reached.by_elements);
  std::erase_if(reached.read_by_elements,
                [&](const auto& s) { return std::ranges::binary_search(reached.by_elements, s); });
  if (by_handles_) {
    reached.by_handles = device_->handles.all(on);
    for (const auto& [to, held] : coming)
      if (to->is_handle) to->reach(reached.by_handles, coming);
  }
  for (const auto& storage : reached.by_handles) {
    if (storage->is_freed())
      invalid("{} goes by handles, and an array was freed that a structure stands on which kernels find by its handle",
              what_);
  }
  find_accesses(reached);
  order(on, reached.accesses);
}

void CapturedMemory::find_accesses(Reached& reached) const {
  std::vector<Access>& all = reached.accesses;
  all.clear();
  all.reserve(used_.size() + reached.by_elements.size() + reached.read_by_elements.size() + reached.by_handles.size());
  each([&](const Capture::Touched& u) { all.push_back({u.storage.get(), u.writes}); });
  for (const auto& storage : reached.by_elements) all.push_back({storage.get(), true});
  for (const auto* list : {&reached.read_by_elements, &reached.by_handles})
    for (const auto& storage : *list) all.push_back({storage.get(), false});
}

void CapturedMemory::tell_structures(StreamState& on, const Reached& reached) const {
  for (const Write& write : reached.found.writes)
    each_watcher(write, [&](const std::shared_ptr<Watcher>& w) {
      if (w->structure()) w->before_write(write.to, on, {.by = what_});
    });
}

void CapturedMemory::touched(StreamState& on, backend::Ticket ticket, Reached& reached) const {
  if (!reached.prepared) find_accesses(reached);
  note(on, ticket, reached.accesses);
  for (const Capture::StructureNeed& use : uses_)
    if (use.first) use.structure->hold(use.number);
  // Structures are told once more, because other threads may have rebuilt them meanwhile.
  tell_structures(on, reached);
}

void CapturedMemory::will_not_run(const Reached& reached) const {
  if (!reached.prepared) return;
  const auto lock = device_->lock_elements();
  for (const auto& [to, held] : reached.found.coming) {
    const Found::Referring& r = reached.found.referring.at(to);
    to->swap_references(r.before, r.unprepared);
  }
}

void CapturedMemory::has_run(Reached& reached) const {
  const auto lock = std::move(reached.elements);  // released before `reached` lets go of memory
  if (element_writes_.empty()) return;
  const auto again = lock ? std::unique_lock<std::recursive_mutex>() : device_->lock_elements();
  if (!reached.prepared) find(reached);
  for (const auto& [to, held] : reached.found.coming) {
    const Found::Referring& r = reached.found.referring.at(to);
    // Writes of other threads since the preparation may run before or after, so the memory then refers to both.
    const bool swapped = reached.prepared && r.whole && to->swap_references(r.before, as_list(r.after));
    if (!swapped) to->add_references(held);
  }
}

std::vector<std::shared_ptr<const void>> CapturedMemory::pins() const {
  std::vector<std::shared_ptr<const void>> all;
  each([&](const Capture::Touched& u) { all.push_back(u.storage->pin(Storage::PinnedBy::recording)); });
  return all;
}

CapturedMemory::Given CapturedMemory::give(std::size_t launch, Given given) {
  Given before = std::exchange(given_[launch], std::move(given));
  needed_found_ = false;
  return before;
}

}  // namespace weft::detail
