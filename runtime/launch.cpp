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
constexpr std::int64_t kMaxThreads = (1ll << 31) - 1;

/// What one kernel was compiled to, by device and by which of its arrays are strided.
struct KernelPrograms {
  struct Entry {
    std::uint64_t device;
    std::uint64_t strided;
    LoadedProgram* program;  // the device's: a kernel that is a global variable outlives the device
    std::weak_ptr<DeviceState> alive;
  };
  std::vector<Entry> entries;
};

std::string argument_name(std::size_t k) { return fmt::format("argument {}", k + 1); }

[[noreturn]] void refuse(const KernelCore& kernel, const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message, kernel.name(), kernel.loc());
}

LoadedProgram* compile(KernelCore& kernel, DeviceState& device, std::uint64_t strided) {
  std::vector<bool> layout(std::size_t(kernel.num_params()));
  for (std::size_t k = 0; k < layout.size(); ++k) layout[k] = strided >> k & 1;
  ir::Module module = kernel.trace(layout);
  module.block = std::min(module.block, device.device->info().max_block);
  const ir::Hash hash = ir::hash(module);

  std::lock_guard lock(device.mutex);
  // Kernels that are traced to the same IR share the program: a lambda in a function makes a new kernel each call.
  // Messages name the kernel and its lines, so only kernels made at one place share.
  std::unique_ptr<LoadedProgram>& known = device.programs[fmt::format("{} {} {}:{}", ir::to_string(hash), kernel.name(),
                                                                      kernel.loc().file, kernel.loc().line)];
  if (!known) {
    auto loaded = std::make_unique<LoadedProgram>();
    loaded->program = device.device->compile(module, hash);
    loaded->params = module.params;
    loaded->args_bytes = module.args_bytes;
    loaded->tid_rank = module.tid_rank;
    loaded->tid_offset = module.tid_offset;
    loaded->block = module.block;
    known = std::move(loaded);
  }
  return known.get();
}

LoadedProgram& program_for(KernelCore& kernel, DeviceState& device, std::uint64_t strided) {
  std::lock_guard lock(kernel.mutex);
  if (!kernel.programs) kernel.programs = std::make_shared<KernelPrograms>();
  auto& programs = *static_cast<KernelPrograms*>(kernel.programs.get());
  for (KernelPrograms::Entry& e : programs.entries)
    if (e.device == device.id && e.strided == strided) return *e.program;
  std::erase_if(programs.entries, [](const KernelPrograms::Entry& e) { return e.alive.expired(); });
  LoadedProgram* p = compile(kernel, device, strided);
  programs.entries.push_back({device.id, strided, p, device.weak_from_this()});
  return *p;
}

// The compact layout holds i32 sizes and needs the alignment that wide accesses count on.
bool needs_strided(const ArrayBase& a) {
  const std::uint32_t align = std::min(16u, a.element_bytes() & (~a.element_bytes() + 1));
  return !a.is_contiguous() || a.address() % align != 0 || a.size() > kMaxThreads;
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

// See trace::thread_coordinate: q = mul_hi(2 n, multiplier) >> shift.
void pack_extents(std::byte* block, const LoadedProgram& program, const Extent& threads) {
  for (int k = 1; k < int(program.tid_rank); ++k) {
    const std::uint32_t d = std::uint32_t(threads[k]);
    const int shift = std::bit_width(d - 1);  // ceil(log2 d)
    const std::uint64_t multiplier = ((1ull << (31 + shift)) + d - 1) / d;
    const std::uint32_t packed[] = {d, std::uint32_t(multiplier), std::uint32_t(shift)};
    std::memcpy(block + program.tid_offset + 12 * (k - 1), packed, 12);
  }
}

struct Checked {
  DeviceState* device = nullptr;
  std::uint64_t strided = 0;
};

Checked check_arrays(const KernelCore& kernel, std::span<const HostArg> args, bool any_threads) {
  Checked c;
  std::size_t first = 0;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ArrayBase* a = args[k].array;
    if (!a) continue;
    if (a->is_null()) refuse(kernel, fmt::format("{} is a null array", argument_name(k)));
    if (any_threads && a->size() == 0) refuse(kernel, fmt::format("{} is an empty array", argument_name(k)));
    DeviceState* device = a->storage()->device.get();
    if (!c.device) {
      c.device = device;
      first = k;
    } else if (c.device != device) {
      refuse(kernel, fmt::format("{} is on device {} but {} is on device {}", argument_name(first),
                                 c.device->device->info().name, argument_name(k), device->device->info().name));
    }
    for (int d = 0; d < a->ndim(); ++d)
      if (a->shape(d) > kMaxThreads)
        throw Error(ErrorKind::unsupported,
                    fmt::format("dimension {} of {} has {} elements; kernels count to 2^31 - 1", d, argument_name(k),
                                a->shape(d)),
                    kernel.name(), kernel.loc());
    if (needs_strided(*a)) c.strided |= 1ull << k;
  }
  return c;
}

