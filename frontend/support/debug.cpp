// The debug mode of the process.
#include "debug.h"

#include <atomic>

#include "platform.h"

namespace weft {

namespace {
std::atomic<Debug>& global_debug() {
  static std::atomic<Debug> mode = [] {
    for (const char* nan : {"nan", "NaN", "NAN"})
      if (platform::environment("WEFT_DEBUG") == nan) return Debug::all();
    return Debug(platform::environment_flag("WEFT_DEBUG", false));
  }();
  return mode;
}
}  // namespace

void set_debug(Debug debug) { global_debug() = debug; }
Debug debug_mode() { return global_debug(); }

}  // namespace weft
