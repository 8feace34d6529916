// What stands behind Tape: which arrays carry gradients, what was recorded, and the walk back. Internal to the runtime.
#pragma once
#include <set>
#include <unordered_map>

#include "../tape.h"
#include "../work/observe.h"
#include "gradient.h"
#include "outside_changes.h"
#include "step_traces.h"
#include "versions.h"

namespace weft::detail {

class KernelAdjoint;
class TapeCore;

/// Counts the changes of one storage's elements from when it was made.
class ChangeCount : public Watcher {
 public:
  void before_write(const ArrayBase&, StreamState&, const Change&) override { ++count; }
  std::atomic<std::uint64_t> count = 0;
};

/// One recorded operation.
class TapeRecord {
 public:
  virtual ~TapeRecord() = default;
  /// From the gradients behind the operation to those before it. Does nothing where those behind it are zero.
  virtual void backward(TapeCore& tape) = 0;
};
using Records = std::vector<std::unique_ptr<TapeRecord>>;

class TapeCore : public Recorder {
 public:
  explicit TapeCore(const TapeOptions& options) : options(options) {}

  const TapeOptions options;

  // What a tape records

  void launching(const CheckedLaunch& launch) override;
  void launched() override;
  void copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) override;
  void overwriting(const ArrayBase& to, const HostValues& values) override;
  void exposing(const ArrayBase& elements, const char* what) override;
  void untaped(const ArrayBase& to, const ArrayBase& from, std::span<const ArrayBase* const> others, const char* what,
               const char* instead) override;
  void deriving(const ArrayBase& to, std::span<const ArrayBase* const> from, const MakeRecord& record) override;
  /// Errors: Error(unsupported).
  void replaying(const char* what) override;
  void reading(const ArrayBase&) override {}
  void calling(std::function<void()> backward, std::span<const ArrayBase* const> arrays) override;
  Recorder* unrecorded() override { return unrecorded_; }
  Hears hears_for(const TapeCore& tape) const override {
    return &tape == this || walking_ ? Hears::all : Hears::nothing;
  }
  /// Errors: Error(unsupported) for elements that carry gradients.
  void check_exposed(const ArrayBase& elements, const char* what) const;
  /// Errors: Error(not_differentiable) for arrays that carry gradients.
  void check_untaped(const ArrayBase& to, const ArrayBase& from, const char* what, const char* instead) const;
  /// Errors: Error(invalid_argument) for an input of an operation with a derivative that was changed: see
  /// unknown_change().
  void check_derived(const ArrayBase& from) const;
  /// See Tape::checkpointed.
  void add_steps(int steps, int slots, std::function<void(int)> step);
  void add(std::unique_ptr<TapeRecord> record) { sink_->push_back(std::move(record)); }

  /// How gradients pass a launch.
  struct Passage {
    std::uint64_t with_gradient = 0;  ///< by parameter; 0: none pass
    std::uint64_t outputs = 0;        ///< of these: those that are written
    std::shared_ptr<KernelAdjoint> adjoint;
  };
  Passage passage(const CheckedLaunch& launch) const;
  /// The same for a copy: whether there is one, and from the source.
  struct CopyPassage {
    bool any = false, flows = false;
  };
  CopyPassage passage(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) const;
  /// Who hears of what is to be recorded: the tape itself, or what watches the steps that it does not record one by
  /// one.
  Recorder* active() { return active_; }
  /// \return who did before
  Recorder* set_active(Recorder* active) { return std::exchange(active_, active); }

  /// The steps that run now, the outermost first: steps may have steps inside.
  std::vector<StepTraces*>& step_traces() { return step_traces_; }
  /// Tells them of an operation: `(traces.*operation)(args...)`.
  template <class... P, class... A>
  void trace(void (StepTraces::*operation)(P...), const A&... args) {
    for (StepTraces* traces : step_traces_) (traces->*operation)(args...);
  }
  /// A step that was run again made this array, or another one in its place: gradients do not come back to it.
  void made_again(const std::shared_ptr<Storage>& storage, int step);

