// Packing of arguments, hazards and dispatches of a launch.
#include "dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "../frontend/support/error.h"
#include "capture.h"
#include "observe.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kMax32 = (1ll << 31) - 1;

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

// Returns the array of the argument that the kernel accesses, or null.
inline const ArrayBase* pack_argument(std::byte* block, const ir::Param& p, const HostArg& arg) {
  if (!arg.array) {
    // Most values are of 4 bytes, which take one move where a length that is not known takes a call.
    if (p.bytes == 4)
      std::memcpy(block + p.offset, arg.value, 4);
    else
      std::memcpy(block + p.offset, arg.value, p.bytes);
    return nullptr;
  }
  if (p.kind == ir::Param::Kind::absent) return nullptr;
  pack_array(block, p, *arg.array);
  return p.access == ir::Access::none ? nullptr : arg.array;
}

// Room for things that are written before they are read: to set all ranges would cost each launch some 50 ns. A few, as
// nearly all launches have, stay off the heap.
template <class T, std::size_t few>
class Room {
 public:
  explicit Room(std::size_t size) {
    if (size > few) [[unlikely]] {
      many_ = std::make_unique_for_overwrite<T[]>(size);
      first_ = many_.get();
    }
  }
  Room(const Room&) = delete;
  T* data() { return first_; }

 private:
  alignas(T) std::byte few_[few * sizeof(T)];
  std::unique_ptr<T[]> many_;
  T* first_ = std::launder(reinterpret_cast<T*>(few_));
};

// What a launch works on beside its arguments, found by them.
struct Beyond {
  References held, held_read;  ///< by elements, which change what these hold, or do not
  References by_handles;
};

thread_local bool t_moves_elements = false;

}  // namespace

MovesElements::MovesElements() : before_(std::exchange(t_moves_elements, true)) {}
MovesElements::~MovesElements() { t_moves_elements = before_; }
bool MovesElements::now() { return t_moves_elements; }

// As the module's parameters are called, see Trace::begin_part.
std::string argument_name(const HostArg& arg) {
  std::string name = fmt::format("argument {}", arg.argument);
  if (arg.field_name) name += arg.field_name(arg.field);
  return arg.part == 0 ? name : fmt::format("{}, indices of dimension {}", name, arg.part - 1);
}

PackedLaunch pack(const ir::Interface& call, std::span<const HostArg> args, const Extent& threads, std::int64_t count) {
  PackedLaunch packed;
  packed.block.resize(call.args_bytes);
  for (std::size_t k = 0; k < args.size(); ++k)
    if (const ArrayBase* a = pack_argument(packed.block.data(), call.params[k], args[k]))
      packed.arrays.push_back({a, k, call.params[k].access});
  pack_extents(packed.block.data(), call, threads);
  const std::uint32_t n = std::uint32_t(count);
  std::memcpy(packed.block.data(), &n, 4);
  return packed;
}

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

