// Records operations, and walks back through the records.
#include "../tape.h"

#include <fmt/format.h>

#include <algorithm>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../work/capture.h"
#include "tape_core.h"

namespace weft {

Tape::Tape(const TapeOptions& options) : core_(std::make_shared<detail::TapeCore>(options)) {}
Tape::Tape(Tape&&) noexcept = default;
Tape& Tape::operator=(Tape&&) noexcept = default;
Tape::~Tape() = default;

std::shared_ptr<detail::TapeCore> Tape::core() const {
  if (!core_) invalid("a tape that was moved from is used");
  return core_;
}

void Tape::record(const std::function<void()>& f, Loc loc) {
  detail::called_from(loc, [&] {
    detail::refuse_empty(f, "Tape::record()");
    const TapeScope recording(*this, loc);
    detail::call_back(f);
  });
}

struct TapeScope::State {
  std::shared_ptr<detail::TapeCore> core;  // the host's code may reset, move or destroy the tape
  detail::HeardBy recording;

  explicit State(std::shared_ptr<detail::TapeCore> tape) : core(std::move(tape)), recording(core->active()) {}
};

TapeScope::TapeScope(const Tape& tape, Loc loc) {
  detail::called_from(loc, [&] {
    const auto core = tape.core();
    // Steps that are run again may record what they recorded the first time.
    const bool again = core->active() != core.get() || detail::recorder() == core.get();
    if (!again) core->refuse_on_the_way_back("record()");
    detail::Recorder* const now = detail::recorder();
    if (now && now->unrecorded() && now != core->active() && now != core->active()->unrecorded())
      invalid("record() of another tape inside a step of checkpointed(), which would not hear of what that records");
    state_ = std::make_unique<State>(core);
  });
}
TapeScope::~TapeScope() = default;

void Tape::unrecorded(const std::function<void()>& f, Loc loc) {
  detail::called_from(loc, [&] {
    detail::refuse_empty(f, "Tape::unrecorded()");
    detail::Recorder* const now = detail::recorder();
    const detail::HeardBy quiet(now ? now->unrecorded() : nullptr);
    detail::call_back(f);
  });
}

void Tape::check_loss(const ArrayBase& loss) {
  if (loss.is_null()) invalid("backward() of a null array");
  if (loss.size() != 1)
    invalid(
        fmt::format("backward() of an array of {} elements: the loss is one number; for more give the gradient of "
                    "each element: backward({{{{y, gradient_of_y}}}})",
                    loss.size()));
}

void Tape::backward(std::span<const Seed> seeds, Loc loc) {
  detail::called_from(loc, [&] {
    const auto core = this->core();
    core->refuse_on_the_way_back("backward()");
    core->backward(seeds);
  });
}
void Tape::zero(Loc loc) {
  detail::called_from(loc, [&] { core()->zero(); });
}
std::size_t Tape::size() const { return core()->size(); }

void Tape::reset(Loc loc) {
  detail::called_from(loc, [&] {
    if (detail::recorder() && detail::recorder() == core()->active()) invalid("reset() of a tape that records");
    core()->refuse_on_the_way_back("reset()");
    core_ = std::make_shared<detail::TapeCore>(core_->options);
  });
}

void Tape::take_gradient(ArrayBase& array) {
  if (array.is_null()) invalid("the gradient of a null array");
  if (!core()->named_carries(array))
    invalid(
        "the gradient of an array that carries none: it has no gradient storage (requires_grad()), and nothing on the "
        "tape computes it from an array that has");
  const detail::View gradient = core()->gradient(array);
  array.storage_ = gradient.storage();
  array.address_ = gradient.address();
}

void Tape::add_function(std::function<void()> backward, std::vector<const ArrayBase*> arrays) {
  detail::refuse_empty(backward, "Tape::record_func()");
  if (detail::recorder() != core()->active()) invalid("record_func() outside record() of this tape");
  for (const ArrayBase* a : arrays) {
    if (a->is_null()) invalid("record_func() with a null array");
    a->storage()->check_present();
  }
  detail::tell_recorder({.kind = detail::OperationKind::call, .others = arrays, .backward = &backward});
}

void Tape::checkpointed(int steps, int slots, std::function<void(int)> step, Loc loc) {
  detail::called_from(loc, [&] {
    detail::refuse_empty(step, "Tape::checkpointed()");
    if (detail::recorder() != core()->active()) invalid("checkpointed() outside record() of this tape");
    if (steps < 0) invalid("checkpointed() with {} steps", steps);
    if (slots < 1) invalid("checkpointed() with {} slots: one state at least is kept", slots);
    if (core()->active() == core().get()) return core()->add_steps(steps, slots, std::move(step));
    // Steps inside a step are not recorded: it is run again as a whole.
    for (int k = 0; k < steps; ++k) detail::call_back([&] { step(k); });
  });
}

namespace detail {

const TapeCore::Taped* TapeCore::find(const ArrayBase& a) const {
  const auto known = storages_.find(a.storage().get());
  return known == storages_.end() ? nullptr : &known->second;
}

TapeCore::Taped& TapeCore::taped(const ArrayBase& a) {
  if (const auto known = storages_.find(a.storage().get()); known != storages_.end()) return known->second;
  auto pin = a.storage()->pin(Storage::PinnedBy::tape);
  works_on(a.storage()->device);
  Taped& t = storages_[a.storage().get()];
  t.storage = a.storage();
  t.pin = std::move(pin);
  return t;
}

void TapeCore::made_again(const std::shared_ptr<Storage>& storage, int step) {
  made_again_.emplace(storage, step);
  if (made_again_.size() < made_again_pruned_) return;
  std::erase_if(made_again_, [](const auto& m) { return m.first.expired(); });
  made_again_pruned_ = std::max<std::size_t>(2 * made_again_.size(), 64);
}

bool TapeCore::carries(const ArrayBase& a) const {
  if (a.has_grad()) return true;
  const Taped* t = find(a);
  return t && t->carries;
}

bool TapeCore::named_carries(const ArrayBase& a) const {
  if (!carries(a)) return false;
  if (const auto made = made_again_.find(a.storage()); made != made_again_.end())
    invalid(
        fmt::format("an array that step {} of checkpointed() made when it was run again, or made another of: no "
                    "gradient comes back to it. Make arrays that outlive a step before checkpointed()",
                    made->second));
  return true;
}

void TapeCore::mark_written(const ArrayBase& a) {
  Taped& t = taped(a);
  if (!t.outside_changes) {
    t.outside_changes = std::make_shared<OutsideChanges>(*this, changed_outside_);
    t.storage->watch(t.outside_changes);
  }
  note_replaced(a);
  t.outside_changes->record_write(a);
  t.carries = t.written = true;
}

void TapeCore::mark_replaced(const ArrayBase& a) {
  mark_written(a);
  if (OutsideChanges* changes = outside_changes(a)) changes->record_replacement(a);
}

void TapeCore::note_function_of(const ArrayBase& a) {
  if (OutsideChanges* changes = outside_changes(a))
    if (const auto by = changes->record_changes(a)) invalid(about_unknown_change("an array of record_func()", *by));
  mark_written(a);
}

OutsideChanges* TapeCore::outside_changes(const ArrayBase& a) const {
  if (*changed_outside_ == 0) return nullptr;
  const Taped* t = find(a);
  return t ? t->outside_changes.get() : nullptr;
}

std::optional<std::string> TapeCore::unknown_change(const ArrayBase& a) const {
  const OutsideChanges* changes = outside_changes(a);
  return changes ? changes->unknown_change(a) : std::nullopt;
}

std::string TapeCore::about_unknown_change(const std::string& what, const std::string& by) {
  return fmt::format(
      "{} holds what recorded work computed, and {} changed it outside of record() since: gradients would "
      "pass what is not on the tape. Make that change inside record(), or replace all elements by fill(), "
      "assign() or copy_from(), through which none passes, or reset() the tape",
      what, by);
}

std::shared_ptr<Version> TapeCore::version(const ArrayBase& a) {
  Taped& t = taped(a);
  if (!t.versions) {
    t.versions = std::make_shared<LiveVersions>();
    t.storage->watch(t.versions);
  }
  return t.versions->take(a);
}

std::shared_ptr<ChangeCount> TapeCore::changes(const std::shared_ptr<Storage>& storage) {
  if (change_counts_.size() >= change_counts_pruned_) {
    std::erase_if(change_counts_, [](const auto& c) { return c.second.expired(); });
    change_counts_pruned_ = std::max<std::size_t>(2 * change_counts_.size(), 64);
  }
  std::weak_ptr<ChangeCount>& known = change_counts_[storage->serial];
  auto count = known.lock();
  if (!count) {
    known = count = std::make_shared<ChangeCount>();
    storage->watch(count);
  }
  return count;
}

View TapeCore::gradient(const ArrayBase& a) {
  if (const auto gradient = a.storage()->gradient()) {
    taped(a);  // lets zero() find it
    return gradient->view(a, *a.storage());
  }
  Taped& t = taped(a);
  const Storage& s = *t.storage;
  if (!t.own) {
    t.own = make_gradient(View::all_of(t.storage), {});
    // Captured work zeroes the gradient, so that each launch of the graph begins with zeros.
    if (Capture::current()) zero_own(t);
  }
  return t.own->view(a, s);
}

void TapeCore::zero_own(Taped& t) {
  t.captured = t.captured || Capture::current();
  if (t.own && (t.nonzero || t.captured)) t.own->zero();
}

void TapeCore::end_gradient(const ArrayBase& a) {
  View g = gradient(a);
  if (const auto kept = a.storage()->gradient()) {
    Taped& t = taped(a);
    const Storage& s = *t.storage;
    const View all = kept->all(s);
    // The elements go through a copy of the whole gradient that is zero elsewhere and adds nothing there.
    const View ended = View::like(View(kept->storage, kept->first, std::int64_t(s.bytes), 1));
    const auto place = [&](const View& of) {
      return View(of, ended.storage(), ended.address() + (of.address() - kept->first));
    };
    View(ended).zero();
    place(g).copy(g);
    if (t.before.is_null()) {
      t.before = View::like(all);
      t.before.zero();
    }
    accumulate(t.before, place(all), kept->leaves);
  }
  g.zero();
}

bool TapeCore::nonzero(const ArrayBase& a) const {
  const Taped* t = find(a);
  return t && t->nonzero;
}

void TapeCore::mark_nonzero(const ArrayBase& a) {
  Taped& t = taped(a);
  t.nonzero = true;
  t.captured = t.captured || Capture::current();
}

bool TapeCore::is_gradient(const ArrayBase& a) const {
  return std::ranges::any_of(storages_, [&](const auto& known) {
    const auto gradient = known.second.storage->gradient();
    return (gradient && gradient->storage == a.storage()) ||
           (known.second.own && known.second.own->storage == a.storage());
  });
}

void TapeCore::refuse_on_the_way_back(const char* what) const {
  if (walking_) invalid(std::string(what) + " of a tape that is on its way back, from a function of record_func()");
}

void TapeCore::check(const Seed& seed) const {
  const ArrayBase &y = seed.of_, &g = seed.gradient_;
  if (y.is_null() || g.is_null()) invalid("backward() from a null array");
  g.storage()->check_present();
  for (int k = 0; k < y.ndim(); ++k)
    if (y.shape(k) != g.shape(k))
      invalid("backward() with a seed of another shape: dimension {} has {} elements, that of the array {}", k,
              g.shape(k), y.shape(k));
  (void)named_carries(y);
  const Taped* t = find(y);
  if (!t || !t->written)
    invalid(
        fmt::format("backward() from an array on {} that nothing on the tape computes from arrays with "
                    "requires_grad(): call that for the inputs before record(), and launch inside it",
                    y.device().name()));
  if (!(y.device() == g.device()))
    invalid(
        fmt::format("backward() with a seed on device {} for an array on {}", g.device().name(), y.device().name()));
}

/// Marks a tape as walking during its lifetime: changes from outside continue afterwards from their state at its start.
class TapeCore::Walking {
 public:
  explicit Walking(TapeCore& tape) : tape_(tape) {
    for (auto& [storage, taped] : tape_.storages_)
      if (taped.outside_changes) taped.outside_changes->begin_walk();
    tape_.walking_ = true;
  }
  Walking(const Walking&) = delete;
  ~Walking() {
    tape_.walking_ = false;
    for (auto& [storage, taped] : tape_.storages_)
      if (taped.outside_changes) taped.outside_changes->end_walk();
  }

