// What stores overwrite while code of a kernel runs forward again in its adjoint, and how it is put back.
#pragma once
#include "code.h"

namespace weft::ir {

/// Where the block is reversed next in which a store stands, what it overwrites is kept in values. Elsewhere it goes to
/// a log in memory, which is rolled back to the height that it had.
class UndoLog {
 public:
  /// \param counting  only counts the entries
  UndoLog(AdjointCode& code, bool counting);

  /// Begins with an empty log, where there is one.
  void open();
  /// Does a store of the kernel. `direct`: it is one of the block that is reversed next.
  void store(Id id, bool direct);
  /// Puts back what a store of the block overwrote, if it was done.
  void put_back(Id store);

  /// Before a block runs: what was known of this store, branch or loop is of another time.
  void forget(Id id) {
    old_[id].clear();
    heights_[id] = kNone;
  }
  /// Before a branch or loop runs that stores.
  void mark(Id control) { heights_[control] = height(); }
  /// Puts back all that it stored, if it was run.
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
  std::uint32_t height_ = kNone;      ///< local
  std::vector<Type> kinds_;           ///< of the numbers that are logged
  std::vector<Id> heights_;           ///< by branch or loop: of the log before it ran; kNone: it did not
  std::vector<std::vector<Id>> old_;  ///< by store: what was there
};

}  // namespace weft::ir
