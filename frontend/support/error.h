// The one exception type, for a caller's mistake, a refused feature or a failing device.
#pragma once
#include <stdexcept>
#include <string>

#include "loc.h"

namespace weft {

/// The kind of an error, coarse enough to branch on.
enum class ErrorKind {
  invalid_argument,  ///< a value that the call cannot take (shape, dimension, device, null array, negative size)
  invalid_kernel,    ///< the traced kernel is not well formed (a native `break` out of a block, a value used out of
                     ///< scope)
  unsupported,       ///< the device or the library lacks a feature that the kernel or the call needs
  out_of_memory,     ///< the device or the host cannot provide the memory
  no_device,         ///< no Vulkan loader, no driver, or no device of that name
  device_lost,       ///< the device stopped answering; every later call on it reports this
  kernel_fault,      ///< found on the device: an assert_ or a check of debug mode failed; thrown by the call that waits
  not_differentiable,  ///< a gradient is asked for through an operation that has none, or that the library refuses; if
                       ///< the device finds it, the call that waits throws it
  io                   ///< a file that cannot be read or is damaged
};

/// The name of a kind, as it appears in messages: "invalid argument", "device lost", ...
const char* to_string(ErrorKind kind);

/// Raised by every public call that fails. `what()` is complete by itself: it names the kernel and the source line if
/// they are known.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string kernel = {}, Loc loc = {});

  ErrorKind kind() const { return kind_; }
  /// The message without kernel and place.
  const std::string& message() const { return message_; }
  /// The name of the kernel; empty if no kernel is concerned.
  const std::string& kernel() const { return kernel_; }
  /// The location in the kernel's source, else the caller's, else an empty Loc.
  Loc loc() const { return loc_ ? loc_ : caller_; }
  /// The location of the host's call that failed (a launch, slice(), backward(), ...), or an empty Loc.
  Loc caller() const { return caller_; }
  /// Makes what(), loc() and caller() name this call from now on, unless keep_caller() was called.
  void set_caller(Loc caller);
  /// Keeps the caller, if one is named, because the error comes from a function that the library was given.
  void keep_caller() { keeps_caller_ = bool(caller_); }

 private:
  ErrorKind kind_;
  std::string message_, kernel_;
  Loc loc_, caller_;
  bool keeps_caller_ = false;
};

namespace detail {
/// Calls f for the host's code at `caller`; an Error that leaves f names that location. Of nested calls the outermost
/// is named, as the inner ones are weft's own.
/// Cost: none without an error, provided that it is inlined, which compilers avoid for functions that catch.
template <class F>
[[gnu::always_inline]] inline decltype(auto) called_from(Loc caller, const F& f) {
  try {
    return f();
  } catch (Error& e) {
    e.set_caller(caller);
    throw;
  }
}
/// Calls a function of the host's within called_from(): the calls that this function makes itself stay named.
template <class F>
decltype(auto) call_back(const F& f) {
  try {
    return f();
  } catch (Error& e) {
    e.keep_caller();
    throw;
  }
}
}  // namespace detail

/// Ends the program with a message: for a broken invariant of the library itself, never for a caller's mistake.
[[noreturn]] void internal_error(const char* what, Loc loc = Loc::here());

}  // namespace weft
