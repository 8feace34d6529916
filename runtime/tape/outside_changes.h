// Tracks changes to a tape's arrays that are not recorded on it. Internal to the runtime.
#pragma once
#include <mutex>
#include <optional>

#include "../work/observe.h"
#include "undo.h"

namespace weft::detail {

/// Hears of changes of one storage that recorded work has written. Between two recorded operations on it, elements of
/// recorded work may be replaced, and are then constants to later work; or changed in an unknown way, so that later
/// work cannot tell them from the results of recorded work. Memory that recorded work only reads is the caller's: its
/// changes are not noted.
///
/// Thread-safe: any thread may be about to change the memory. All members but before_write() are for the tape's own
/// thread.
class OutsideChanges : public Watcher {
 public:
  /// Number of a tape's storages that have something noted.
  using Count = std::shared_ptr<std::atomic<int>>;

  OutsideChanges(const TapeCore& tape, Count count) : tape_(&tape), count_(std::move(count)) {}
  ~OutsideChanges() override { *count_ -= any_; }

  void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) override;
  bool follows(const ArrayBase& elements) override;

  /// Notes that recorded work writes these elements.
  void record_write(const ArrayBase& elements);
  /// Notes that recorded work replaces these elements, which ends all notes of unknown changes to them.
  void record_replacement(const ArrayBase& elements);
  /// Removes the notes of these elements, because the caller records what was done to them.
  /// \return  another part of the same change, if anything
  std::optional<std::string> record_changes(const ArrayBase& elements);

  /// Returns and forgets the elements of recorded work that were replaced since the last call, as views that do not
  /// keep the memory.
  std::vector<View> take_replaced();
  /// The name of the work that changed some of these elements in an unknown way, or null.
  std::optional<std::string> unknown_change(const ArrayBase& elements) const;

  /// While a tape goes back it repeats changes, so those from before are kept apart.
  void begin_walk();
  void end_walk();

 private:
  struct Noted {
    View where;  ///< does not keep the memory
    std::string by;
  };
  using List = std::vector<Noted>;
  struct State {
    Places of_records;  ///< elements that recorded work has left there; extra bytes do no harm
    List replaced, unknown;
  };
  /// \return  whether nothing is left that overlaps the elements
  static bool remove(List& list, const ArrayBase& elements);
  static std::optional<std::string> find(const List& list, const ArrayBase& elements);
  void add(List& list, const ArrayBase& elements, const Change& change);
  void note(const ArrayBase& elements, const Change& change, Recorder::Hears hears);
  void set_flags();

  const TapeCore* const tape_;  ///< for comparison only
  const Count count_;
  mutable std::mutex mutex_;
  State state_;
  std::optional<State> before_walk_;
  std::atomic<bool> any_ = false;  ///< whether something is noted
  /// The bytes last passed to record_write() still all count as recorded.
  std::atomic<bool> last_written_stays_ = false;
  std::uint64_t last_begin_ = 0, last_end_ = 0;
};

}  // namespace weft::detail
