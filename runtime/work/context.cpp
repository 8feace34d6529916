// The context of each thread: the one thread-local variable of the runtime.
#include "context.h"

namespace weft::detail {

Context& Context::here() {
  static thread_local constinit Context context;
  return context;
}

}  // namespace weft::detail
