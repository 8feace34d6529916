// Which trace wants gradients.
#include "own_gradient.h"

namespace weft::lib {

bool tracing_adjoint() { return tracing::Trace::active() && tracing::Trace::current().adjoint(); }

}  // namespace weft::lib
