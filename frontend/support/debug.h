// Debug mode: the checks that kernels make while they run, and the switch for them.
#pragma once

namespace weft {

/// The checks that a kernel makes while it runs. A failed check skips the operation that it guards, ends the thread,
/// and is thrown as Error(kernel_fault) by the call that next waits for the launch (docs/language.md).
/// Cost: a comparison and a branch for each check; nothing for a check that is off.
class Debug {
 public:
  constexpr Debug(bool checks = false) : checks(checks) {}
  /// All checks.
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

/// Sets the debug mode of all kernels, from their next launch on, in addition to each kernel's own options. The start
/// value comes from the environment: WEFT_DEBUG=1 for `true`, WEFT_DEBUG=nan for Debug::all(). Thread-safe.
void set_debug(Debug debug);
Debug debug_mode();

}  // namespace weft
