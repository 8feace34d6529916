// Which trace wants gradients, and what keeps both traces of a function rounded alike.
#include "own_gradient.h"

#include <algorithm>

namespace weft::lib {

namespace {

// The number of a piece tells its place in the trace, so that a kernel traced again has the same ones. Functions that
// are traced in place have the numbers below. Pieces inside each other without an instruction between them are told
// apart by the last byte.
std::uint64_t next_piece(std::uint64_t before) {
  const std::uint64_t here = (std::uint64_t{1} << 40) + (tracing::Trace::current().module().insts.size() << 8);
  return before == ir::kRounded ? before : std::max(here, before + 1);
}

}  // namespace

bool tracing_adjoint() { return tracing::Trace::active() && tracing::Trace::current().adjoint(); }

OwnPiece::OwnPiece() : builder_(tracing::Trace::current().builder()), before_(builder_.rounding()) {
  builder_.set_rounding(next_piece(before_));
}

OwnPiece::~OwnPiece() { builder_.set_rounding(before_); }

}  // namespace weft::lib