 private:
  TapeCore& tape_;
};

void TapeCore::backward(std::span<const Seed> seeds) {
  if (!broken_.empty())
    invalid("backward() of a tape on which a step of checkpointed() ended with an error: reset() it. The error was: " +
            broken_);
  if (recorder()) invalid("backward() while a tape records: it is called after record()");
  // Launches of kernels that were certain to fail have no gradients. Waiting for them here lets their failure be heard,
  // which nobody who reads the gradients would otherwise learn of.
  if (!Capture::current())
    for (const std::weak_ptr<Storage>& kept : std::exchange(kept_, {}))
      if (const auto storage = kept.lock()) storage->wait_for_writers();
  if (records_.empty())
    invalid(
        "backward() of a tape that recorded nothing: no launch inside record() computes anything from an array with "
        "requires_grad(), or there was none");
  for (const Seed& seed : seeds) check(seed);
  // A seed is copied if it is itself a gradient of the tape, which is about to be set to zero.
  std::vector<View> given;
  for (const Seed& seed : seeds) {
    given.emplace_back(seed.gradient_);
    if (!is_gradient(seed.gradient_)) continue;
    given.back() = View::like(seed.gradient_);
    given.back().copy(seed.gradient_);
  }
  const Walking walking(*this);

  // Gradients of arrays written on the tape begin at zero; what grad() held from earlier calls is kept in `before`.
  for (auto& [storage, t] : storages_) {
    if (const auto gradient = t.storage->gradient()) {
      if (t.written) {
        const View all = gradient->all(*t.storage);
        t.before = View::like(all);
        t.before.copy(all);
        gradient->zero();
      }
    } else {
      zero_own(t);
    }
    t.nonzero = false;
  }
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    accumulate(gradient(seeds[k].of_), given[k], seeds[k].leaves_);
    mark_nonzero(seeds[k].of_);
  }
  walk(records_);
  for (OnDevice& d : devices_) d.workspaces = {};
  for (auto& [storage, t] : storages_) {
    if (t.before.is_null()) continue;
    const auto gradient = t.storage->gradient();
    accumulate(gradient->all(*t.storage), t.before, gradient->leaves);
    t.before = View();
  }
}

void TapeCore::walk(const Records& records) {
  for (auto r = records.rbegin(); r != records.rend(); ++r) {
    (*r)->backward(*this);
    limit_in_flight();
  }
}

TapeCore::OnDevice& TapeCore::on(const std::shared_ptr<DeviceState>& device) {
  for (OnDevice& d : devices_)
    if (d.device == device) return d;
  return devices_.emplace_back(OnDevice{device, device->allocated, {}});
}

void TapeCore::works_on(const std::shared_ptr<DeviceState>& device) { (void)on(device); }

void TapeCore::limit_in_flight() {
  constexpr std::uint64_t kMost = 128 << 20;
  if (Capture::current()) return;  // the graph keeps the memory of its work
  for (OnDevice& d : devices_) {
    if (d.device->allocated - d.waited < kMost) continue;
    Device(d.device).synchronize();
    d.waited = d.device->allocated;
  }
}

View TapeCore::workspace(const std::shared_ptr<DeviceState>& device, Workspace use, std::uint64_t bytes) {
  const std::uint64_t words = std::max<std::uint64_t>((bytes + 3) / 4, 1);
  if (words > INT32_MAX)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("an adjoint needs {} bytes beside each other, more than a kernel can count", bytes));
  std::shared_ptr<Storage>& storage = on(device).workspaces[std::size_t(use)];
  if (!storage || storage->bytes < words * 4) storage = allocate(device, words * 4);
  return View(storage, storage->allocation.address, std::int64_t(words), 4);
}

void TapeCore::zero() {
  for (auto& [storage, t] : storages_) {
    if (const auto gradient = t.storage->gradient())
      gradient->zero();
    else
      zero_own(t);
    t.nonzero = false;
  }
}

}  // namespace detail
}  // namespace weft
