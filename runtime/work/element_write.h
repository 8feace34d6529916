// Writes of elements that may hold arrays: what they hold lives as long as they do. Internal to the runtime.
#pragma once
#include <functional>
#include <memory>

#include "../core/state.h"

namespace weft::detail {

/// A write of elements that may hold arrays. The list of memory always has all that its elements hold, and perhaps
/// more: what a write brings is added before the write is issued, and all else leaves the list after a write of all
/// elements. No other thread writes elements in between (DeviceState::lock_elements()). What captured work brings is
/// added in the capture, and stays: each run finds the list as it was then, or is refused.
struct ElementWrite {
  std::shared_ptr<Storage> to;
  std::shared_ptr<Storage> from;  ///< the source of a copy; null: the host's elements, which hold `list`
  References list;
  bool whole = false;  ///< writes all elements of `to`, which refers to nothing else afterwards

  /// The memory that the written elements hold with what `from` refers to now.
  HeldMemory brought() const;
  /// Refuses a write by which memory would hold itself in a circle.
  /// Errors: Error(unsupported) for memory that refers to `to` in turn.
  void refuse_circle() const;
  /// Calls `write`, which issues the write. After a write that failed outside of a capture, `to` refers to old and new
  /// memory, because it may be half done.
  /// Errors: as refuse_circle() and Capture::writes_elements(), and then nothing has changed.
  void run(const std::function<void()>& write) const;
};

/// Checks all memory that `to` and `brought` lead to, because a kernel that writes elements of `to` may access it.
/// Errors: Error(invalid_argument) if an array was freed there.
void refuse_freed(Storage& to, const References& brought);

/// Marks a kernel that copies elements as bytes: see KernelCore::moves_elements.
template <class K>
K moving_elements(K kernel) {
  kernel.core().moves_elements = true;
  return kernel;
}

/// Whether the array covers all of its memory.
bool is_whole(const ArrayBase& a);

}  // namespace weft::detail
