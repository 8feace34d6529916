// Collects the device work of a thread during a capture.
#include "capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../core/view.h"
#include "observe.h"

namespace weft::detail {

namespace {
// Whether a kernel is one of the runtime's own, whose name and arguments tell a user nothing.
bool is_of_library(const Loc& loc) {
  constexpr std::string_view here = __FILE__;
  constexpr std::string_view room = here.substr(0, here.find_last_of("/\\"));
  constexpr std::string_view folder = room.substr(0, room.find_last_of("/\\") + 1);
  return loc && std::string_view(loc.file).starts_with(folder);
}
}  // namespace

void Capture::write_elements(const ElementWrite& elements, const std::function<void()>& write) {
  if (submitted_by_others_ && elements.from)
    unsupported(
        "elements that may hold arrays are copied while {}: copy them before or after that, or let a graph do it",
        doing_);
  Undo undo(*this);
  will_refer(elements);
  write();
  writes.push_back(elements);
  undo.done();
}

void Capture::will_refer(const ElementWrite& elements) {
  const std::shared_ptr<Storage>& to = elements.to;
  HeldMemory brought;
  ReferenceList before;
  References looked_at;
  const auto lock = device_.lock_elements();
  brought = elements.brought();
  to->refuse_circle(brought.others, looked_at);
  before = to->references();
  const ReferenceList after = to->add_references(brought);
  if_it_fails([to, before, after] { to->swap_references(after, before); });
  if (before) return;
  // Memory that its elements were copied to refers to these as well, from the second launch on.
  for (const ElementWrite& earlier : writes)
    if (after && earlier.from == to) will_refer(earlier);
}

void Capture::taped(const std::shared_ptr<Storage>& elements) {
  struct Moment {
    std::shared_ptr<Storage> storage;
    std::size_t before;  ///< the number of captured writes by then
  };
  std::vector<Moment> open{{elements, writes.size()}};
  std::set<std::pair<Storage*, std::size_t>> seen;
  while (!open.empty()) {
    const auto [storage, before] = std::move(open.back());
    open.pop_back();
    if (!seen.emplace(storage.get(), before).second) continue;
    bool by_capture = false;
    for (std::size_t k = before; k-- > 0 && !by_capture;) {
      const ElementWrite& w = writes[k];
      if (w.to != storage) continue;
      if (w.from) open.push_back({w.from, k});
      by_capture = w.whole && !w.conditional;
    }
    if (by_capture) continue;
    TapedElements known{storage, storage->references()};
    if (std::ranges::find(taped_elements, known) == taped_elements.end()) taped_elements.push_back(std::move(known));
  }
}

Capture::Capture(DeviceState& device, const char* doing, const StreamState* like)
    : serial(Storage::next_serial()), device_(device), doing_(doing), submitted_by_others_(like), before_(current()) {
  if (before_) unsupported("{} while {} already: end that before, or give it the work itself", doing, before_->doing());
  tell_recorder({.kind = OperationKind::replay, .what = doing});
  auto collector = std::make_unique<backend::CaptureStream>(*device.device);
  collector_ = collector.get();
  if (!like) like = &stream_of_thread(device);
  collector->operations().track_hazards = like->track_hazards;
  collector->operations().barrier_always = like->barrier_always;
  stream_ = std::make_unique<StreamState>(device, std::move(collector));
  stream_->capture = this;
  Context::here().capture = this;
  Context::here().capturing = doing;
}

Capture::~Capture() {
  Context::here().capture = before_;
  if (abandoned_ || std::uncaught_exceptions() > exceptions_) restore(0);
}

void Capture::if_it_fails(std::function<void()> restore) { restores_.push_back(std::move(restore)); }

void Capture::restore(std::size_t changes) {
  for (; restores_.size() > changes; restores_.pop_back()) restores_.back()();
}

Capture::Undo::Undo(Capture& capture)
    : capture_(capture),
      operations_(capture.position()),
      launches_(capture.launches.size()),
      changes_(capture.restores_.size()),
      writes_(capture.writes.size()),
      uses_(capture.uses.size()),
      taped_(capture.taped_elements.size()),
      by_handles_(capture.by_handles),
      changed_(capture.changed),
      used_(capture.used) {}

Capture::Undo::~Undo() {
  if (done_) return;
  capture_.restore(changes_);
  if (capture_.uses.size() > uses_) capture_.uses.resize(uses_);
  if (capture_.taped_elements.size() > taped_) capture_.taped_elements.resize(taped_);
  capture_.by_handles = by_handles_;
  capture_.changed.swap(changed_);
  capture_.used.swap(used_);
  while (capture_.writes.size() > writes_) capture_.writes.pop_back();
  std::vector<backend::Operation>& list = capture_.operations().list;
  if (list.size() > operations_) list.resize(operations_);
  for (std::size_t k = launches_; k < capture_.launches.size(); ++k) capture_.launches[k].dispatches = 0;
}

void Capture::refuse_semaphores(const char* what) {
  if (Capture* const capture = Capture::current())
    invalid("{} while {}: semaphores are no part of that; wait before it is launched or submitted, and signal after it",
            what, capture->doing());
}

StreamState& Capture::stream_for(DeviceState& device) {
  if (&device != &device_)
    invalid(
        "{} on device {}, and work is given to device {} meanwhile: it has one device's work; do the other's before or "
        "after it",
        doing_, device_.device->info().name, name_beside(device, device_));
  return *stream_;
}

void Capture::touch(std::shared_ptr<Storage> storage, bool writes) {
  Storage* const key = storage.get();
  Touched& use = used[key];
  use.storage = std::move(storage);
  use.writes = use.writes || writes;
}

Watcher::Watcher() : serial(Storage::next_serial()), captured(Capture::current() != nullptr) {}

void before_captured_write(const ArrayBase& elements, StreamState& stream, const Change& change) {
  stream.capture->before_write(elements, change);
}

void Capture::before_write(const ArrayBase& elements, const Change& change) {
  const auto refuse = [](const char* work, const char* of) {
    invalid(
        "work {} changes an array that a tape from outside of the {} still needs: let the tape end before, or record "
        "it inside",
        work, of);
  };
  for (const auto& watcher : elements.storage()->watchers()) {
    if (watcher->serial > serial) {
      const bool of_condition = watcher->serial > condition;
      if (!of_condition && watcher->needs(elements)) refuse("in a condition of a graph", "condition");
      Change known = change;
      known.replaces_all &= of_condition;  // else the change may not happen, if the condition does not hold
      watcher->before_write(elements, *stream_, known);
    } else if (watcher->needs(elements)) {
      refuse("that is captured", "capture");
    } else {
      watcher->before_captured_write(elements, change);
    }
  }
}

void Capture::builds(const StructureUse& use) {
  const bool first = use.structure->held() == Generation::kNone;
  if (first && condition != 0)
    invalid("{} is built for the first time in a condition of a graph, which may not hold: build it before",
            use.what());
  uses.push_back({use, SIZE_MAX, first});
}

void Capture::changes_indices(std::shared_ptr<Generation> mesh) {
  if (!is_changed(*mesh)) changed.push_back(std::move(mesh));
}

void Capture::rebuilds(const StructureUse& mesh) {
  uses.push_back({mesh, SIZE_MAX, false, std::erase(changed, mesh.structure) > 0});
}

bool Capture::is_changed(const Generation& mesh) const {
  return std::ranges::any_of(changed, [&](const auto& c) { return c.get() == &mesh; });
}

void Capture::refuse_changed(const char* what) const {
  if (changed.empty()) return;
  invalid(
      "{} while the indices of a mesh are changed in what is captured: call its rebuild() before, in the same "
      "condition of the graph",
      what);
}

void Capture::launched(CapturedLaunch launch, std::span<const HostArg> args, std::span<const StructureUse> given,
                       bool moves_elements) {
  launch.operation = position() - 1;
  const ir::Interface& call = *launch.call;
  const bool is_of_user = !is_of_library(call.loc), changes_held = !moves_elements;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Param& parameter = call.params[k];
    const ArrayBase* const array = args[k].array;
    if (!array || parameter.kind == ir::Param::Kind::absent || parameter.access == ir::Access::none) continue;
    Touched& use = used.at(array->storage().get());
    use.changes |= changes_held && any(parameter.access, ir::kChanges);
    if (use.kernel || !is_of_user) continue;
    use.kernel = launch.call;
    use.parameter = k;
  }
  for (const StructureUse& use : given) uses.push_back({use, launches.size(), false, false, launch.call});
  by_handles |= call.by_handles;
  launches.push_back(std::move(launch));
}

