// The launch of a kernel's adjoint by itself, with gradients that the caller gives. Internal to the runtime.
#pragma once
#include <span>

#include "../../frontend/types/layout.h"
#include "../detail/host_arg.h"
#include "../detail/sizes.h"

namespace weft {

class ArrayBase;
class Stream;

namespace detail {

class KernelCore;

/// An array of gradients for one parameter of a kernel.
struct GivenGradient {
  const ArrayBase* array = nullptr;  ///< null: none is given
  std::span<const Leaf> leaves;      ///< the scalars of an element of the argument, in static memory
};

/// Launches a kernel's adjoint: for arrays that the kernel writes, the gradients are those by which the way back
/// begins, and they stay; to the gradients of all others it adds. \param args       as of a launch: arrays hold what
/// the kernel reads; they stay as they are \param gradients  one for each of args. Where none is given, that of the
/// array's gradient storage serves, if it has
///                   one; a written array without either counts as one that nothing depends on
/// Errors: as a recorded launch and Tape::backward(); Error(invalid_argument) for a gradient of another shape or
/// device, and where no written array has a gradient. Cost: the launch of the kernel itself and of its adjoint, and
/// copies of the arrays that are written or given a gradient.
void launch_adjoint(KernelCore& kernel, const Stream* stream, const Threads& threads, std::span<const HostArg> args,
                    std::span<const GivenGradient> gradients);

}  // namespace detail
}  // namespace weft
