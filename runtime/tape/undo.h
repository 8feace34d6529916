// Logs of elements before their first change since some moment, to return to it. Internal to the runtime.
#pragma once
#include <functional>
#include <map>

#include "../work/observe.h"

namespace weft::detail {

/// Bytes of some storages. Does not keep them alive; prune() forgets those that are gone.
class Places {
 public:
  /// The storage that has the bytes.
  using Key = std::weak_ptr<Storage>;
  using Intervals = std::map<std::uint64_t, std::uint64_t>;  ///< begin and end; they neither overlap nor touch

  void add(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end);
  /// Calls f(begin, end) for each part of the interval that is among the places (or, for false, that is not).
  void parts(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end, bool among,
             const std::function<void(std::uint64_t, std::uint64_t)>& f) const;
  void remove(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end);
  bool knows(const std::shared_ptr<Storage>& storage) const { return by_storage_.contains(storage); }
  void prune();

 private:
  std::map<Key, Intervals, std::owner_less<>> by_storage_;
};

/// The changes since one moment, at which the log was made.
class StepUndoLog {
 public:
  /// Copies those of the bytes that are not kept yet, before work on `stream` changes them.
  void keep(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end, StreamState& stream);
  /// Restores everything, in work on Device::stream(), and forgets it.
  void undo();
  /// Appends `later`, which began where this log ended: it then covers the changes up to the end of that one.
  void append(StepUndoLog&& later);
  /// Forgets memory that no code can read any more.
  void prune();

 private:
  struct Kept {
    Places::Key storage;
    std::uint64_t begin, end;
    std::shared_ptr<Storage> copy;
    std::uint64_t address;  ///< address of the copy of the first byte
  };
  /// Memory with a later serial did not exist then.
  std::uint64_t since_ = Storage::next_serial();
  std::vector<Kept> kept_;  // these do not overlap
  Places places_;
};

}  // namespace weft::detail