void Capture::launched_nothing() { launches.emplace_back(); }

void Capture::will_be_set() {
  CapturedLaunch& last = launches.back();
  if (last.dispatches != 1) return;
  backend::Operation& operation = operations().list[last.operation];
  operation.patched = true;
  last.changed.clear();
  last.needed.clear();
  for (const backend::MemoryRange& range : operation.ranges)
    if (any(range.access, ir::kChanges) && range.bytes != ~0ull) last.changed.push_back(range);
  const auto needs = [&](const std::shared_ptr<Storage>& storage) {
    const View all = View::all_of(storage);
    return std::ranges::any_of(storage->watchers(), [&](const auto& watcher) {
      return watcher->serial > serial && (watcher->needs(all) || watcher->follows(all));
    });
  };
  for (const auto& [key, use] : used)
    if (use.storage->watched() && needs(use.storage)) last.needed.push_back(use.storage);
}

backend::Operations& Capture::operations() { return collector_->operations(); }

std::unique_ptr<backend::Operations> Capture::take() { return collector_->take(); }

std::shared_ptr<ReportBuffer> Capture::take_reports() {
  std::shared_ptr<ReportBuffer> reports = stream_->take_reports();
  if (!reports) return nullptr;
  reports->number(operations().list);
  for (CapturedLaunch& l : launches) {
    if (l.dispatches != 1) continue;
    const backend::Operation& o = operations().list[l.operation];
    if (o.report_at) std::memcpy(l.report.data(), o.args.data() + o.report_at, l.report.size());
  }
  return reports;
}

void clear_handle(const ArrayBase& element) noexcept {
  const auto clear = [&] {
    try {
      View(element).zero();
    } catch (const std::exception&) {
    }
  };
  if (Capture::current()) clear();
  const OutsideCapture at_once;
  clear();
  element.storage()->device->handles.gone(element.storage());
}

StreamState& current_stream(DeviceState& device) {
  if (Capture* capture = Capture::current()) return capture->stream_for(device);
  return stream_of_thread(device);
}

}  // namespace weft::detail
