// What a trace does about faults: records for the host, the end of a thread, the checks of debug mode.
#pragma once
#include <span>
#include <string>

#include "trace.h"

namespace weft::tracing {

/// Appends a record with the values of the message's pieces, scalar by scalar.
void report(ir::Message message, std::span<const Id> values, Loc loc);

/// Ends the thread after a failure (see ir::outlive_failures where others wait for it). Where a return is not possible,
/// a local remembers the failure, and While loops end by it.
void stop_thread(Loc loc);
/// A While's condition, false once a thread has failed where it could not return.
Id unless_stopped(Id condition, Loc loc);
/// After a While: makes up for a return that was not possible in its condition.
void return_if_stopped(Loc loc);

/// What debug mode knows of an element: the array and the indices that name it, those of fixed arrays inside included.
struct Element {
  static constexpr int kMostIndices = 12;
  std::string array;
  int ndim = 0;
  Id index[kMostIndices] = {};
  Id extent[kMostIndices] = {};
};

/// Guards an access while it lives: what is traced between construction and close() runs only where the element exists.
/// Does nothing for an address without an element.
class Guard {
 public:
  Guard(const Address& at, Loc loc);
  Guard(const Guard&) = delete;
  /// Ends the guarded part. Replaces what it computed by values that are visible after it: zeros where it did not run.
  void close(Id* values = nullptr, int count = 0);

 private:
  std::uint32_t element_;
  ir::RegionId outer_ = ir::kNone;
  Loc loc_;
};

/// Guards a store to floats in the same way: where a value is not finite, nothing is stored. Does nothing unless the
/// kernel looks for NaN.
class FiniteGuard {
 public:
  FiniteGuard(const Address& at, ir::Type type, std::span<const Id> values, Loc loc);
  FiniteGuard(const FiniteGuard&) = delete;
  void close(Id* values = nullptr, int count = 0);

 private:
  bool active_ = false;
  std::uint32_t element_;
  ir::Type type_;
  std::span<const Id> values_;
  ir::RegionId outer_ = ir::kNone;
  Loc loc_;
};

/// Reports a range of a dimension that leaves it, or does not advance.
/// \return whether it is right; kNone without checks
Id check_range(const std::string& array, Id lo, Id hi, Id step, Id extent, Loc loc);

/// Reports an integer division by zero.
void check_divisor(ir::Op op, Id dividend, Id divisor, Loc loc);

}  // namespace weft::tracing
