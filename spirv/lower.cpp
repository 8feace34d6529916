// The order in which a kernel is lowered.
#include "lower.h"

#include "../frontend/passes/passes.h"
#include "../frontend/real/lower_real.h"

namespace weft::spirv {

namespace {

/// Mesa's CPU driver has room for 80 conditions on a thread's stack, and for 80 loops. The entry point takes one,
/// atomic operations that are built from others take up to two, and a chain of launches two more.
constexpr unsigned kMaxNesting = 72;

}  // namespace

std::optional<ir::Module> lower(const ir::Module& kernel) {
  std::optional<ir::Module> lowered = lib::lower_real(kernel, {ir::Type::f64});
  if (std::optional<ir::Module> flat = ir::limit_nesting(lowered ? *lowered : kernel, kMaxNesting)) return flat;
  return lowered;
}

}  // namespace weft::spirv
