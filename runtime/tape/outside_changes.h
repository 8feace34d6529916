// What changes the arrays of a tape without being recorded on it. Internal to the runtime.
#pragma once
#include <mutex>
#include <optional>

#include "../work/observe.h"
#include "undo.h"

namespace weft::detail {

/// Hears of changes of one storage that recorded work has written. Between two recorded operations on it, elements of
/// recorded work may be replaced, and are constants to what follows; or changed in a way that nobody knows, and what
/// follows cannot tell them from what recorded work left there. Memory that recorded work only reads is the caller's:
/// nothing is noted of it.
///
/// Thread-safe: any thread may be about to change the memory. All but before_write() is for the tape's own thread.
class OutsideChanges : public Watcher {
 public:
  /// How many storages of a tape have something noted.
  using Count = std::shared_ptr<std::atomic<int>>;

  OutsideChanges(const TapeCore& tape, Count count) : tape_(&tape), count_(std::move(count)) {}
  ~OutsideChanges() override { *count_ -= any_; }

  void before_write(const ArrayBase& elements, StreamState& stream, const Change& change) override;
  bool follows(const ArrayBase& elements) override;

  /// Recorded work writes these elements.
  void record_write(const ArrayBase& elements);
  /// Recorded work replaces them, whatever was done to them.
  void record_replacement(const ArrayBase& elements);
  /// What was done to them is recorded by the caller.
  /// \return  what else was done in the same change, if anything
  std::optional<std::string> record_changes(const ArrayBase& elements);

  /// The elements of recorded work that were replaced since the last call; views that do not keep the memory.
  std::vector<View> take_replaced();
  /// What has changed some of these elements in a way that is not known, or null.
  std::optional<std::string> unknown_change(const ArrayBase& elements) const;

  /// While a tape goes back it makes changes again. Those of before are noted apart.
  void begin_walk();
  void end_walk();

 private:
  struct Noted {
    View where;  ///< does not keep the memory
    std::string by;
  };
  using List = std::vector<Noted>;
  struct State {
    Places of_records;  ///< elements that recorded work has left there; a byte too many is no matter
    List replaced, unknown;
  };
  /// \return  whether nothing is left that overlaps the elements
  static bool remove(List& list, const ArrayBase& elements);
  static std::optional<std::string> find(const List& list, const ArrayBase& elements);
  void add(List& list, const ArrayBase& elements, const Change& change);
  void note(const ArrayBase& elements, const Change& change, Recorder::Hears hears);
  void set_flags();

  const TapeCore* const tape_;  ///< to compare
  const Count count_;
  mutable std::mutex mutex_;
  State state_;
  std::optional<State> before_walk_;
  std::atomic<bool> any_ = false;  ///< whether something is noted
  /// Recorded elements that nobody has replaced since record_write() was called for them.
  std::atomic<bool> last_written_stays_ = false;
  std::uint64_t last_begin_ = 0, last_end_ = 0;
};

}  // namespace weft::detail
