// Runs many steps on a tape that keeps only some states: the others are recomputed on the way back.
//
// The states are marks with undo logs: what changes between two marks is kept once, so that arrays which no step
// changes cost nothing. On the way back the arrays themselves are set to earlier states, steps run again in them, and
// at the end they get back what they held.
#include <algorithm>
#include <cstdint>
#include <set>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../launch.h"
#include "../launch/kernel_programs.h"
#include "../work/capture.h"
#include "tape_core.h"
#include "undo.h"

namespace weft::detail {

namespace {

// The number of steps that `slots` states can reverse if none is run more than `repeats` times, capped at enough.
std::int64_t reach(std::int64_t slots, std::int64_t repeats) {
  std::int64_t n = 1;
  for (std::int64_t k = 1; k <= std::min(slots, repeats); ++k) {
    n = n * (std::max(slots, repeats) + k) / k;
    if (n > INT32_MAX) return INT32_MAX;
  }
  return n;
}

// The number of steps, out of `steps` (at least 2) that begin at a state, after which the next state is kept, if there
// is room for `slots` including that one (Griewank and Walther, "Revolve", 2000).
int next_mark(int steps, int slots) {
  std::int64_t repeats = 1;
  while (reach(slots, repeats) < steps) ++repeats;
  const std::int64_t least = steps - reach(slots - 1, repeats), most = reach(slots, repeats - 1);
  return int(
      std::clamp<std::int64_t>(std::max<std::int64_t>(least, std::min<std::int64_t>(most, steps - 1)), 1, steps - 1));
}

/// Hears of all changes to memory that the steps touch.
class StepWatcher : public Watcher {
 public:
  void before_write(const ArrayBase& elements, StreamState& stream, const Change&) override {
    if (elements.size() == 0) return;
    std::lock_guard lock(mutex);
    const std::uint64_t begin = elements.address(), end = begin + elements.extent_bytes();
    // Bytes that no step touches need not be kept.
    touched.parts(elements.storage(), begin, end, true, [&](std::uint64_t from, std::uint64_t to) {
      for (StepUndoLog* log : logs)
        if (log) log->keep(elements.storage(), from, to, stream);
    });
  }

  bool needs(const ArrayBase&) override { return true; }

  std::mutex mutex;
  Places touched;
  std::array<StepUndoLog*, 2> logs{};  ///< logs that keep the changes
};

}  // namespace

class StepsRecord : public TapeRecord {
 public:
  StepsRecord(int steps, int slots, std::function<void(int)> step)
      : steps_(steps), slots_(slots), step_(std::move(step)), watcher_(std::make_shared<StepWatcher>()) {}
  /// Detaches the logs, because another thread that changes an array may still hold the watcher.
  ~StepsRecord() override { keep_in(nullptr, nullptr); }

  /// Runs all steps for the first time.
  void run(TapeCore& tape);
  void backward(TapeCore& tape) override;

  /// Notes that the steps are about to read or write these elements.
  void touch(const ArrayBase& elements) {
    if (elements.is_null() || elements.size() == 0) return;
    std::lock_guard lock(watcher_->mutex);
    if (!watcher_->touched.knows(elements.storage())) {
      elements.storage()->watch(watcher_);
      found_new_ = true;
    }
    watcher_->touched.add(elements.storage(), elements.address(), elements.address() + elements.extent_bytes());
  }
  /// Notes an array from which gradients come back to the steps.
  void add_output(const ArrayBase& a) { outputs_.insert(a.storage()); }
  bool has_outputs() const { return !outputs_.empty(); }

 private:
  /// The state before a step. The log has what changed from there to the next mark, or to the present after the last
  /// one.
  struct Mark {
    int step = 0;
    StepUndoLog log;
  };
  void begin_mark(int step);
  void end_mark();
  void to_last_mark();
  void advance(TapeCore& tape, int from, int to);
  void reverse(TapeCore& tape, int step);
  void keep_in(StepUndoLog* final_values, StepUndoLog* log) {
    std::lock_guard lock(watcher_->mutex);
    watcher_->logs = {final_values, log};
  }
  void prune(TapeCore& tape);

  const int steps_, slots_;
  const std::function<void(int)> step_;
  const std::shared_ptr<StepWatcher> watcher_;
  StepTraces traces_;
  std::vector<std::unique_ptr<Mark>> marks_;
  StepUndoLog* final_values_ = nullptr;
  bool found_new_ = false;
  std::set<std::weak_ptr<Storage>, std::owner_less<>> outputs_;
};

namespace {

/// Hears of the operations of a step that runs without being recorded.
class StepRecorder : public Recorder {
 public:
  /// \param unrecorded  how the tape hears of changes of which nothing is recorded; null: everything is
  StepRecorder(TapeCore& tape, StepsRecord& steps, std::optional<Hears> unrecorded = {})
      : tape_(tape), steps_(steps), quiet_(unrecorded.has_value()), hears_(unrecorded.value_or(Hears::all)) {
    if (!quiet_) silent_ = std::make_unique<StepRecorder>(tape, steps, Hears::first_time);
  }

