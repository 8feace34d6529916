// The context of a thread's device work: what hears of it, and where it goes. Internal to the runtime.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {
class StreamScope;
}

namespace weft::detail {

class Capture;
class Recorder;
class TapeCore;
struct HeldMemory;

/// All state of a thread that its calls read. Scopes (Within) change a field and put it back.
struct Context {
  Recorder* recorder = nullptr;         ///< hears of operations; null: none does
  Capture* capture = nullptr;           ///< collects work instead of running it; null: work runs
  const char* capturing = "";           ///< what the capture does, for messages
  StreamScope* stream_scope = nullptr;  ///< the innermost scope, which links to the outer ones
  /// The tape that is going back through one of its launches. The adjoint may repeat the kernel's changes, in the
  /// arrays themselves if these are still as the launch left them, and then takes the changes back.
  const TapeCore* going_back = nullptr;
  /// Whether changes of elements belong to a change that the watchers were told of, or are taken back before any code
  /// can see them.
  bool part_of_change = false;
  bool makes_structure = false;  ///< launches make a structure, and are not checked for those that they are given
  /// References of storages that have ended, which the outermost ending one drops: a chain of elements may be long.
  std::vector<std::shared_ptr<const HeldMemory>>* ended = nullptr;
  struct OpenScope {
    std::uint64_t log = 0;    ///< ProfileLog::id
    std::uint32_t scope = 0;  ///< 0: none
  } profile = {};

  /// This thread's context.
  static Context& here();
};

/// A scope in which a field of this thread's context has another value.
template <class T>
class Within {
 public:
  Within(T Context::*field, std::type_identity_t<T> value)
      : field_(field), before_(std::exchange(Context::here().*field, value)) {}
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;
  ~Within() { Context::here().*field_ = before_; }

 private:
  T Context::*const field_;
  const T before_;
};

/// A scope in which this thread's work runs even during a capture: for memory that outlives the capture.
class OutsideCapture : Within<Capture*> {
 public:
  OutsideCapture() : Within(&Context::capture, nullptr) {}
};

/// Refuses a wait while this thread captures, because the collected work has not run.
/// Errors: Error(invalid_argument) in a capture.
void refuse_waits(const char* what = "the host waits for work or reads elements");

}  // namespace weft::detail
