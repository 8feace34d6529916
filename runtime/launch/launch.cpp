// Checks the arguments of a launch, and starts it.
#include "../launch.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../work/capture.h"
#include "../work/dispatch.h"
#include "../work/observe.h"
#include "kernel_programs.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kMax32 = (1ll << 31) - 1;

[[noreturn]] void refuse(const KernelCore& kernel, const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message, kernel.name(), kernel.loc());
}

// The compact layout holds i32 sizes, and wide accesses rely on its alignment.
bool needs_strided(const ArrayBase& a, std::int64_t size, const DeviceState& device) {
  return !a.is_contiguous() || (a.address() & (wide_alignment(a.element_bytes()) - 1)) != 0 ||
         size > device.max_threads;
}

struct Checked {
  DeviceState* device = nullptr;
  ir::Variant variant;
  bool huge = false;   // some dimension is beyond 32 bits
  bool empty = false;  // some array has no elements
};

Checked check_arrays(const KernelCore& kernel, std::span<const HostArg> args) {
  Checked c;
  std::size_t first = 0;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ArrayBase* a = args[k].array;
    if (!a) continue;
    if (a->is_null()) {
      if (!args[k].optional) refuse(kernel, fmt::format("{} is a null array", argument_name(args[k])));
      c.variant.absent |= 1ull << k;
      continue;
    }
    if (a->storage()->is_freed()) refuse(kernel, fmt::format("{} is an array that was freed", argument_name(args[k])));
    DeviceState* device = a->storage()->device.get();
    if (!c.device) {
      c.device = device;
      first = k;
    } else if (c.device != device) {
      refuse(kernel,
             fmt::format("{} is on device {} but {} is on device {}", argument_name(args[first]),
                         c.device->device->info().name, argument_name(args[k]), name_beside(*device, *c.device)));
    }
    std::int64_t size = 1;
    for (int d = 0; d < a->ndim(); ++d) {
      const std::int64_t n = a->shape(d);
      if (n > kMax32) c.huge = true;
      size *= n;
    }
    if (size == 0) c.empty = true;
    if (needs_strided(*a, size, *device)) c.variant.strided |= 1ull << k;
  }
  return c;
}

// A kernel that reads a size in 32 bits must not be given one that has more.
void check_sizes(const ir::Interface& i, std::span<const HostArg> args) {
  for (std::size_t k = 0; k < args.size(); ++k) {
    if (!args[k].array || args[k].array->is_null()) continue;
    for (int d = 0; d < args[k].array->ndim(); ++d) {
      if (args[k].array->shape(d) <= kMax32) continue;
      const std::uint32_t at = i.params[k].offset + 8 + 8 * std::uint32_t(d);
      for (const ir::NarrowShape& narrow : i.narrow_shapes)
        if (narrow.at == at || narrow.at == ir::kNone)
          throw Error(
              ErrorKind::unsupported,
              fmt::format("dimension {} of {} has {} elements, and the kernel asks for a size by shape(), which "
                          "counts to 2^31 - 1: use shape64()",
                          d, argument_name(args[k]), args[k].array->shape(d)),
              i.name, narrow.loc);
    }
  }
}

std::int64_t count_threads(const KernelCore& kernel, const Extent& threads) {
  std::int64_t n = 1;
  bool none = false;
  for (int k = 0; k < threads.rank; ++k) {
    if (threads[k] < 0) refuse(kernel, fmt::format("dimension {} of the launch is negative ({})", k, threads[k]));
    none = none || threads[k] == 0;
  }
  for (int k = 0; k < threads.rank && !none; ++k)
    if (__builtin_mul_overflow(n, threads[k], &n))
      throw Error(ErrorKind::unsupported, "a launch of 2^63 threads or more", kernel.name(), kernel.loc());
  return none ? 0 : n;
}

}  // namespace

void value_out_of_range() { invalid("the integer is out of the range of the kernel's parameter"); }

