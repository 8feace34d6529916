// What a thread's device work is done in: who hears of it, and where it goes. Internal to the runtime.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

namespace weft {
class StreamScope;
}

namespace weft::detail {

class Capture;
class GivenStructures;
class Recorder;
class TapeCore;

/// The state of a thread that its calls read, all of it. Scopes (Within) change a field and put it back.
struct Context {
  Recorder* recorder = nullptr;         ///< hears of operations; null: nobody does
  Capture* capture = nullptr;           ///< collects work instead of running it; null: work runs
  const char* capturing = "";           ///< what it does, for messages
  StreamScope* stream_scope = nullptr;  ///< the innermost, which the others hang on
  GivenStructures* given = nullptr;     ///< notes the structures among the arguments that are being taken
  /// A tape that goes back through one of its launches: an adjoint may make changes of the kernel again, in the arrays
  /// themselves where they are as they were after the launch, and takes them back.
  const TapeCore* going_back = nullptr;
  /// Changes of elements are part of one that their watchers were told of, or are taken back before anybody looks.
  bool part_of_change = false;
  bool makes_structure = false;  ///< launches make a structure: they ask for none by the data that they are given
  struct OpenScope {
    std::uint64_t log = 0;    ///< ProfileLog::id
    std::uint32_t scope = 0;  ///< 0: none
  } profile = {};

  /// This thread's.
  static Context& here();
};

/// While it lives, a field of this thread's context has another value.
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

/// While it lives, this thread's work runs as if nothing were captured: what prepares memory that outlives the capture.
class OutsideCapture : Within<Capture*> {
 public:
  OutsideCapture() : Within(&Context::capture, nullptr) {}
};

/// Errors: Error(invalid_argument) while this thread captures: what was collected has not run.
void refuse_waits(const char* what = "the host waits for work or reads elements");

}  // namespace weft::detail
