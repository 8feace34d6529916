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
    : uses_(std::move(capture.uses)),
      serial_(capture.serial),
      by_handles_(capture.by_handles),
      device_(&capture.device()),
      what_(what),
      again_(again) {
  if (capture.failed)
    invalid("{} in what is captured has failed, and only a part of it was captured: capture again", capture.failed);
  used_.reserve(capture.used.size());
  for (auto& [storage, use] : capture.used) used_.push_back(std::move(use));
  follow_elements(*device_, used_, true);
}

namespace {
// Whether to follow the elements of the memory. Those of handles are not followed, because Handles::all() finds what
// they lead to, which kernels only read.
bool leads_on(const Storage& storage) { return storage.may_hold_arrays && !storage.is_handle; }
}  // namespace

void follow_elements(DeviceState& device, std::vector<Capture::Touched>& memory, bool told) {
  std::map<Storage*, std::size_t> places;
  for (const Capture::Touched& m : memory) places.emplace(m.storage.get(), places.size());
  const auto lock = device.lock_elements();
  for (std::size_t k = 0, roots = memory.size(); k < roots; ++k) {
    if (!leads_on(*memory[k].storage)) continue;
    References found;
    memory[k].storage->reach(found);
    for (const std::shared_ptr<Storage>& s : found) {
      const auto [place, added] = places.emplace(s.get(), memory.size());
      if (added) memory.push_back({.storage = s});
      Capture::Touched& m = memory[place->second];
      if (memory[k].changes && !(told && m.writes)) m.writes = m.untold = true;
    }
  }
  for (Capture::Touched& m : memory)
    if (leads_on(*m.storage)) m.held = m.storage->references();
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
    for (const Capture::Touched& u : given.memory) {
      if (!u.storage->is_freed()) continue;
      if (!u.kernel) refuse("it was set", "set() the node", {}, {});  // elements lead there
      refuse(fmt::format("it was set, {}", u.kernel->params[u.parameter].name), "set() the node", u.kernel->name,
             u.kernel->loc);
    }
}

void CapturedMemory::check() const {
  check_present();
  check_elements();
  check_structures();
}

void CapturedMemory::check_elements() const {
  const auto check = [&](const Capture::Touched& u, const char* since, const char* again) {
    if (!leads_on(*u.storage)) return;
    const ReferenceList now = u.storage->references();
    if (now != u.held && (!now || !u.held || *now != *u.held))
      invalid(
          "elements of an array that {} works on hold other arrays than when it was {}, or work captured later gives "
          "them others: {} again",
          what_, since, again);
  };
  for (const Capture::Touched& u : used_) check(u, "made", again_);
  for (const auto& [launch, given] : given_)
    for (const Capture::Touched& u : given.memory) check(u, "set", "set() the node");
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
      if (built.number != use.number)
        invalid("arguments are set with {}, which the graph builds as {}, of another size or in other memory",
                use.what(), built.what());
    }
}

void CapturedMemory::refuse_first_builds() const {
  for (const Capture::StructureNeed& use : uses_)
    if (use.first) unsupported("{} is built for the first time by {}: build it before", use.what(), what_);
}

template <class F>
void CapturedMemory::each_watcher(const F& f) const {
  const auto look = [&](const View& to, bool told) {
    if (!to.storage()->watched() || to.size() == 0) return;
    const auto is_told = [&](const Watcher& w) { return !w.stands_on(to) || (told && w.serial < serial_); };
    for (const auto& w : to.storage()->watchers())
      if (!w->captured && !(w->structure() && is_told(*w))) f(*w, to);
  };
  for (const Capture::Touched& u : used_)
    if (u.writes) look(View::all_of(u.storage), !u.untold);
  for (const auto& [launch, given] : given_) {
    for (const View& changed : given.changed) look(changed, false);
    for (const Capture::Touched& u : given.memory)
      if (u.untold) look(View::all_of(u.storage), false);
  }
}

void CapturedMemory::tell(StreamState& copies) const {
  each_watcher([&](Watcher& w, const View& to) {
    if (!w.structure()) return w.before_write(to, copies, {.by = what_});
    // It is not known whether the run uses the structure before or after the change.
    if (by_handles_ || uses(w.structure()))
      invalid(
          "{} changes indices of a mesh, which it did not there when it was made, and uses meshes: {} again{}; where "
          "elements lead to the indices, let elements of a separate array hold them",
          what_, again_, given_.empty() ? "" : ", or set() the node otherwise");
  });
}

void CapturedMemory::tell_structures(StreamState& on) const {
  each_watcher([&](Watcher& w, const View& to) {
    if (w.structure()) w.before_write(to, on, {.by = what_});
  });
}

bool CapturedMemory::follows_elements() const {
  bool any = by_handles_;
  each([&](const Capture::Touched& u) { any = any || u.storage->may_hold_arrays; });
  return any;
}

// Watchers are told without the lock, because they copy elements under locks of their own. Other threads may assign
// arrays to elements meanwhile, so the elements are checked once more.
void CapturedMemory::order_before(StreamState& on, StreamState& copies, Reached& reached) const {
  check();
  tell(copies);
  if (follows_elements()) {
    reached.elements = device_->lock_elements();
    check_elements();
    if (by_handles_) find_handles(on, reached);
  }
  find_accesses(reached);
  order(on, reached.accesses);
  // Structures are told when nothing can refuse the run any more.
  tell_structures(on);
}

void CapturedMemory::find_handles(StreamState& on, Reached& reached) const {
  reached.by_handles = device_->handles.all(on);
  for (const auto& storage : reached.by_handles)
    if (storage->is_freed())
      invalid("{} goes by handles, and an array was freed that a structure stands on which kernels find by its handle",
              what_);
}

void CapturedMemory::find_accesses(Reached& reached) const {
  std::vector<Access>& all = reached.accesses;
  all.clear();
  all.reserve(used_.size() + reached.by_handles.size());
  each([&](const Capture::Touched& u) { all.push_back({u.storage.get(), u.writes}); });
  for (const auto& storage : reached.by_handles) all.push_back({storage.get(), false});
}

void CapturedMemory::touched(StreamState& on, backend::Ticket ticket, Reached& reached) const {
  if (reached.accesses.empty()) find_accesses(reached);
  note(on, ticket, reached.accesses);
  for (const Capture::StructureNeed& use : uses_)
    if (use.first) use.structure->hold(use.number);
  // Structures are told once more, because other threads may have rebuilt them meanwhile.
  tell_structures(on);
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
