// The undo log of an adjoint: keeps what stores overwrite while a kernel's code runs forward again, and puts it back.
#pragma once
#include "code.h"

namespace weft::ir {

/// Keeps the elements that stores overwrite. If the store's block is reversed next, they are kept in values. Otherwise
/// they go to a log in memory, which is later rolled back to the height that it had.
class UndoLog {
 public:
  /// \param counting  only counts the entries
  UndoLog(AdjointCode& code, bool counting);

  /// Begins with an empty log, if the adjoint has one.
  void open();
  /// Makes a store of the kernel.
  /// \param direct  the store is one of the block that is reversed next
  void store(Id id, bool direct);
  /// Puts back what a store of the block overwrote, if it was made.
  void put_back(Id store);

  /// Forgets an earlier run of this store, branch or loop. Called before its block runs.
  void forget(Id id) {
    old_[id].clear();
    heights_[id] = kNone;
  }
  /// Notes the height of the log. Called before a branch or loop runs that stores.
  void mark(Id control) { heights_[control] = height(); }
  /// Puts back all that the branch or loop overwrote, if it was run.
  void rewind(Id control) {
    if (heights_[control] != kNone) roll_back(heights_[control]);
  }

  Id height() { return code_.get(height_); }
  void roll_back(Id height);

 private:
  void push(Id store, const MemoryRef& ref);
  std::uint8_t kind(Type type) const;

  AdjointCode& code_;
  const bool counting_;
  std::uint32_t height_ = kNone;      ///< the local that holds the log's height
  std::vector<Type> kinds_;           ///< of the numbers that are logged
  std::vector<Id> heights_;           ///< by branch or loop: the log's height before it ran; kNone: it did not
  std::vector<std::vector<Id>> old_;  ///< by store: the numbers that it overwrote
};

}  // namespace weft::ir
