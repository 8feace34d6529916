// A location in the user's source, which every operation, kernel and error carries.
#pragma once

namespace weft {

/// A file and a line. `file` points to a string of static storage duration, as `__builtin_FILE()` gives it.
struct Loc {
  const char* file = nullptr;
  int line = 0;

  /// The caller's location, when used as a default argument.
  static constexpr Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

  explicit constexpr operator bool() const { return file != nullptr; }
};

}  // namespace weft
