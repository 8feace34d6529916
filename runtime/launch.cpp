// Checks of a launch, the packing of its arguments, and the programs that a kernel was compiled to.
#include "launch.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "../frontend/support/error.h"
#include "state.h"

namespace weft::detail {

namespace {

constexpr std::size_t kMaxParams = 64;
constexpr std::int64_t kMax32 = (1ll << 31) - 1;

/// A kernel's hold on a program. The program is the device's: a kernel that is a global variable outlives the device.
struct ProgramUse {
  std::uint64_t device;
  ir::Variant variant;
  LoadedProgram* program;
  std::weak_ptr<DeviceState> alive;

  ProgramUse(DeviceState& device, const ir::Variant& variant, LoadedProgram* program)
      : device(device.id), variant(variant), program(program), alive(device.weak_from_this()) {}
  ProgramUse(const ProgramUse&) = delete;
  ~ProgramUse() {
    if (const auto state = alive.lock()) state->programs.give_back(program);
  }
};

/// What one kernel was compiled to.
struct KernelPrograms {
  std::vector<std::unique_ptr<ProgramUse>> uses;
};

// As the module's parameters are called, see Trace::begin_part.
std::string argument_name(const HostArg& arg) {
  std::string name = fmt::format("argument {}", arg.argument);
  if (arg.field_name) name += arg.field_name(arg.field);
  return arg.part == 0 ? name : fmt::format("{}, indices of dimension {}", name, arg.part - 1);
}

[[noreturn]] void refuse(const KernelCore& kernel, const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message, kernel.name(), kernel.loc());
}

LoadedProgram* compile(KernelCore& kernel, DeviceState& device, const ir::Variant& variant) {
  const std::uint32_t max_block = device.device->info().max_block;
  ir::Module module = kernel.trace(variant, max_block);
  // Whoever asks for larger workgroups and depends on it is refused by the device.
  if (!module.fixed_block) module.block = std::min(module.block, max_block);
  const ir::Hash hash = ir::hash(module);

  // Messages name the kernel and its lines, so only kernels made at one place share.
  const std::string key =
      fmt::format("{} {} {}:{}", ir::to_string(hash), kernel.name(), kernel.loc().file, kernel.loc().line);
  return device.programs.take(key, [&] {
    auto loaded = std::make_unique<LoadedProgram>();
    loaded->program = device.device->compile(module, hash);
    loaded->call = std::make_shared<ir::Interface>(module.as_interface());
    loaded->together = ir::group_use(module).together;
    return loaded;
  });
}

LoadedProgram& program_for(KernelCore& kernel, DeviceState& device, const ir::Variant& variant) {
  std::lock_guard lock(kernel.mutex);
  if (!kernel.programs) kernel.programs = std::make_shared<KernelPrograms>();
  auto& uses = static_cast<KernelPrograms*>(kernel.programs.get())->uses;
  for (const auto& use : uses)
    if (use->device == device.id && use->variant == variant) return *use->program;
  std::erase_if(uses, [](const auto& use) { return use->alive.expired(); });
  LoadedProgram* p = compile(kernel, device, variant);
  uses.push_back(std::make_unique<ProgramUse>(device, variant, p));
  return *p;
}

// The compact layout holds i32 sizes and needs the alignment that wide accesses count on.
bool needs_strided(const ArrayBase& a) {
  return !a.is_contiguous() || a.address() % wide_alignment(a.element_bytes()) != 0 ||
         a.size() > a.storage()->device->max_threads;
}

void pack_array(std::byte* block, const ir::Param& p, const ArrayBase& a) {
  std::byte* at = block + p.offset;
  const std::uint64_t address = a.address();
  std::memcpy(at, &address, 8);
  at += 8;
  if (!p.strided) {
    for (int k = 0; k < p.ndim; ++k, at += 4) {
      const std::int32_t n = std::int32_t(a.shape(k));
      std::memcpy(at, &n, 4);
    }
    return;
  }
  for (int k = 0; k < p.ndim; ++k, at += 8) {
    const std::int64_t n = a.shape(k);
    std::memcpy(at, &n, 8);
  }
  for (int k = 0; k < p.ndim; ++k, at += 8) {
    const std::int64_t n = a.stride(k);
    std::memcpy(at, &n, 8);
  }
}

// See tracing::thread_coordinate: q = mul_hi(2 n, multiplier) >> shift.
void pack_extents(std::byte* block, const ir::Interface& i, const Extent& threads) {
  std::byte* at = block + i.tid_offset + (i.wide ? 8 : 0);
  for (int k = 1; k < int(i.tid_rank); ++k, at += 12) {
    const std::uint32_t d = std::uint32_t(threads[k]);
    const int shift = std::bit_width(d - 1);  // ceil(log2 d)
    const std::uint64_t multiplier = ((1ull << (31 + shift)) + d - 1) / d;
    const std::uint32_t packed[] = {d, std::uint32_t(multiplier), std::uint32_t(shift)};
    std::memcpy(at, packed, 12);
  }
}

struct Checked {
  DeviceState* device = nullptr;
  ir::Variant variant;
  bool huge = false;  // some dimension is beyond 32 bits
};

Checked check_arrays(const KernelCore& kernel, std::span<const HostArg> args, bool any_threads) {
  Checked c;
  std::size_t first = 0;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ArrayBase* a = args[k].array;
    if (!a) continue;
    if (a->is_null() && args[k].optional) {
      c.variant.absent |= 1ull << k;
      continue;
    }
    if (a->is_null()) refuse(kernel, fmt::format("{} is a null array", argument_name(args[k])));
    if (any_threads && a->size() == 0) refuse(kernel, fmt::format("{} is an empty array", argument_name(args[k])));
    DeviceState* device = a->storage()->device.get();
    if (!c.device) {
      c.device = device;
      first = k;
    } else if (c.device != device) {
      refuse(kernel, fmt::format("{} is on device {} but {} is on device {}", argument_name(args[first]),
                                 c.device->device->info().name, argument_name(args[k]), device->device->info().name));
    }
    for (int d = 0; d < a->ndim(); ++d) c.huge = c.huge || a->shape(d) > kMax32;
    if (needs_strided(*a)) c.variant.strided |= 1ull << k;
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

// How many steps of the first dimension (threads, when the kernel asks for no coordinates) one dispatch takes.
std::int64_t steps_per_dispatch(const DeviceState& device, const ir::Interface& i, const Extent& threads,
                                std::int64_t count) {
  if (!i.wide || i.tid_rank == 0) return std::min(count, device.max_threads);
  if (threads[0] > kMax32 && i.narrow_tid)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch over {} threads along dimension 0, where the kernel asks for tid(), which counts "
                            "to 2^31 - 1: use tid64()",
                            threads[0]),
                i.name, i.narrow_tid);
  const std::int64_t rest = count / threads[0];
  if (rest > device.max_threads)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch over {} threads in the dimensions behind the first; {} are possible", rest,
                            device.max_threads),
                i.name, i.loc);
  return std::min(threads[0], device.max_threads / rest);
}

}  // namespace

