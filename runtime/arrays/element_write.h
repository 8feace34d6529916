// Writes of elements that may hold arrays: what they hold lives as long as they do. Internal to the runtime.
#pragma once
#include <functional>
#include <memory>

#include "../core/state.h"

namespace weft::detail {

/// A write of elements that may hold arrays. Memory always refers to more than its elements hold, or to just that:
/// what is written is added to its list before the device is given the write, and all else leaves the list after a
/// write of all elements. Nobody else writes elements in between (DeviceState::lock_elements()).
struct ElementWrite {
  std::shared_ptr<Storage> to;
  std::shared_ptr<Storage> from;  ///< whose elements are copied; null: they come with `list`
  References list;
  bool whole = false;        ///< all elements of `to`: it refers to nothing else afterwards
  bool conditional = false;  ///< in a condition of a graph: happens once, never, or several times

  /// What the written elements hold, where `from` refers to `held`.
  References brought(const References& held) const;
  /// And where it refers to what it does now.
  References brought() const;
  /// Errors: Error(unsupported) for memory that refers to `to` in turn.
  void refuse_circle() const;
  /// Calls `write`, which gives the device the write. In a capture the graph makes it, in each launch with what
  /// elements of `from` hold by then. A write that fails may have written some elements: `to` refers to more then.
  /// Errors: as refuse_circle(), and then nothing has changed.
  void run(const std::function<void()>& write) const;
};

/// Before a kernel writes elements of `to`, and brings what it is given: what both lead to goes with its launch.
/// Errors: Error(invalid_argument) where that may be an array that was freed.
void refuse_freed(Storage& to, const References& brought);

/// Whether nothing else lies in the array's memory.
bool is_whole(const ArrayBase& a);

}  // namespace weft::detail