void refuse_argument(const KernelCore& kernel, int argument, const Error& why) {
  if (!why.kernel().empty()) throw why;  // the error is that of a launch inside kernel_argument()
  throw Error(why.kind(), fmt::format("argument {}: {}", argument, why.message()), kernel.name(), kernel.loc());
}

void refuse_empty_arrays(const KernelCore& kernel, const ir::Interface& call, std::span<const HostArg> args) {
  for (std::size_t k = 0; k < args.size(); ++k)
    if (args[k].array && args[k].array->size() == 0 && call.params[k].access != ir::Access::none &&
        call.params[k].kind != ir::Param::Kind::absent)
      refuse(kernel, fmt::format("{} is an empty array", argument_name(args[k])));
}

ir::Variant variant_of(const KernelCore& kernel, std::span<const HostArg> args, DeviceState& device) {
  Checked checked = check_arrays(kernel, args);
  if (checked.device && checked.device != &device)
    refuse(kernel, fmt::format("a graph on device {} is given arrays on device {}", device.device->info().name,
                               name_beside(*checked.device, device)));
  checked.variant.debug = kernel.debug();
  return checked.variant;
}

void launch(KernelCore& kernel, const Stream* stream, const Threads& threads, std::span<const HostArg> args,
            const GivenStructures* given) {
  Capture* const capture = Capture::current();
  if (tracing::Trace::active())
    refuse(kernel, "it is launched while another kernel is traced: launch it from the host");
  const std::int64_t count = count_threads(kernel, threads);
  Checked checked = check_arrays(kernel, args);
  StreamState* on = stream ? &state_of(*stream) : nullptr;
  if (on && checked.device && on->device != checked.device)
    refuse(kernel, fmt::format("the stream is on device {} but the arrays are on device {}",
                               on->device->device->info().name, name_beside(*checked.device, *on->device)));
  if (!on && !checked.device) refuse(kernel, "no argument is an array: launch on a stream to choose the device");
  if (!on) on = &stream_of_thread(*checked.device);
  if (capture) try {
      on = &capture->stream_for(*on->device);
    } catch (const Error& e) {
      refuse(kernel, e.message());
    }
  DeviceState& device = *on->device;
  if (device.left_behind.load(std::memory_order_relaxed)) [[unlikely]]
    device.device->check_alive();

  checked.variant.wide = count > device.max_threads;
  checked.variant.debug = kernel.debug();
  LoadedProgram& program = program_for(kernel, device, checked.variant);
  const ir::Interface& call = *program.call;
  if (call.tid_rank && int(call.tid_rank) != threads.rank)
    refuse(kernel, fmt::format("the kernel asks tid() for {} coordinate(s) but is launched over {} dimension(s)",
                               call.tid_rank, threads.rank));
  if (checked.huge) check_sizes(call, args);
  if (count == 0) {
    if (on->capture) on->capture->launched_nothing();
    return;
  }
  if (checked.empty) refuse_empty_arrays(kernel, call, args);
  if (program.together && count % call.block != 0)
    refuse(kernel, fmt::format("the kernel's threads work together in workgroups of {}, and {} threads are no whole "
                               "number of those: launch {} and let the kernel guard what it accesses",
                               call.block, count, (count + call.block - 1) / call.block * call.block));
  if (call.fixed_block && call.wide)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch of {} threads of a kernel that works in workgroups; those count to {}", count,
                            device.max_threads),
                kernel.name(), kernel.loc());
  Recorder* const r = recorder();
  const std::span<const StructureUse> uses = given ? given->uses() : std::span<const StructureUse>();
  const Dispatch work{
      .program = program,
      .on = *on,
      .threads = threads,
      .count = count,
      .args = args,
      .steps = steps_per_dispatch(device, call, threads, count),
      .uses = uses,
      .moves_elements = kernel.moves_elements,
      .launched = threads.loc,
  };
  const CheckedLaunch about{kernel, program, checked.variant, threads, count, args, *on, uses};
  if (r) r->hear({.kind = OperationKind::launch, .launch = &about});
  dispatch(work);
  if (r) r->launched();
}

}  // namespace weft::detail
