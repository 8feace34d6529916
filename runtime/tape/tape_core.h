// The implementation of Tape: the arrays that carry gradients, the records, and the walk back. Internal to the runtime.
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

/// Counts the changes of one storage's elements since the count was made.
class ChangeCount : public Watcher {
 public:
  void before_write(const ArrayBase&, StreamState&, const Change&) override { ++count; }
  /// The records that hold this count go back only while it stays.
  bool needs(const ArrayBase&) override { return true; }
  std::atomic<std::uint64_t> count = 0;
};

/// One recorded operation.
class TapeRecord {
 public:
  virtual ~TapeRecord() = default;
  /// Computes the gradients before the operation from those after it. Does nothing if those after it are zero.
  virtual void backward(TapeCore& tape) = 0;
};
using Records = std::vector<std::unique_ptr<TapeRecord>>;

class TapeCore : public Recorder {
 public:
  explicit TapeCore(const TapeOptions& options) : options(options) {}

  const TapeOptions options;

  // Recording

  void hear(const HeardOperation& operation) override;
  void launched() override;
  Recorder* unrecorded() override { return unrecorded_; }
  Hears hears_for(const TapeCore& tape) const override {
    return &tape == this || walking_ ? Hears::all : Hears::nothing;
  }
  /// Throws Error(unsupported) for elements that carry gradients.
  void check_exposed(const HeardOperation& exposing) const;
  /// Throws Error(not_differentiable) for arrays that carry gradients.
  void check_untaped(const HeardOperation& operation) const;
  /// Throws Error(invalid_argument) for an input that was changed, of an operation with a derivative: see
  /// unknown_change().
  void check_derived(const ArrayBase& from) const;
  /// Implements Tape::checkpointed.
  void add_steps(int steps, int slots, std::function<void(int)> step);
  void add(std::unique_ptr<TapeRecord> record) { sink_->push_back(std::move(record)); }

  /// The way of gradients through a launch.
  struct Passage {
    std::uint64_t with_gradient = 0;  ///< by parameter; 0: none pass
    std::uint64_t outputs = 0;        ///< those of with_gradient that are written
    std::shared_ptr<KernelAdjoint> adjoint;
  };
  Passage passage(const CheckedLaunch& launch) const;
  /// The way of gradients through a copy: whether there is one, and whether it leads to the source.
  struct CopyPassage {
    bool any = false, flows = false;
  };
  CopyPassage passage(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) const;
  /// The recorder that hears of operations: the tape itself, or the recorder of steps that it does not record one by
  /// one.
  Recorder* active() { return active_; }
  /// \return  the previous recorder
  Recorder* set_active(Recorder* active) { return std::exchange(active_, active); }

  /// The running steps, the outermost first: steps may have steps inside.
  std::vector<StepTraces*>& step_traces() { return step_traces_; }
  /// Reports an operation to the running steps.
  void trace(const HeardOperation& operation) {
    for (StepTraces* traces : step_traces_) traces->hear(operation);
  }
  /// Notes that a repeated step made this array, or another one in its place: no gradient comes back to it.
  void made_again(const std::shared_ptr<Storage>& storage, int step);

  /// Whether a gradient may pass through the elements of this memory: it has gradient storage, or recorded work
  /// computes it from such memory.
  bool carries(const ArrayBase& a) const;
  /// Whether an array that an operation names carries gradients.
  /// Errors: Error(invalid_argument) if it does and made_again() was told of it.
  bool named_carries(const ArrayBase& a) const;
  /// Notes that a recorded operation writes elements which carried gradients or depend on some that do.
  void mark_written(const ArrayBase& a);
  /// Notes that a recorded operation replaces all these elements.
  void mark_replaced(const ArrayBase& a);
  /// Ends gradients at the elements of this memory that were replaced, unrecorded, since the tape worked on it.
  void note_replaced(const ArrayBase& a);
  /// Notes that a function of the caller covers what was done to the array.
  /// Errors: Error(invalid_argument) if it covers only a part of one change.
  void note_function_of(const ArrayBase& a);
  /// The name of the work that changed elements of recorded work in an unknown way, or null.
  std::optional<std::string> unknown_change(const ArrayBase& a) const;
  /// The message about an unknown change.
  /// \param what  the operation that is refused
  static std::string about_unknown_change(const std::string& what, const std::string& by);
  bool walking() const { return walking_; }
  /// The elements as they are at this point of the recording.
  std::shared_ptr<Version> version(const ArrayBase& a);
  /// A count that tells whether the elements have changed since, where that is enough.
  std::shared_ptr<ChangeCount> changes(const std::shared_ptr<Storage>& storage);

