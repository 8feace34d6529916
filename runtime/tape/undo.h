// Elements as they were before each first change since some moment, to go back there. Internal to the runtime.
#pragma once
#include <functional>
#include <map>

#include "../work/observe.h"

namespace weft::detail {

/// Bytes of some storages. They are not kept alive: what is gone is forgotten at prune().
class Places {
 public:
  /// Whose memory it was.
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

/// What changed since one moment: when it was made.
class UndoLog {
 public:
  /// These bytes are about to be changed by work on `stream`: copies what is not kept already.
  void keep(const std::shared_ptr<Storage>& storage, std::uint64_t begin, std::uint64_t end, StreamState& stream);
  /// Puts everything back, in work on Device::stream(), and forgets it.
  void undo();
  /// `later` began where this one ended: now this one tells what changed until the end of that.
  void append(UndoLog&& later);
  /// Forgets what nothing can look at any more.
  void prune();

 private:
  struct Kept {
    Places::Key storage;
    std::uint64_t begin, end;
    std::shared_ptr<Storage> copy;
    std::uint64_t address;  ///< of the copy of the first byte
  };
  /// Memory from later on was nothing then.
  std::uint64_t since_ = Storage::next_serial();
  std::vector<Kept> kept_;  // they do not overlap
  Places places_;
};

}  // namespace weft::detail