std::int64_t count_threads(const KernelCore& kernel, const Extent& threads) {
  std::int64_t n = 1;
  bool none = false;
  for (int k = 0; k < threads.rank; ++k) {
    if (threads[k] < 0) refuse(kernel, fmt::format("dimension {} of the launch is negative ({})", k, threads[k]));
    none = none || threads[k] == 0;
  }
  for (int k = 0; k < threads.rank && !none; ++k)
    if (__builtin_mul_overflow(n, threads[k], &n) || n > kMaxThreads)
      throw Error(ErrorKind::unsupported, "a launch of 2^31 threads or more", kernel.name(), kernel.loc());
  return none ? 0 : n;
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
  const Checked checked = check_arrays(kernel, args, count > 0);
  StreamState* on = stream ? &state_of(*stream) : nullptr;
  if (on && checked.device && on->device != checked.device)
    refuse(kernel, fmt::format("the stream is on device {} but the arrays are on device {}",
                               on->device->device->info().name, checked.device->device->info().name));
  if (!on && !checked.device) refuse(kernel, "no argument is an array: launch on a stream to choose the device");
  if (!on) on = checked.device->default_stream;
  DeviceState& device = *on->device;

  LoadedProgram& program = program_for(kernel, device, checked.strided);
  if (program.tid_rank && int(program.tid_rank) != threads.rank)
    refuse(kernel, fmt::format("the kernel asks tid() for {} coordinate(s) but is launched over {} dimension(s)",
                               program.tid_rank, threads.rank));
  if (count == 0) return;

  // Blocks beyond the usual size are rare; the common one stays off the heap.
  std::byte small[512];
  std::vector<std::byte> large;
  std::byte* block = small;
  if (program.args_bytes > sizeof small) {
    large.resize(program.args_bytes);
    block = large.data();
  }
  const std::uint32_t n = std::uint32_t(count);
  std::memcpy(block, &n, 4);
  backend::MemoryRange ranges[kMaxParams];
  std::size_t num_ranges = 0;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Param& p = program.params[k];
    if (!args[k].array) {
      std::memcpy(block + p.offset, args[k].value, p.bytes);
      continue;
    }
    const ArrayBase& a = *args[k].array;
    pack_array(block, p, a);
    if (p.access == ir::Access::none) continue;
    a.storage()->order_before(*on, any(p.access, ir::Access::write | ir::Access::atomic));
    ranges[num_ranges++] = {a.address(), a.extent_bytes(), p.access};
  }
  pack_extents(block, program, threads);

  const std::uint32_t groups = (n + program.block - 1) / program.block;
  const std::uint32_t limit = device.device->info().max_groups;
  const std::uint32_t rows = (groups + limit - 1) / limit;  // as even as can be: the last row has few idle workgroups
  const backend::Grid grid{(groups + rows - 1) / rows, rows, 1};
  const backend::Ticket ticket = on->with([&](backend::Stream& s) {
    return s.launch(*program.program, grid, {block, program.args_bytes}, {ranges, num_ranges});
  });
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Access access = program.params[k].access;
    if (args[k].array && access != ir::Access::none)
      args[k].array->storage()->touched(*on, ticket, any(access, ir::Access::write | ir::Access::atomic));
  }
}

}  // namespace weft::detail
