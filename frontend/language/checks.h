// The handling of faults in a trace: records for the host, the end of a thread, the checks of debug mode.
#pragma once
#include <span>
#include <string>

#include "trace.h"

namespace weft::tracing {

/// Appends a record with the values of the message's pieces, scalar by scalar.
void report(ir::Message message, std::span<const Id> values, Loc loc);

/// Ends the thread after a failure (see ir::outlive_failures if others wait for it). If it cannot return, a local
/// remembers the failure, and While loops end by it.
void stop_thread(Loc loc);
/// Reports a failure and ends the thread unless a condition holds.
void fail_unless(Id good, ir::Message message, std::span<const Id> values, Loc loc);
/// The condition of a While, made false once a thread has failed where it could not return.
Id unless_stopped(Id condition, Loc loc);
/// Returns after a While, if a failure in its condition could not.
void return_if_stopped(Loc loc);

/// The facts about an element for debug mode: the array and the indices that name it, including those of fixed arrays
/// inside.
struct Element {
  static constexpr int kMostIndices = 12;
  std::string array;
  int ndim = 0;
  Id index[kMostIndices] = {};
  Id extent[kMostIndices] = {};
};

/// Guards an access while it lives: code that is traced between construction and close() runs only if the element
/// exists. Does nothing for an address without an element.
class Guard {
 public:
  Guard(const Address& at, Loc loc);
  Guard(const Guard&) = delete;
  /// Ends the guarded part. Replaces its values by values that are visible after it: zeros if it did not run.
  void close(Id* values = nullptr, int count = 0);

 private:
  std::uint32_t element_;
  ir::RegionId outer_ = ir::kNone;
  Loc loc_;
};

/// Guards a store to floats in the same way: if a value is not finite, nothing is stored. Does nothing unless the
/// kernel looks for NaN.
class FiniteGuard {
 public:
  FiniteGuard(const Address& at, ir::Type type, std::span<const Id> values, Loc loc);
  FiniteGuard(const FiniteGuard&) = delete;
  void close(Id* values = nullptr, int count = 0);

 private:
  bool active_ = false;
  std::uint32_t element_;
  std::span<const Id> values_;
  ir::RegionId outer_ = ir::kNone;
  Loc loc_;
};

/// Reports a range that leaves its dimension, or does not advance.
/// \return whether the range is right; kNone without checks
Id check_range(const std::string& array, Id lo, Id hi, Id step, Id extent, Loc loc);

/// Reports an integer division by zero.
void check_divisor(ir::Op op, Id dividend, Id divisor, Loc loc);

}  // namespace weft::tracing