void dispatch(const Dispatch& work) {
  const LoadedProgram& program = work.program;
  const ir::Interface& call = *program.call;
  const std::span<const HostArg> args = work.args;
  const Extent& threads = work.threads;
  StreamState* const on = &work.on;
  DeviceState& device = *on->device;
  Room<std::byte, 512> block_room(call.args_bytes);
  std::byte* const block = block_room.data();
  // The arrays that the kernel accesses, gathered once: each is looked at several times.
  struct Use {
    Storage* storage;
    std::size_t argument;
    bool changes;
  };
  Room<Use, 64> use_room(args.size());
  Use* const first_use = use_room.data();
  // Those arrays, the report buffer, what the elements of arrays hold (changed, or read), what is behind handles, and
  // what else is read.
  constexpr std::size_t kFew = 69;
  const std::size_t max_ranges = std::max(args.size() + 5, kFew);
  Room<backend::MemoryRange, kFew> range_room(max_ranges);
  backend::MemoryRange* const ranges = range_room.data();
  if (call.report_offset != 0 && !on->capture) on->leave_graph();
  std::vector<Capture::Stale> stale_before;
  if (on->capture) stale_before = on->capture->structures.changed;
  const auto refuse_freed = [&](const References& list, const char* message) {
    for (const std::shared_ptr<Storage>& s : list)
      if (s->is_freed()) throw Error(ErrorKind::invalid_argument, message, call.name, call.loc);
  };
  // What refuses the launch does so before others are told that elements change: arrays that were freed, and those that
  // a recording works on which is not submitted.
  // What a kernel does through an address that it has loaded is noted for all of its arrays (mark_accesses): it changes
  // nothing that the elements of those hold which it does not change.
  std::optional<Beyond> beyond;
  if (call.by_handles) beyond.emplace();
  const std::span<const ir::Param> params(call.params);
  std::size_t num_uses = 0;
  for (std::size_t k = 0; k < args.size(); ++k) {
    const ir::Param& p = params[k];
    const ArrayBase* const a = pack_argument(block, p, args[k]);
    if (!a) continue;
    Storage& storage = *a->storage();
    storage.check_present();
    const bool changes = any(p.access, ir::kChanges);
    first_use[num_uses] = {&storage, k, changes};
    ranges[num_uses] = {a->address(), a->extent_bytes(), p.access};
    ++num_uses;
    if (!storage.holds_arrays()) continue;
    if (!beyond) beyond.emplace();
    storage.reach(changes && !t_moves_elements ? beyond->held : beyond->held_read);
  }
  const std::span<const Use> uses(first_use, num_uses);
  std::size_t num_ranges = num_uses;
  pack_extents(block, call, threads);
  const auto in_kernel = [&](const auto& f, const auto& message) {
    try {
      return f();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::invalid_argument || !e.kernel().empty()) throw;
      throw Error(e.kind(), message(e.message()), call.name, call.loc);
    }
  };
  const auto order = [&](Storage& s, bool writes, const auto& name) {
    in_kernel([&] { s.order_before(*on, writes); },
              [&](const std::string& why) { return fmt::format("{}: {}", name(), why); });
  };
  const auto as_it_is = [](const std::string& why) { return why; };
  const auto in_elements = [] { return "what elements of its arguments hold"; };
  const auto behind_handles = [] { return "what it finds by handles"; };
  if (beyond) {
    auto& [held, held_read, by_handles] = *beyond;
    if (!held.empty()) std::erase_if(held_read, [&](const auto& s) { return std::ranges::binary_search(held, s); });
    for (const References* list : {&held, &held_read})
      refuse_freed(*list, "an array was freed that the elements of its arguments may hold: assign all of those anew");
  }
  // Otherwise there is nothing to come before it, or each launch of the graph is ordered; that the arrays are there was
  // seen above.
  if (!on->capture && device.several_streams.load(std::memory_order_relaxed))
    for (const Use& use : uses) order(*use.storage, use.changes, [&] { return argument_name(args[use.argument]); });
  if (beyond) {
    for (const std::shared_ptr<Storage>& s : beyond->held) order(*s, true, in_elements);
    for (const std::shared_ptr<Storage>& s : beyond->held_read) order(*s, false, in_elements);
    if (call.by_handles) {
      beyond->by_handles = in_kernel([&] { return device.handles.all(*on); }, as_it_is);
      refuse_freed(beyond->by_handles,
                   "an array was freed that a structure stands on which kernels find by its handle");
      for (const std::shared_ptr<Storage>& s : beyond->by_handles) order(*s, false, behind_handles);
    }
  }
  for (const Use& use : uses)
    if (use.changes)
      before_write(*args[use.argument].array, *on,
                   {.by = call.name.c_str(), .argument = params[use.argument].name.c_str()});
  // Room for the report buffer, and for one range that stands for many.
  using Memory = std::span<const std::shared_ptr<Storage>>;
  const auto add_ranges = [&](Memory list, ir::Access access, std::size_t room) {
    // By the time a graph is launched elements and handles may refer to other memory.
    if (num_ranges + list.size() + room <= max_ranges && !on->capture) {
      for (const std::shared_ptr<Storage>& s : list) ranges[num_ranges++] = {s->allocation.address, s->bytes, access};
    } else {
      ranges[num_ranges++] = {0, ~0ull, access};
    }
  };
  if (beyond) {
    for (const std::shared_ptr<Storage>& s : beyond->held)
      if (s->bytes)
        before_write(View(s, s->allocation.address, std::int64_t(s->bytes), 1), *on, {.by = call.name.c_str()});
    // Which of them a kernel changes is not known: it may read and write all.
    constexpr ir::Access kAnything = ir::Access::read | ir::Access::write | ir::Access::atomic;
    if (!beyond->held.empty()) add_ranges(beyond->held, kAnything, 4);
    if (!beyond->held_read.empty()) add_ranges(beyond->held_read, ir::Access::read, 3);
    if (call.by_handles) {
      // Where arguments change what a mesh is of, that is stale by now.
      in_kernel([&] { device.handles.refuse_stale(*on); }, as_it_is);
      add_ranges(beyond->by_handles, ir::Access::read, 2);
    }
  }

  for (const std::shared_ptr<Storage>& s : work.reads) s->order_before(*on, false);
  if (!work.reads.empty()) add_ranges(work.reads, ir::Access::read, 1);

  const bool by_rows = call.tid_rank > 0;
  const std::int64_t all = by_rows ? threads[0] : work.count, rest = work.count / all;
  backend::Ticket ticket = 0;
  std::size_t dispatches = 0;
  const auto record = [&](std::int64_t start, std::int64_t first, std::uint32_t n) {
    std::memcpy(block, &n, 4);
    if (call.wide && by_rows) std::memcpy(block + call.tid_offset, &start, 8);
    if (work.first_thread < args.size()) {
      const std::uint32_t number = std::uint32_t(first);
      std::memcpy(block + call.params[work.first_thread].offset, &number, 4);
    }
    const std::uint32_t groups = (n + call.block - 1) / call.block;
    const std::uint32_t limit = device.device->info().max_groups;
    // As even as can be: the last row has few idle workgroups. Divisions would cost as much as much else here.
    const std::uint32_t rows = groups <= limit ? 1 : (groups + limit - 1) / limit;
    const backend::Grid grid{rows == 1 ? groups : (groups + rows - 1) / rows, rows, 1};
    return on->with([&](backend::Stream& s) {
      const auto launched = [&](std::size_t n) {
        const auto launch = [&](const backend::Grid& part) {
          return s.launch(*program.program, part, {block, call.args_bytes}, {ranges, n});
        };
        const double budget = device.dispatch_budget.load(std::memory_order_relaxed);
        if (budget == 0 || on->capture) [[likely]]
          return launch(grid);
        return on->pacer().launch(s, program.pace, {groups, call.block, limit, budget}, grid, launch);
      };
      if (call.report_offset == 0) return launched(num_ranges);
      ReportBuffer& reports = on->report_buffer(s);
      const ReportBuffer::Launch about{
          program.call, {threads.n.data(), std::size_t(threads.rank)}, start * rest + first, work.launched};
      ranges[num_ranges] = reports.begin(s, about, block + call.report_offset);
      const backend::Ticket t = launched(num_ranges + 1);
      if (on->capture)
        on->capture->operations().list.back().report_at = call.report_offset;
      else
        reports.recorded(t);
      return t;
    });
  };
  for (std::int64_t start = 0; start < all; start += work.steps) {
    if (start > 0 && work.between) work.between();
    const std::int64_t n = std::min(work.steps, all - start) * rest;
    for (std::int64_t first = 0; first < n; first += std::min(n, work.lanes), ++dispatches)
      ticket = record(start, first, std::uint32_t(std::min(n - first, work.lanes)));
  }
  const auto touched = [&](Memory list, bool changes) {
    for (const std::shared_ptr<Storage>& s : list) s->touched(*on, ticket, changes);
  };
  for (const Use& use : uses) use.storage->touched(*on, ticket, use.changes);
  if (beyond) {
    touched(beyond->held, true);
    touched(beyond->held_read, false);
    touched(beyond->by_handles, false);
  }
  touched(work.reads, false);
  if (on->capture) on->capture->launched(work, dispatches, std::move(stale_before));
}

}  // namespace weft::detail
