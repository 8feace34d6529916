// The context of each thread: the one thread-local variable of the runtime.
#include "context.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"

namespace weft::detail {

Context& Context::here() {
  static thread_local constinit Context context;
  return context;
}

void refuse_waits(const char* what) {
  if (const Context& context = Context::here(); context.capture)
    invalid("{} while {}: nothing of it has run yet", what, context.capturing);
}

}  // namespace weft::detail