  void hear(const HeardOperation& o) override {
    tape_.trace(o);
    switch (o.kind) {
      case OperationKind::launch: return launching(*o.launch);
      case OperationKind::read:
        // Elements that the host reads may decide what the step does.
        if (!o.from->storage()->holds_gradients) steps_.touch(*o.from);
        return;
      // Graphs are refused, because no recorder would hear of their work when the step runs again from earlier states.
      case OperationKind::replay: return tape_.hear(o);
      case OperationKind::derive: break;  // its launches touch the arrays
      default:
        for (const ArrayBase* a : {o.to, o.from})
          if (a) touch(*a);
        for (const ArrayBase* a : o.others) touch(*a);
    }
    if (!quiet_) return recorded(o);
    // Gradients end in a step that is not recorded itself.
    if (o.to && tape_.carries(*o.to)) steps_.add_output(*o.to);
  }
  void launched() override {
    if (Capture* const capture = Capture::current()) capture->taped();
    for (const View& a : written_) write(a);
    written_.clear();
  }
  Recorder* unrecorded() override { return quiet_ ? this : silent_.get(); }
  Hears hears_for(const TapeCore& tape) const override {
    if (&tape == &tape_) return hears_;
    return tape_.walking() ? Hears::all : Hears::nothing;
  }

