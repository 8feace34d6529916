// Launches adjoints by themselves: by a tape of one launch, on copies of the arrays whose gradients the caller gives.
#include "adjoint_launch.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "../../frontend/kernels/names.h"
#include "../../frontend/support/error.h"
#include "../launch.h"
#include "../launch/kernel_programs.h"
#include "../work/dispatch.h"
#include "../work/observe.h"
#include "gradient.h"
#include "tape_core.h"

namespace weft::detail {

namespace {

/// Refuses a gradient that does not belong to the argument.
void check(const KernelCore& kernel, const HostArg& arg, const ArrayBase& gradient) {
  const ArrayBase& array = *arg.array;
  const auto refuse = [&](const char* why) {
    throw Error(ErrorKind::invalid_argument, fmt::format("the gradient of {} {}", argument_name(arg), why),
                kernel.name(), kernel.loc());
  };
  if (gradient.is_null()) refuse("is a null array");
  if (gradient.ndim() != array.ndim() || gradient.element_bytes() != array.element_bytes())
    refuse("is of another type or number of dimensions");
  for (int k = 0; k < array.ndim(); ++k)
    if (gradient.shape(k) != array.shape(k)) refuse("has another shape");
  if (!(gradient.device() == array.device())) refuse("is on another device");
}

/// The device of the first array.
DeviceState* device_of(std::span<const HostArg> args) {
  for (const HostArg& arg : args)
    if (arg.array && !arg.array->is_null()) return arg.array->storage()->device.get();
  return nullptr;
}

}  // namespace

void launch_adjoint(KernelCore& kernel, const Stream* stream, const Threads& threads, std::span<const HostArg> args,
                    std::span<const GivenGradient> gradients) {
  DeviceState* const device = device_of(args);
  if (!device)
    throw Error(ErrorKind::invalid_argument, "the adjoint of a launch without arrays", kernel.name(), kernel.loc());
  const HeardBy nobody(nullptr);
  std::optional<StreamScope> scope;
  if (stream) scope.emplace(*stream);
  const LoadedProgram& program = program_for(kernel, *device, variant_of(kernel, args, *device));
  const std::vector<ir::Param>& params = program.call->params;
  const auto is_written = [&](std::size_t k) { return any(params[k].access, ir::kChanges); };

  // The arrays that the tape works on: gradients of copies are apart from the storage of the caller's arrays.
  std::vector<View> copies(args.size());
  std::vector<HostArg> given(args.begin(), args.end());
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!args[k].array || args[k].array->is_null()) continue;
    if (gradients[k].array) check(kernel, args[k], *gradients[k].array);
    if (!gradients[k].array && !is_written(k)) continue;
    // What is one array for the kernel stays one.
    for (std::size_t l = 0; l < k && copies[k].is_null(); ++l)
      if (!copies[l].is_null() && same_elements(*args[l].array, *args[k].array)) copies[k] = copies[l];
    if (copies[k].is_null()) {
      copies[k] = View::like(*args[k].array);
      copies[k].copy(*args[k].array);
    }
    if (gradients[k].array && holds_real(gradients[k].leaves)) copies[k].make_gradient(gradients[k].leaves);
    given[k].array = &copies[k];
  }
  TapeCore tape{TapeOptions{}};
  {
    const HeardBy recording(&tape);
    launch(kernel, nullptr, threads, given);
  }
  std::vector<Seed> seeds;
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (copies[k].is_null() || !is_written(k)) continue;
    if (gradients[k].array) {
      seeds.emplace_back(copies[k], *gradients[k].array, gradients[k].leaves);
    } else if (const auto own = args[k].array->storage()->gradient()) {
      seeds.emplace_back(copies[k], own->view(*args[k].array, *args[k].array->storage()), own->leaves);
    }
  }
  if (seeds.empty())
    throw Error(ErrorKind::invalid_argument,
                "the adjoint of a launch is asked for, and no array that the kernel writes has a gradient",
                kernel.name(), kernel.loc());
  if (tape.size() == 0) return;  // no gradient passes
  tape.backward(seeds);
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (copies[k].is_null() || is_written(k) || !copies[k].has_grad()) continue;
    bool added = false;
    for (std::size_t l = 0; l < k; ++l) added = added || copies[l].storage() == copies[k].storage();
    if (!added) accumulate(*gradients[k].array, tape.gradient(copies[k]), gradients[k].leaves);
  }
}

}  // namespace weft::detail
