// Debug mode: what kernels check while they run, and how it is asked for.
#pragma once

namespace weft {

/// What a kernel checks while it runs. A failed check skips what it guards, ends the thread, and is thrown as
/// Error(kernel_fault) by the call that next waits for the launch (docs/language.md).
/// Cost: a comparison and a branch for each check; nothing where a check is off.
class Debug {
 public:
  constexpr Debug(bool checks = false) : checks(checks) {}
  /// Everything that can be checked.
  static constexpr Debug all() {
    Debug debug(true);
    debug.finite = true;
    return debug;
  }

  bool checks;          ///< every index against the extent of its dimension, every integer divisor against zero
  bool finite = false;  ///< no NaN and no infinity is stored to an element of an array

  friend constexpr Debug operator|(Debug a, Debug b) {
    Debug both(a.checks || b.checks);
    both.finite = a.finite || b.finite;
    return both;
  }
  bool operator==(const Debug&) const = default;
};

/// Debug mode of all kernels, from their next launch on, beside what each asks for itself. At the start it is what the
/// environment says: WEFT_DEBUG=1 for `true`, WEFT_DEBUG=nan for Debug::all(). Thread-safe.
void set_debug(Debug debug);
Debug debug_mode();

}  // namespace weft