 private:
  void launching(const CheckedLaunch& launch) {
    written_.clear();
    References held;
    for (std::size_t k = 0; k < launch.args.size(); ++k) {
      const ArrayBase* a = launch.args[k].array;
      if (!a || a->is_null() || launch.program.call->params[k].access == ir::Access::none) continue;
      touch(*a);
      tape_.works_on(a->storage()->device);
      if (a->storage()->may_hold_arrays) a->storage()->reach(held);
    }
    if (launch.program.call->by_handles)
      for (const auto& s : launch.stream.device->handles.all(launch.stream)) held.push_back(s);
    for (const auto& s : held) touch(View::all_of(s));
    if (quiet_) return;
    const TapeCore::Passage passage = tape_.passage(launch);
    for (std::size_t k = 0; k < launch.args.size(); ++k) {
      if (passage.with_gradient >> k & 1) tape_.note_replaced(*launch.args[k].array);
      if (passage.outputs >> k & 1) written_.emplace_back(*launch.args[k].array);
    }
  }
  // Notes an operation other than a launch whose gradients pass through the step.
  void recorded(const HeardOperation& o) {
    switch (o.kind) {
      case OperationKind::copy:
        if (!tape_.passage(*o.to, *o.from, o.leaves).any) return;
        tape_.note_replaced(*o.from);
        return replace(*o.to);
      case OperationKind::overwrite:
        if (tape_.carries(*o.to)) replace(*o.to);
        return;
      case OperationKind::expose: return tape_.check_exposed(o);
      case OperationKind::untaped: return tape_.check_untaped(o);
      case OperationKind::derive: {
        const bool flows = std::ranges::any_of(o.others, [&](const ArrayBase* a) { return tape_.carries(*a); });
        if (!flows && !tape_.carries(*o.to)) return;
        for (const ArrayBase* a : o.others) tape_.check_derived(*a), tape_.note_replaced(*a);
        return replace(*o.to);
      }
      case OperationKind::call:
        for (const ArrayBase* a : o.others) tape_.note_function_of(*a), steps_.add_output(*a);
        return;
      default: return;
    }
  }
  // Refuses gradients, which are not set to earlier states on the way back, so that no step may depend on them.
  void touch(const ArrayBase& a) {
    if (!a.is_null() && a.storage()->holds_gradients)
      invalid(
          "a step of checkpointed() works on the gradient of an array, which is another one when the step is run again "
          "on the way back: copy it before checkpointed(), or change it after backward()");
    steps_.touch(a);
  }
  void write(const ArrayBase& a) {
    tape_.mark_written(a);
    steps_.add_output(a);
  }
  void replace(const ArrayBase& a) {
    tape_.mark_replaced(a);
    steps_.add_output(a);
  }
  TapeCore& tape_;
  StepsRecord& steps_;
  const bool quiet_;
  const Hears hears_;
  std::unique_ptr<StepRecorder> silent_;
  std::vector<View> written_;
};

}  // namespace

void StepsRecord::begin_mark(int step) {
  marks_.push_back(std::make_unique<Mark>());
  marks_.back()->step = step;
  keep_in(final_values_, &marks_.back()->log);
}

// Drops the last state, which is no longer needed.
void StepsRecord::end_mark() {
  std::unique_ptr<Mark> last = std::move(marks_.back());
  marks_.pop_back();
  // The lock makes this one step for a thread that changes something in the meantime.
  std::lock_guard lock(watcher_->mutex);
  watcher_->logs = {final_values_, &marks_.back()->log};
  marks_.back()->log.append(std::move(last->log));
}

void StepsRecord::to_last_mark() {
  keep_in(final_values_, nullptr);
  marks_.back()->log.undo();
  keep_in(final_values_, &marks_.back()->log);
}

void StepsRecord::prune(TapeCore& tape) {
  tape.prune();
  tape.limit_in_flight();
  // Only arrays that a step makes for itself can be gone.
  if (!std::exchange(found_new_, false)) return;
  std::lock_guard lock(watcher_->mutex);
  watcher_->touched.prune();
  for (const auto& mark : marks_) mark->log.prune();
  if (final_values_) final_values_->prune();
  std::erase_if(outputs_, [](const auto& storage) { return storage.expired(); });
}

void StepsRecord::advance(TapeCore& tape, int from, int to) {
  StepRecorder recorder(tape, *this);
  struct Active {
    TapeCore& tape;
    Recorder* before;
    ~Active() { tape.set_active(before); }
  } active{tape, tape.set_active(&recorder)};
  const HeardBy recording(&recorder);
  for (int k = from; k < to; ++k) {
    StepTraces::Run run(tape, traces_, k);
    call_back([&] { step_(k); });
    run.end();
    prune(tape);
    traces_.note_survivors(tape);
  }
}

void StepsRecord::reverse(TapeCore& tape, int step) {
  StepRecorder unrecorded(tape, *this, Recorder::Hears::again);
  tape.record_and_walk(
      [&] {
        StepTraces::Run run(tape, traces_, step);
        call_back([&] { step_(step); });
        run.end();
      },
      &unrecorded);
  prune(tape);
  traces_.note_survivors(tape);
}

void StepsRecord::run(TapeCore& tape) {
  begin_mark(0);
  int at = 0;
  while (int(marks_.size()) < slots_ && steps_ - at > 1) {
    const int n = next_mark(steps_ - at, slots_ - int(marks_.size()) + 1);
    advance(tape, at, at + n);
    at += n;
    begin_mark(at);
  }
  advance(tape, at, steps_);
}

void StepsRecord::backward(TapeCore& tape) {
  const bool any_gradient = std::ranges::any_of(outputs_, [&](const auto& o) {
    const auto storage = o.lock();
    return storage && tape.nonzero(View(storage, storage->allocation.address, 1, 1));
  });
  if (!any_gradient) return;
  StepUndoLog final_values;
  final_values_ = &final_values;
  const auto put_back = [&] {
    keep_in(nullptr, &marks_.back()->log);
    final_values_ = nullptr;
    final_values.undo();
  };
  try {
    for (int end = steps_; end > 0;) {
      to_last_mark();
      const int at = marks_.back()->step;
      if (end - at > 1 && int(marks_.size()) < slots_) {
        const int n = next_mark(end - at, slots_ - int(marks_.size()) + 1);
        advance(tape, at, at + n);
        begin_mark(at + n);
        continue;
      }
      --end;
      advance(tape, at, end);
      reverse(tape, end);
      if (at == end && at > 0) end_mark();
    }
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

void TapeCore::record_and_walk(const std::function<void()>& f, Recorder* unrecorded) {
  Records records;
  {
    struct Sink {
      TapeCore& tape;
      Records* sink;
      Recorder* unrecorded;
      ~Sink() { tape.sink_ = sink, tape.unrecorded_ = unrecorded; }
    } const before{*this, std::exchange(sink_, &records), std::exchange(unrecorded_, unrecorded)};
    const HeardBy recording(this);
    f();
    for (const auto& [storage, t] : storages_) note_replaced(View::all_of(t.storage));
  }
  walk(records);
}

void TapeCore::prune() {
  std::erase_if(storages_, [](const auto& known) { return known.second.storage.use_count() == 1; });
}

void TapeCore::add_steps(int steps, int slots, std::function<void(int)> step) {
  auto record = std::make_unique<StepsRecord>(steps, slots, std::move(step));
  try {
    record->run(*this);
  } catch (const std::exception& e) {
    broken_ = e.what();
    throw;
  }
  if (record->has_outputs()) add(std::move(record));
}

}  // namespace weft::detail