  /// Whether a gradient may pass through the elements of this memory: it has gradient storage, or something recorded
  /// computes them from such memory.
  bool carries(const ArrayBase& a) const;
  /// The same for an array that an operation names.
  /// Errors: Error(invalid_argument) when it carries some and made_again() was told of it.
  bool named_carries(const ArrayBase& a) const;
  /// A recorded operation writes elements that depend on what carries gradients, or that carried them.
  void mark_written(const ArrayBase& a);
  /// The same for one that replaces all of them.
  void mark_replaced(const ArrayBase& a);
  /// What was replaced of this memory since the tape worked on it, without being recorded: gradients end there.
  void note_replaced(const ArrayBase& a);
  /// A function of the caller stands for what was done to the array.
  /// Errors: Error(invalid_argument) for a part of what was changed at once.
  void note_function_of(const ArrayBase& a);
  /// What changed elements of recorded work in a way that is not known, or null.
  std::optional<std::string> unknown_change(const ArrayBase& a) const;
  /// A message about that. \param what  that is refused
  static std::string about_unknown_change(const std::string& what, const std::string& by);
  bool walking() const { return walking_; }
  /// The elements as they are at this point of the recording.
  std::shared_ptr<Version> version(const ArrayBase& a);
  /// The same where it is enough to know whether they have changed since.
  std::shared_ptr<ChangeCount> changes(const std::shared_ptr<Storage>& storage);

  // The way back

  void backward(std::span<const Seed> seeds);
  class Walking;
  /// Goes back through these records.
  void walk(const Records& records);
  /// The gradients of an array as they are at this place of the way back.
  View gradient(const ArrayBase& a);
  /// Gradients do not go further back than these elements, which the caller gave: grad() gathers them.
  void end_gradient(const ArrayBase& a);
  /// Whether they may be other than zero.
  bool nonzero(const ArrayBase& a) const;
  void mark_nonzero(const ArrayBase& a);
  void zero();
  /// Errors: Error(invalid_argument) inside backward().
  void refuse_on_the_way_back(const char* what) const;
  enum class Workspace { slots, log, owners };
  /// A contiguous array of words for the launch that is recorded next: each use has one, whose content is undefined.
  /// Errors: Error(out_of_memory).
  View workspace(const std::shared_ptr<DeviceState>& device, Workspace use, std::uint64_t bytes);
  /// Work may run far behind its recording, and what is freed stays until then: waits where that has become much.
  void limit_in_flight();
  void works_on(const std::shared_ptr<DeviceState>& device);

  /// Records f() to a list of its own, goes back through it and forgets it.
  /// \param unrecorded  who hears of what f() does not let the tape record
  void record_and_walk(const std::function<void()>& f, Recorder* unrecorded);
  /// Forgets memory that nobody but the tape has, where no record needs it.
  void prune();
  std::size_t size() const { return records_.size(); }

 private:
  struct Taped {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<const void> pin;
    bool carries = false;  ///< by what is recorded
    bool written = false;
    bool nonzero = false;
    std::shared_ptr<const Gradient> own;  ///< where the storage has none
    bool captured = false;                ///< work on `own` was captured: what it holds then, the host cannot know
    std::shared_ptr<LiveVersions> versions;
    std::shared_ptr<OutsideChanges> outside_changes;  ///< where it is written
    /// While the way back begins with zeros: what grad() held before, and what ended meanwhile.
    View before;
  };
  /// By where the array's memory is; made when it is not there.
  Taped& taped(const ArrayBase& a);
  const Taped* find(const ArrayBase& a) const;
  static void zero_own(Taped& t);
  void check(const Seed& seed) const;
  /// Does it lie in the gradient of an array of this tape?
  bool is_gradient(const ArrayBase& a) const;

  /// Of that memory, where something is noted.
  OutsideChanges* outside_changes(const ArrayBase& a) const;

  std::unordered_map<const Storage*, Taped> storages_;
  const OutsideChanges::Count changed_outside_ = std::make_shared<std::atomic<int>>(0);
  Records records_;
  bool walking_ = false;  ///< on the way back
  struct OnDevice {
    std::shared_ptr<DeviceState> device;
    std::uint64_t waited = 0;  ///< DeviceState::allocated then
    std::array<std::shared_ptr<Storage>, 3> workspaces;
  };
  OnDevice& on(const std::shared_ptr<DeviceState>& device);
  std::vector<OnDevice> devices_;
  Records* sink_ = &records_;
  Recorder* active_ = this;
  Recorder* unrecorded_ = nullptr;
  std::vector<StepTraces*> step_traces_;
  std::map<std::weak_ptr<Storage>, int, std::owner_less<>> made_again_;  ///< by which step
  std::size_t made_again_pruned_ = 64;
  std::map<std::uint64_t, std::weak_ptr<ChangeCount>> change_counts_;  ///< by Storage::serial
  std::size_t change_counts_pruned_ = 64;
  /// What launches did not write since they were certain to fail.
  std::set<std::weak_ptr<Storage>, std::owner_less<>> kept_;
  std::string broken_;                   ///< why the tape cannot go back
  std::unique_ptr<TapeRecord> pending_;  ///< the launch that is being made
};

}  // namespace weft::detail