void value_out_of_range() {
  throw Error(ErrorKind::invalid_argument,
              "an integer argument of a launch is out of the range of the kernel's parameter");
}

void launch(KernelCore& kernel, const Stream* stream, const Extent& threads, std::span<const HostArg> args) {
  if (Trace::active()) refuse(kernel, "it is launched while another kernel is traced: launch it from the host");
  if (args.size() > kMaxParams)
    throw Error(ErrorKind::unsupported, fmt::format("more than {} parameters", kMaxParams), kernel.name(),
                kernel.loc());
  const std::int64_t count = count_threads(kernel, threads);
  Checked checked = check_arrays(kernel, args, count > 0);
  StreamState* on = stream ? &state_of(*stream) : nullptr;
  if (on && checked.device && on->device != checked.device)
    refuse(kernel, fmt::format("the stream is on device {} but the arrays are on device {}",
                               on->device->device->info().name, checked.device->device->info().name));
  if (!on && !checked.device) refuse(kernel, "no argument is an array: launch on a stream to choose the device");
  if (!on) on = checked.device->default_stream;
  DeviceState& device = *on->device;

  checked.variant.wide = count > device.max_threads;
  checked.variant.debug = kernel.debug();
  LoadedProgram& program = program_for(kernel, device, checked.variant);
  const ir::Interface& call = *program.call;
  if (call.tid_rank && int(call.tid_rank) != threads.rank)
    refuse(kernel, fmt::format("the kernel asks tid() for {} coordinate(s) but is launched over {} dimension(s)",
                               call.tid_rank, threads.rank));
  if (checked.huge) check_sizes(call, args);
  if (count == 0) return;
  if (program.together && count % call.block != 0)
    refuse(kernel, fmt::format("the kernel's threads work together in workgroups of {}, and {} threads are no whole "
                               "number of those: launch {} and let the kernel guard what it accesses",
                               call.block, count, (count + call.block - 1) / call.block * call.block));
  if (call.fixed_block && call.wide)
    throw Error(ErrorKind::unsupported,
                fmt::format("a launch of {} threads of a kernel that works in workgroups; those count to {}", count,
                            device.max_threads),
                kernel.name(), kernel.loc());
  const std::int64_t steps = steps_per_dispatch(device, call, threads, count);

  // Blocks beyond the usual size are rare; the common one stays off the heap.
  std::byte small[512];
  std::vector<std::byte> large;
  std::byte* block = small;
  if (call.args_bytes > sizeof small) {
    large.resize(call.args_bytes);
    block = large.data();
  }
  // The arrays, the report buffer, and what the elements of arrays hold.
  backend::MemoryRange ranges[kMaxParams + 2];
  std::size_t num_ranges = 0;
  References held;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Param& p = call.params[k];
    if (!args[k].array) {
      std::memcpy(block + p.offset, args[k].value, p.bytes);
      continue;
    }
    if (p.kind == ir::Param::Kind::absent) continue;
    const ArrayBase& a = *args[k].array;
    pack_array(block, p, a);
    if (p.access == ir::Access::none) continue;
    a.storage()->order_before(*on, any(p.access, ir::Access::write | ir::Access::atomic));
    ranges[num_ranges++] = {a.address(), a.extent_bytes(), p.access};
    if (a.storage()->has_references()) a.storage()->reach(held);
  }
  // What a kernel does to arrays that it finds in structs is not known: it may read and write all of them.
  constexpr ir::Access kAnything = ir::Access::read | ir::Access::write | ir::Access::atomic;
  for (const std::shared_ptr<Storage>& s : held) s->order_before(*on, true);
  if (num_ranges + held.size() < std::size(ranges)) {
    for (const std::shared_ptr<Storage>& s : held) ranges[num_ranges++] = {s->allocation.address, s->bytes, kAnything};
  } else {
    ranges[num_ranges++] = {0, ~0ull, kAnything};
  }
  pack_extents(block, call, threads);

  const bool by_rows = call.tid_rank > 0;
  const std::int64_t all = by_rows ? threads[0] : count, rest = count / all;
  backend::Ticket ticket = 0;
  for (std::int64_t start = 0; start < all; start += steps) {
    const std::uint32_t n = std::uint32_t(std::min(steps, all - start) * rest);
    std::memcpy(block, &n, 4);
    if (call.wide && by_rows) std::memcpy(block + call.tid_offset, &start, 8);
    const std::uint32_t groups = (n + call.block - 1) / call.block;
    const std::uint32_t limit = device.device->info().max_groups;
    const std::uint32_t rows = (groups + limit - 1) / limit;  // as even as can be: the last row has few idle workgroups
    const backend::Grid grid{(groups + rows - 1) / rows, rows, 1};
    ticket = on->with([&](backend::Stream& s) {
      const auto launched = [&](std::size_t n) {
        return s.launch(*program.program, grid, {block, call.args_bytes}, {ranges, n});
      };
      if (call.report_offset == 0) return launched(num_ranges);
      ReportBuffer& reports = on->report_buffer();
      const ReportBuffer::Launch about{program.call, {threads.n.data(), std::size_t(threads.rank)}, start * rest};
      ranges[num_ranges] = reports.begin(s, about, block + call.report_offset);
      const backend::Ticket t = launched(num_ranges + 1);
      reports.recorded(t);
      return t;
    });
  }
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Access access = call.params[k].access;
    if (args[k].array && access != ir::Access::none)
      args[k].array->storage()->touched(*on, ticket, any(access, ir::Access::write | ir::Access::atomic));
  }
  for (const std::shared_ptr<Storage>& s : held) s->touched(*on, ticket, true);
}

}  // namespace weft::detail