  // The way back

  void backward(std::span<const Seed> seeds);
  class Walking;
  /// Walks back through these records.
  void walk(const Records& records);
  /// The gradients of an array at this point of the way back.
  View gradient(const ArrayBase& a);
  /// Ends gradients at these elements, which came from the caller: grad() accumulates them.
  void end_gradient(const ArrayBase& a);
  /// Whether the gradients may be other than zero.
  bool nonzero(const ArrayBase& a) const;
  void mark_nonzero(const ArrayBase& a);
  void zero();
  /// Throws Error(invalid_argument) inside backward().
  void refuse_on_the_way_back(const char* what) const;
  enum class Workspace { slots, log, owners };
  /// A contiguous array of words for the launch that is recorded next, one for each use, with undefined content.
  /// Errors: Error(out_of_memory).
  View workspace(const std::shared_ptr<DeviceState>& device, Workspace use, std::uint64_t bytes);
  /// Waits for the device if much freed memory is pending: work may run long after its recording, and keeps memory
  /// until then.
  void limit_in_flight();
  void works_on(const std::shared_ptr<DeviceState>& device);

  /// Records f() to a list of its own, walks back through it and forgets it.
  /// \param unrecorded  hears of what f() keeps from the tape
  void record_and_walk(const std::function<void()>& f, Recorder* unrecorded);
  /// Forgets memory that only the tape holds and that no record needs.
  void prune();
  std::size_t size() const { return records_.size(); }

 private:
  struct Taped {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<const void> pin;
    bool carries = false;  ///< through recorded work
    bool written = false;
    bool nonzero = false;
    std::shared_ptr<const Gradient> own;  ///< if the storage has none
    bool captured = false;                ///< work on `own` was captured: the host cannot know its content
    std::shared_ptr<LiveVersions> versions;
    std::shared_ptr<OutsideChanges> outside_changes;  ///< if recorded work writes it
    /// While the way back begins with zeros: what grad() held before, and what has ended in the meantime.
    View before;
  };
  void launching(const CheckedLaunch& launch);
  void copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves);
  void deriving(const ArrayBase& to, std::span<const ArrayBase* const> from, const MakeRecord& record);
  void calling(const std::function<void()>& backward, std::span<const ArrayBase* const> arrays);
  /// Found by the array's memory; made if missing.
  Taped& taped(const ArrayBase& a);
  const Taped* find(const ArrayBase& a) const;
  static void zero_own(Taped& t);
  void check(const Seed& seed) const;
  /// Whether the array lies in the gradient of an array of this tape.
  bool is_gradient(const ArrayBase& a) const;

  /// The unrecorded changes of the array's memory, or null if none can be noted.
  OutsideChanges* outside_changes(const ArrayBase& a) const;

  std::unordered_map<const Storage*, Taped> storages_;
  const OutsideChanges::Count changed_outside_ = std::make_shared<std::atomic<int>>(0);
  Records records_;
  bool walking_ = false;  ///< in backward()
  struct OnDevice {
    std::shared_ptr<DeviceState> device;
    std::uint64_t waited = 0;  ///< DeviceState::allocated at the last wait
    std::array<std::shared_ptr<Storage>, 3> workspaces;
  };
  OnDevice& on(const std::shared_ptr<DeviceState>& device);
  std::vector<OnDevice> devices_;
  Records* sink_ = &records_;
  Recorder* active_ = this;
  Recorder* unrecorded_ = nullptr;
  std::vector<StepTraces*> step_traces_;
  std::map<std::weak_ptr<Storage>, int, std::owner_less<>> made_again_;  ///< number of the step
  std::size_t made_again_pruned_ = 64;
  std::map<std::uint64_t, std::weak_ptr<ChangeCount>> change_counts_;  ///< by Storage::serial
  std::size_t change_counts_pruned_ = 64;
  /// Arrays that launches left unwritten because they were certain to fail.
  std::set<std::weak_ptr<Storage>, std::owner_less<>> kept_;
  std::string broken_;                   ///< why the tape cannot go back
  std::unique_ptr<TapeRecord> pending_;  ///< the launch in progress
};

}  // namespace weft::detail
